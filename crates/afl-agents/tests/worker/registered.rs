//! `RegistryRunner`: handlers that are registered in the store (document 000 §8).

use std::fs;
use std::sync::Arc;

use afl_agents::registration::{DEFAULT_VERSION, Registration};
use afl_agents::worker::{Profile, Worker, WorkerEvent};
use afl_agents::{Hosts, HostsConfig, Registry, RegistryError, Roots};
use afl_runtime::agent::TaskEventType;
use afl_runtime::{Error, TaskQuery};
use afl_store::clock::Clock;
use afl_store::conflict::CONFLICT_TRIES;
use afl_store::fault::{BackendVerb, Fault, Faulty};
use afl_store::memory::Memory;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::spy::Hearing;
use crate::world::{World, work};

const HANDLER: &str = r#"
def process_payment(payload: dict) -> dict:
    """Handle the ProcessPayment event facet."""
    amount = payload.get("amount", 0)
    print("charging", amount)
    return {"transaction_id": "txn-12345", "status": "approved"}
"#;

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("handlers")).unwrap();
    fs::write(folder.path().join("handlers/billing.py"), HANDLER).unwrap();
    folder
}

fn runner(world: &World, folder: &TempDir) -> Worker {
    let roots = Roots::new([folder.path()]).unwrap();
    let hosts = Hosts::new(HostsConfig { roots, ..HostsConfig::default() }).unwrap();
    world.worker(Profile::Registry).with_hosts(Arc::new(hosts))
}

fn registration() -> Registration {
    Registration {
        entrypoint: "process_payment".to_owned(),
        ..Registration::new("billing.ProcessPayment", "handlers.billing")
    }
}

// covers: SDK-1-e, SDK-8.3-a, SDK-8.4-a, SDK-8.5-b, SDK-8.10-a
#[tokio::test]
async fn the_billing_example_of_the_document_gives_its_receipt() {
    let (world, folder) = (World::new(), folder());
    Registry::new(&world.service).register(registration()).await.unwrap();
    let working = work(&runner(&world, &folder));
    let run = world.checkout().await;
    assert_eq!(world.receipt(&run).await, "txn-12345");
    working.stop().await;
    let step = world.service.find_step(&run, "payment").await.unwrap();
    let pages = world.service.task_log(&run, &step, None).await.unwrap();
    let lines: Vec<&str> = pages.iter().flat_map(|page| &page.lines).map(|line| line.text.as_str()).collect();
    assert_eq!(lines, ["charging 12.5"]);
}

// covers: SDK-8.4-b
#[tokio::test]
async fn a_handler_that_is_registered_later_does_the_work_that_waits_for_it() {
    let (world, folder) = (World::new(), folder());
    let run = world.checkout().await;
    let working = work(&runner(&world, &folder));
    Registry::new(&world.service).register(registration()).await.unwrap();
    assert_eq!(world.receipt(&run).await, "txn-12345");
    working.stop().await;
}

/// Each commit meets another writer, so each repeats until its tries are used up.
#[tokio::test]
async fn a_registration_that_always_meets_another_writer_is_reported_and_not_kept() {
    let memory = Arc::new(Memory::new(Clock::System));
    let sound = World::over(memory.clone());
    Registry::new(&sound.service).register(registration()).await.unwrap();
    let contended = Arc::new(Faulty::new(memory, |call| match call.verb {
        BackendVerb::Commit => Fault::Conflict,
        _ => Fault::None,
    }));
    let registry = Registry::new(&World::over(contended.clone()).service);
    let changed = Registration { version: "2.0.0".to_owned(), ..registration() };
    let refused = registry.register(changed).await.unwrap_err();
    assert!(matches!(refused, RegistryError::Store(Error::Contended(_))), "{refused}");
    assert_eq!(contended.counts().durable_commits, CONFLICT_TRIES as u64);
    let refused = registry.remove("billing.ProcessPayment").await.unwrap_err();
    assert!(matches!(refused, Error::Contended(_)), "{refused}");
    assert_eq!(contended.counts().durable_commits, 2 * CONFLICT_TRIES as u64);
    let kept = Registry::new(&sound.service).get("billing.ProcessPayment").await.unwrap().unwrap();
    assert_eq!(kept.version, DEFAULT_VERSION);
}

// covers: SDK-8.8-a
#[tokio::test]
async fn tasks_outside_the_topics_are_left_for_others() {
    let (world, folder) = (World::new(), folder());
    let registry = Registry::new(&world.service);
    registry.register(registration()).await.unwrap();
    let run = world.checkout().await;
    let roots = Roots::new([folder.path()]).unwrap();
    let hosts = Arc::new(Hosts::new(HostsConfig { roots, ..HostsConfig::default() }).unwrap());
    let picky = world.worker_with(Profile::Registry, |config| config.topics = vec!["shipping.*".to_owned()]);
    let picky = picky.with_hosts(hosts.clone());
    assert_eq!(picky.poll_once().await.unwrap(), 0);
    let fitting = world.worker_with(Profile::Registry, |config| config.topics = vec!["bill*".to_owned()]);
    assert_eq!(fitting.with_hosts(hosts).poll_once().await.unwrap(), 1);
    assert_eq!(world.receipt(&run).await, "txn-12345");
}

// covers: SDK-8.1-b
#[tokio::test(start_paused = true)]
async fn registrations_are_read_again_every_half_minute_though_no_notice_of_them_comes() {
    let world = World::simulated(Hearing::None);
    let run = world.checkout().await;
    let hosts = Arc::new(Hosts::new(HostsConfig::default()).unwrap());
    let (tell, mut told) = mpsc::channel(100);
    let runner = world.worker(Profile::Registry).with_hosts(hosts).with_listener(tell);
    let working = work(&runner);
    assert!(matches!(told.recv().await, Some(WorkerEvent::Ready { .. })));
    let registered = Instant::now();
    let echo = Registration::new("billing.ProcessPayment", "builtin:echo");
    Registry::new(&world.service).register(echo).await.unwrap();
    let Some(WorkerEvent::Handlers { names }) = told.recv().await else { panic!("it hears of the handler") };
    assert_eq!(names, ["billing.ProcessPayment"]);
    // Timers may be late by a millisecond.
    assert_eq!(registered.elapsed().as_secs(), 30);
    // Echo returns no `transaction_id`, but it was asked.
    assert!(world.error(&run).await.contains("transaction_id"));
    working.stop().await;
}

// covers: SDK-8.7-a, SDK-8.7-d, SDK-8.4-d
#[tokio::test]
async fn the_whole_name_goes_before_the_short_one_and_the_result_into_the_run() {
    let (world, folder) = (World::new(), folder());
    let registry = Registry::new(&world.service);
    let exact = Registration { requirements: vec!["no-such-package==9.9".to_owned()], ..registration() };
    registry.register(exact).await.unwrap();
    registry.register(Registration::new("ProcessPayment", "builtin:fail")).await.unwrap();
    let runner = runner(&world, &folder);
    let first = world.checkout().await;
    assert_eq!(runner.poll_once().await.unwrap(), 1);
    let query = TaskQuery { run: Some(first.clone()), limit: 1, ..TaskQuery::default() };
    let task = world.service.tasks(&query).await.unwrap().tasks.remove(0);
    assert_eq!((task.state.name(), task.token), ("completed", 1));
    assert_eq!(world.receipt(&first).await, "txn-12345", "the run went on within the same poll");

    registry.remove("billing.ProcessPayment").await.unwrap();
    let second = world.checkout().await;
    assert_eq!(runner.poll_once().await.unwrap(), 1);
    assert_eq!(world.error(&second).await, "Checkout.payment: failed as asked");
}

#[tokio::test]
async fn g8_each_attempt_says_which_version_of_the_handler_did_it() {
    let world = World::new();
    let registry = Registry::new(&world.service);
    let hosts = Hosts::new(HostsConfig::default()).unwrap();
    let runner = world.worker(Profile::Registry).with_hosts(Arc::new(hosts));
    let run = world.start(TWICE, json!({})).await;
    for version in [DEFAULT_VERSION, "2.1"] {
        let version = version.to_owned();
        registry
            .register(Registration { version, ..Registration::new("t.Do", "builtin:fail") })
            .await
            .unwrap();
        assert!(runner.poll_one().await.unwrap().is_some());
    }
    let query = TaskQuery { run: Some(run), limit: 1, ..TaskQuery::default() };
    let task = world.service.tasks(&query).await.unwrap().tasks.remove(0);
    let claims = task.events().into_iter().filter(|event| event.event_type == TaskEventType::Leased);
    assert_eq!(claims.map(|event| event.message).collect::<Vec<_>>(), ["", "version 2.1"]);
}

const TWICE: &str = r"
namespace t {
    event facet Do()
    workflow W() andThen { done = Do() with Retry(max = 2, backoff_ms = 0) }
}
";

// covers: SDK-8.7-e
#[tokio::test]
async fn any_exception_fails_the_step_and_its_task() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let text = "def handle(payload):\n    raise KeyError('no such card')\n";
    fs::write(folder.path().join("broken.py"), text).unwrap();
    let registry = Registry::new(&world.service);
    let runner = runner(&world, &folder);
    for module in ["broken", "nowhere"] {
        registry.register(Registration::new("billing.ProcessPayment", module)).await.unwrap();
        let run = world.checkout().await;
        assert_eq!(runner.poll_once().await.unwrap(), 1);
        let error = world.error(&run).await;
        let cause = if module == "broken" { "no such card" } else { "nowhere" };
        assert!(error.contains(cause), "{error}");
        let query = TaskQuery { run: Some(run), limit: 1, ..TaskQuery::default() };
        assert_eq!(world.service.tasks(&query).await.unwrap().tasks[0].state.name(), "failed");
    }
}

#[tokio::test]
async fn a_wrong_registration_is_refused_with_all_that_is_wrong() {
    let world = World::new();
    let wrong = Registration { timeout_ms: 0, ..Registration::new("billing..Pay", "ftp://x") };
    let refused = Registry::new(&world.service).register(wrong).await.unwrap_err().to_string();
    assert!(
        refused.contains("billing..Pay") && refused.contains("ftp://x") && refused.contains("timeout_ms")
    );
    assert_eq!(Registry::new(&world.service).all().await.unwrap(), []);
}

// covers: SDK-8.5-a
#[tokio::test]
async fn a_registration_keeps_the_time_of_its_making_when_it_is_changed() {
    let world = World::new();
    let registry = Registry::new(&world.service);
    let first = registry.register(registration()).await.unwrap();
    let changed = Registration { version: "2.0.0".to_owned(), ..registration() };
    let second = registry.register(changed).await.unwrap();
    assert_eq!((second.created, second.version.as_str()), (first.created, "2.0.0"));
    let fields = serde_json::to_value(&second).unwrap();
    let names: Vec<&str> = fields.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "checksum",
            "created",
            "entrypoint",
            "facet_name",
            "metadata",
            "module_uri",
            "requirements",
            "timeout_ms",
            "updated",
            "version"
        ]
    );
    assert_eq!(registry.remove("billing.ProcessPayment").await.unwrap(), Some(second));
    assert_eq!(registry.all().await.unwrap(), []);
    assert_eq!(fields["metadata"], json!({}));
}

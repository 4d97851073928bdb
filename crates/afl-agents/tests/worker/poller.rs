//! `AgentPoller`: functions of this process as handlers (document 000 §4).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afl_agents::handler::{Call, HandlerFailure, blocking, concurrent};
use afl_agents::registration::Registration;
use afl_agents::worker::Profile;
use afl_agents::{Hosts, HostsConfig};
use afl_runtime::server::ServerState;
use afl_runtime::{Millis, Parameter};
use serde_json::json;
use tokio::sync::Barrier;

use crate::ends::ONCE;
use crate::spy::Hearing;
use crate::world::{World, object, paid, work};

const FAN: &str = r"
namespace fan {
    event facet Do(n: Long) => (n: Long)
    workflow All(items: [Long]) => (done: [Long]) andThen foreach item in $.items {
        a = Do(n = $.item)
        yield All(done = [a.n])
    }
}
";

// covers: SDK-4.2-a, SDK-4.3-a, SDK-4.3-b, SDK-4.3-c, SDK-4.3-d, SDK-4.4-a, SDK-4.6-a, SDK-4.6-b, SDK-4.8-a, SDK-2.2-c
// covers: SDK-1-b, SDK-1-c
#[tokio::test]
async fn one_poll_claims_does_and_continues_without_anything_in_the_background() {
    let world = World::new();
    let worker = world.worker(Profile::Poller);
    worker.register(
        "billing.ProcessPayment",
        blocking(|call: Call| {
            assert_eq!(serde_json::Value::Object(call.payload), json!({"amount": 12.5, "currency": "USD"}));
            Ok(paid())
        }),
    );
    assert_eq!(worker.registered_names(), ["billing.ProcessPayment"]);
    assert_eq!(worker.poll_once().await.unwrap(), 0);
    let run = world.checkout().await;
    assert_eq!(worker.poll_once().await.unwrap(), 1);
    assert_eq!(worker.poll_once().await.unwrap(), 0);
    assert_eq!(world.receipt(&run).await, "txn-12345");
    assert_eq!(world.servers().await, [], "no record without a start");
    assert!(!worker.is_running());
    assert_ne!(worker.server_id(), world.worker(Profile::Poller).server_id());
}

#[tokio::test]
async fn a_handler_gets_the_declaration_of_its_facet_with_the_prompt_of_its_call() {
    const DESK: &str = r#"
namespace desk {
    /** Sorts a letter. */
    event facet Sort(letter: String) => (topic: String) prompt {
        template "What is this about: {letter}"
    }
    workflow Desk(letter: String) => (receipt: String) andThen {
        sorted = Sort(letter = $.letter)
        yield Desk(receipt = sorted.topic)
    }
}
"#;
    let world = World::new();
    let worker = world.worker(Profile::Poller);
    worker.register(
        "desk.Sort",
        concurrent(async |call: Call| {
            let sort = call.declaration().await?.expect("the program declares it");
            assert_eq!((sort.qualified_name(), sort.doc()), ("desk.Sort", Some("Sorts a letter.")));
            let types = |list: &[Parameter]| list.iter().map(|it| it.ty.to_string()).collect::<Vec<_>>();
            assert_eq!([types(sort.params()), types(sort.returns())], [["String"], ["String"]]);
            let prompt = sort.prompt(&call.payload).expect("the facet has a prompt");
            Ok(object(json!({"topic": prompt.entry("template")})))
        }),
    );
    let run = world.start(DESK, json!({"letter": "{letter} of ada"})).await;
    assert_eq!(worker.poll_once().await.unwrap(), 1);
    assert_eq!(world.receipt(&run).await, "What is this about: {letter} of ada");
}

#[tokio::test(start_paused = true)]
async fn one_poll_does_each_task_once_though_each_outlasts_a_lease() {
    let world = World::simulated(Hearing::Good);
    let worker = world.worker(Profile::Poller);
    let calls = Arc::new(AtomicUsize::new(0));
    let (counted, clock) = (calls.clone(), world.clock.clone());
    worker.register(
        "Send",
        concurrent(move |_: Call| {
            let (counted, clock) = (counted.clone(), clock.clone());
            async move {
                counted.fetch_add(1, Ordering::SeqCst);
                // Two leases long.
                for _ in 0..24 {
                    clock.advance(Millis(5_000));
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
                Ok(object(json!({"sent": true})))
            }
        }),
    );
    let runs = [world.start(ONCE, json!({"to": "ada"})).await, world.start(ONCE, json!({"to": "bob"})).await];
    assert_eq!(worker.poll_once().await.unwrap(), 2);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    for run in runs {
        world.service.ended(&run).await.unwrap();
        assert_eq!(world.service.outputs(&run).await.unwrap()["sent"], json!(true));
    }
}

// covers: SDK-4.3-e, SDK-3.4-c
#[tokio::test]
async fn a_short_name_does_the_work_of_any_namespace_and_a_qualified_one_of_no_namesake() {
    let world = World::new();
    let run = world.checkout().await;
    let other = world.worker(Profile::Poller);
    other.register("other.ProcessPayment", blocking(|_| Ok(paid())));
    assert_eq!(other.poll_once().await.unwrap(), 0);
    let short = world.worker(Profile::Poller);
    short.register("ProcessPayment", blocking(|_| Ok(paid())));
    // Wherever the other namespace has its handler, it is not clear whose work this is.
    let torn =
        world.worker(Profile::Poller).with_hosts(Arc::new(Hosts::new(HostsConfig::default()).unwrap()));
    let torn = torn.with_registrations(vec![Registration::new("other.ProcessPayment", "builtin:echo")]);
    torn.register("ProcessPayment", blocking(|_| Ok(paid())));
    assert_eq!(torn.poll_once().await.unwrap(), 0);
    assert_eq!(short.poll_once().await.unwrap(), 1);
    assert_eq!(world.receipt(&run).await, "txn-12345");
}

// covers: SDK-1-b, SDK-2.2-d, SDK-4.5-e, SDK-6.1-a, SDK-6.1-b, SDK-6.1-c, SDK-6.1-d
#[tokio::test]
async fn a_fault_of_a_handler_fails_its_step_and_never_the_worker() {
    let world = World::new();
    let worker = world.worker(Profile::Poller);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    worker.register(
        "ProcessPayment",
        blocking(move |_| match counted.fetch_add(1, Ordering::SeqCst) {
            0 => Err(HandlerFailure::error("the card was declined")),
            1 => panic!("a bug"),
            _ => Ok(paid()),
        }),
    );
    let working = work(&worker);
    let mut ends = Vec::new();
    for _ in 0..2 {
        let run = world.checkout().await;
        ends.push(world.error(&run).await);
    }
    assert_eq!(
        ends,
        ["Checkout.payment: the card was declined", "Checkout.payment: the handler panicked: a bug"]
    );
    let run = world.checkout().await;
    assert_eq!(world.receipt(&run).await, "txn-12345");
    working.stop().await;
    assert_eq!(calls.load(Ordering::SeqCst), 3, "nothing is tried again by itself");
}

// covers: SDK-4.4-b, SDK-4.5-a, SDK-4.5-c, SDK-4.5-d, SDK-4.5-f, SDK-5.1-c, SDK-5.1-e, SDK-5.3-c
#[tokio::test]
async fn a_worker_is_seen_while_it_works_and_says_when_it_ends() {
    let world = World::new();
    let worker = world.worker(Profile::Poller);
    worker.register("billing.ProcessPayment", concurrent(|_| async { Ok(paid()) }));
    let working = work(&worker);
    let run = world.checkout().await;
    assert_eq!(world.receipt(&run).await, "txn-12345");
    assert!(worker.is_running());
    let servers = world.servers().await;
    let [server] = &servers[..] else { panic!("{servers:?}") };
    assert_eq!((server.uuid.as_str(), server.state), (worker.server_id(), ServerState::Running));
    assert_eq!(server.handlers, ["billing.ProcessPayment"]);
    working.stop().await;
    let servers = world.servers().await;
    assert_eq!(servers[0].state, ServerState::Shutdown);
    assert_eq!(servers[0].handled["billing.ProcessPayment"].completed, 1);
    assert!(!worker.is_running());
}

// covers: SDK-4.1-c
#[tokio::test]
async fn as_many_tasks_are_done_at_once_as_allowed_and_no_more() {
    let world = World::new();
    let worker = world.worker_with(Profile::Poller, |config| config.max_concurrent = 3);
    // None goes on before three are there at once.
    let barrier = Arc::new(Barrier::new(3));
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    worker.register(
        "Do",
        concurrent(move |call: Call| {
            let (barrier, now, most) = (barrier.clone(), now.clone(), most.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                barrier.wait().await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(object(json!({"n": call.payload["n"]})))
            }
        }),
    );
    let run = world.start(FAN, json!({"items": (0..30).collect::<Vec<_>>()})).await;
    let working = work(&worker);
    world.service.ended(&run).await.unwrap();
    let outputs = world.service.outputs(&run).await.unwrap();
    assert_eq!(outputs["done"], json!((0..30).collect::<Vec<_>>()));
    assert_eq!(seen.load(Ordering::SeqCst), 3);
    working.stop().await;
}

//! `RunnerService`: what it does besides a poller's work (document 000 §7).

use std::sync::Arc;

use afl_agents::handler::{Call, blocking, concurrent};
use afl_agents::worker::{AttemptEnd, Profile, Worker, WorkerEvent};
use afl_runtime::lock::Lock;
use afl_runtime::{Durability, Millis, RunId, StartRequest, TaskQuery, compile};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use crate::spy::Hearing;
use crate::world::{BILLING, World, object, paid, work};

fn service(world: &World) -> Worker {
    world.worker_with(Profile::Service, |config| config.http_port = None)
}

async fn handed(world: &World, inputs: Value) -> RunId {
    let hash = world.service.publish(&compile("test.afl", BILLING).unwrap()).await.unwrap();
    let inputs = inputs.as_object().unwrap().clone();
    world.service.hand_over(StartRequest { inputs, ..StartRequest::new(hash) }).await.unwrap().run
}

/// The key of the lock of a run's payment.
async fn key(world: &World, run: &RunId) -> String {
    let step = world.service.find_step(run, "payment").await.unwrap();
    format!("task/{run}/{step}")
}

/// The keys of all items that are locked, or were.
async fn locked(world: &World) -> Vec<String> {
    let all = world.collection::<Lock>().all().await.unwrap();
    all.into_iter().map(|(key, _)| key).filter(|key| key.starts_with("task/")).collect()
}

// covers: SDK-7.2-b
#[tokio::test]
async fn a_start_that_is_handed_over_is_made_by_a_service_alone() {
    let world = World::new();
    let run = handed(&world, json!({"total": 12.5})).await;
    for profile in [Profile::Registry, Profile::Poller] {
        let other = world.worker(profile);
        other.register_default(blocking(|_| Ok(paid())));
        assert_eq!(other.poll_once().await.unwrap(), 0, "{profile:?}");
    }
    let service = service(&world);
    service.register("ProcessPayment", blocking(|_| Ok(paid())));
    assert_eq!(service.poll_once().await.unwrap(), 1, "the start");
    assert_eq!(service.poll_once().await.unwrap(), 1, "the work of the run");
    assert_eq!(world.receipt(&run).await, "txn-12345");
    assert_eq!(service.counts().handled["afl:execute"].completed, 1);
}

#[tokio::test]
async fn a_start_with_inputs_that_are_refused_fails_and_says_why() {
    let world = World::new();
    handed(&world, json!({"total": "a lot"})).await;
    let service = service(&world);
    assert_eq!(service.poll_once().await.unwrap(), 1);
    let query = TaskQuery { name: Some("afl:execute".to_owned()), limit: 10, ..TaskQuery::default() };
    assert_eq!(world.service.tasks(&query).await.unwrap().tasks, [], "none is open");
    let failed = TaskQuery { state: Some("failed".parse().unwrap()), ..query };
    let failed = world.service.tasks(&failed).await.unwrap().tasks;
    assert!(failed[0].error.as_deref().unwrap().contains("`total`"), "{failed:?}");
    assert_eq!(service.poll_once().await.unwrap(), 0, "it is not tried again by itself");
}

const THREE: &str = r"
namespace a {
    event facet Exact() => (by: String)
    event facet Short() => (by: String)
    event facet Rest() => (by: String)
    workflow All() => (exact: String, short: String, rest: String) andThen {
        x = Exact()
        y = Short()
        z = Rest()
        yield All(exact = x.by, short = y.by, rest = z.by)
    }
}
";

// covers: SDK-7.3-a, SDK-7.3-b, SDK-7.3-c
#[tokio::test]
async fn a_handler_is_found_by_the_whole_name_then_by_the_short_one_then_by_default() {
    let world = World::new();
    let by = |who: &'static str| blocking(move |_: Call| Ok(object(json!({"by": who}))));
    let service = service(&world);
    service.register("a.Exact", by("exact"));
    service.register("Short", by("short"));
    let run = world.start(THREE, json!({})).await;
    assert_eq!(service.poll_once().await.unwrap(), 2, "what it has no handler for it does not touch");
    service.register_default(by("default"));
    assert_eq!(service.poll_once().await.unwrap(), 1);
    let outputs = world.service.outputs(&run).await.unwrap();
    assert_eq!(Value::Object(outputs), json!({"exact": "exact", "short": "short", "rest": "default"}));
}

/// Reports that it began, and pays when it may go on; stops on request.
fn slow(worker: &Worker) -> (Arc<Notify>, Arc<Notify>) {
    let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (begun.clone(), go.clone());
    worker.register(
        "ProcessPayment",
        concurrent(move |call: Call| {
            let (tell, wait) = (tell.clone(), wait.clone());
            async move {
                tell.notify_one();
                tokio::select! {
                    () = wait.notified() => Ok(paid()),
                    _ = call.context.stopped() => Ok(paid()),
                }
            }
        }),
    );
    (begun, go)
}

// covers: SDK-7.4-a, SDK-7.4-b
#[tokio::test(start_paused = true)]
async fn the_lock_of_an_item_is_held_and_extended_while_it_is_worked_on() {
    let world = World::simulated(Hearing::Good);
    let service = service(&world);
    let (begun, go) = slow(&service);
    let run = world.checkout().await;
    let working = work(&service);
    begun.notified().await;
    let key = key(&world, &run).await;
    assert_eq!(locked(&world).await, std::slice::from_ref(&key));
    let named = world.service.locks();
    let mut changes = world.collection::<Lock>().watch();
    // Twice as long as a lock lasts without being extended.
    for _ in 0..6 {
        world.pass(20_000).await;
        let until = world.clock.now().plus(Millis(60_000));
        while named.get(&key).await.unwrap().expect("it is held").expires != until {
            changes.changed().await;
        }
        assert_eq!(named.acquire(&key, "another", Millis(60_000), Value::Null).await.unwrap(), None);
    }
    go.notify_one();
    assert_eq!(world.receipt(&run).await, "txn-12345");
    working.stop().await;
    assert!(locked(&world).await.is_empty(), "nothing is left of it");
}

// covers: SDK-7.4-c, SDK-10.5-a
#[tokio::test]
async fn an_item_whose_lock_another_runner_has_is_left_to_it_and_a_poller_asks_for_none() {
    let world = World::simulated(Hearing::Good);
    let service = service(&world);
    let poller = world.worker(Profile::Poller);
    for worker in [&service, &poller] {
        worker.register("ProcessPayment", blocking(|_| Ok(paid())));
    }
    let run = world.checkout().await;
    let (named, key) = (world.service.locks(), key(&world, &run).await);
    let other = named.acquire(&key, "another", Millis(60_000), Value::Null).await.unwrap().unwrap();
    assert_eq!(service.poll_once().await.unwrap(), 0);
    let query = TaskQuery { run: Some(run.clone()), limit: 1, ..TaskQuery::default() };
    let task = world.service.tasks(&query).await.unwrap().tasks.remove(0);
    assert_eq!(
        (task.state.name(), task.deliveries, task.attempts),
        ("pending", 0, 0),
        "it counts for nothing"
    );
    for _ in 0..3 {
        assert_eq!(service.poll_once().await.unwrap(), 0);
    }
    assert_eq!(
        world.service.tasks(&query).await.unwrap().tasks[0].token,
        1,
        "it is not claimed over and over"
    );

    world.clock.advance(Millis(2_000));
    assert!(named.release(&other).await.unwrap());
    world.service.turn().await.unwrap();
    assert_eq!(service.poll_once().await.unwrap(), 1);
    assert_eq!(world.receipt(&run).await, "txn-12345");

    let run = world.checkout().await;
    let key = format!("task/{run}/{}", world.service.find_step(&run, "payment").await.unwrap());
    named.acquire(&key, "another", Millis(60_000), Value::Null).await.unwrap().unwrap();
    assert_eq!(poller.poll_once().await.unwrap(), 1);
    assert_eq!(world.receipt(&run).await, "txn-12345");
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_has_lost_its_lock_stops_and_gives_the_task_back() {
    let world = World::simulated(Hearing::Good);
    let (tell, mut told) = mpsc::channel(100);
    let service = service(&world).with_listener(tell);
    let (begun, _go) = slow(&service);
    let run = world.checkout().await;
    let working = work(&service);
    begun.notified().await;
    let (collection, key) = (world.collection::<Lock>(), key(&world, &run).await);
    let held = collection.get(&key).await.unwrap().unwrap();
    let stolen = Lock { owner: "another".to_owned(), token: held.item.token + 1, ..held.item };
    collection.put(&key, &stolen, Some(held.version), Durability::Relaxed).await.unwrap();
    loop {
        match told.recv().await.expect("it runs") {
            WorkerEvent::Ended { ended, .. } => break assert_eq!(ended, AttemptEnd::GivenBack),
            WorkerEvent::Ready { .. }
            | WorkerEvent::Began(_)
            | WorkerEvent::Handlers { .. }
            | WorkerEvent::Unfit(_)
            | WorkerEvent::ClockAhead { .. } => {}
        }
    }
    working.stop().await;
    let query = TaskQuery { run: Some(run), limit: 1, ..TaskQuery::default() };
    let task = world.service.tasks(&query).await.unwrap().tasks.remove(0);
    assert_eq!((task.state.name(), task.deliveries), ("pending", 0));
}

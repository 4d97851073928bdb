//! The public view of a worker: its record, its heartbeats, its properties (document 000 §5).

use afl_agents::handler::blocking;
use afl_agents::worker::{Profile, Worker};
use afl_runtime::server::{HandlerCounts, Server, ServerState};
use afl_runtime::{Durability, TaskQuery};
use tokio::time::Instant;

use crate::spy::Hearing;
use crate::world::{World, paid, work};

async fn record(world: &World, worker: &Worker) -> Server {
    let servers = world.collection::<Server>();
    servers.get(worker.server_id()).await.unwrap().expect("it is registered").item
}

// covers: SDK-4.5-b, SDK-5.2-a, SDK-5.3-a
#[tokio::test]
async fn a_server_says_startup_then_running_then_shutdown() {
    let world = World::new();
    let worker = world.worker(Profile::Poller);
    let working = work(&worker);
    let mut changes = world.collection::<Server>().watch();
    while world.spy.told_states().len() < 2 {
        changes.changed().await;
    }
    working.stop().await;
    let mut states = world.spy.told_states();
    states.dedup();
    assert_eq!(states, [ServerState::Startup, ServerState::Running, ServerState::Shutdown]);
}

// covers: SDK-5.2-a
#[tokio::test]
async fn a_server_that_cannot_go_on_says_so_and_why() {
    let world = World::new();
    let worker = world.worker(Profile::Poller);
    let broken = worker.start(async { panic!("nobody listens for signals") }).await.unwrap_err();
    assert_eq!(broken.to_string(), "the worker broke off: nobody listens for signals");
    let record = record(&world, &worker).await;
    assert_eq!((record.state, record.error), (ServerState::Error, Some(broken.to_string())));
    let mut states = world.spy.told_states();
    states.dedup();
    assert_eq!(states, [ServerState::Startup, ServerState::Running, ServerState::Error]);
    assert!(!worker.is_running());
}

// covers: SDK-5.3-b
#[tokio::test(start_paused = true)]
async fn a_heartbeat_records_the_time_at_every_interval() {
    let world = World::simulated(Hearing::Good);
    let worker = world.worker(Profile::Registry);
    let mut changes = world.collection::<Server>().watch();
    let working = work(&worker);
    while world.spy.told_states().len() < 2 {
        changes.changed().await;
    }
    let started = Instant::now();
    for beat in 1..=5 {
        world.clock.advance(afl_runtime::Millis(10_000));
        while record(&world, &worker).await.ping_time != world.clock.now() {
            changes.changed().await;
        }
        // Timers may be late by a millisecond each.
        assert_eq!(started.elapsed().as_secs(), 10 * beat);
    }
    working.stop().await;
}

// covers: SDK-5.1-d, SDK-8.12-a
#[tokio::test]
async fn the_record_has_the_topics_and_only_the_handlers_among_them() {
    let world = World::new();
    let worker = world.worker_with(Profile::Registry, |config| config.topics = vec!["billing.*".to_owned()]);
    for name in ["billing.ProcessPayment", "shipping.Send"] {
        worker.register(name, blocking(|_| Ok(paid())));
    }
    assert!(!worker.is_running());
    let working = work(&worker);
    let run = world.checkout().await;
    assert_eq!(world.receipt(&run).await, "txn-12345");
    assert!(worker.is_running());
    let record = record(&world, &worker).await;
    assert_eq!(record.uuid, worker.server_id());
    assert_eq!(
        (record.topics, record.handlers),
        (vec!["billing.*".to_owned()], vec!["billing.ProcessPayment".to_owned()])
    );
    working.stop().await;
    assert!(!worker.is_running());
    assert_ne!(worker.server_id(), world.worker(Profile::Registry).server_id());
}

// covers: SDK-10.7-b
#[tokio::test]
async fn wrong_counts_of_handled_tasks_change_only_the_displayed_figures() {
    let world = World::new();
    let worker = world.worker(Profile::Service);
    worker.register("billing.ProcessPayment", blocking(|_| Ok(paid())));
    let working = work(&worker);
    let run = world.checkout().await;
    assert_eq!(world.receipt(&run).await, "txn-12345");
    let servers = world.collection::<Server>();
    for drift in [0, 7_000_000] {
        // The worker itself writes its record, too.
        loop {
            let stored = servers.get(worker.server_id()).await.unwrap().unwrap();
            let mut server = stored.item;
            server.handled = [(
                "billing.ProcessPayment".to_owned(),
                HandlerCounts { completed: drift, ..HandlerCounts::default() },
            )]
            .into();
            match servers.put(worker.server_id(), &server, Some(stored.version), Durability::Relaxed).await {
                Ok(_) => break,
                Err(error) => assert!(error.is_conflict(), "{error}"),
            }
        }
        let run = world.checkout().await;
        assert_eq!(world.receipt(&run).await, "txn-12345");
        let query = TaskQuery { run: Some(run), limit: 10, ..TaskQuery::default() };
        let tasks = world.service.tasks(&query).await.unwrap().tasks;
        assert_eq!(
            tasks.iter().map(|task| (task.state.name(), task.token)).collect::<Vec<_>>(),
            [("completed", 1)]
        );
    }
    working.stop().await;
    assert_eq!(
        record(&world, &worker).await.handled["billing.ProcessPayment"].completed,
        3,
        "its own count stands"
    );
}

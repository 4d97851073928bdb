//! The comparison matrix of the runners (document 000 §12), row by row over the profiles there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afl_agents::handler::{Call, HandlerFailure, blocking, concurrent};
use afl_agents::registration::Registration;
use afl_agents::worker::{Config, Profile, Worker, WorkerError, WorkerEvent, WorkerPhase};
use afl_agents::{Hosts, HostsConfig, Registry};
use afl_runtime::{StartRequest, compile};
use serde_json::json;
use tokio::sync::{Barrier, mpsc};

use crate::world::{BILLING, World, object, paid, work};

/// A feature that some runners have and others lack.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Feature {
    Locks,
    Http,
    SystemTasks,
    LoadsFromTheStore,
    Topics,
}

/// The text of document 000 about one runner.
struct Row {
    profile: Profile,
    service_name: &'static str,
    has: &'static [Feature],
}

const MATRIX: [Row; 3] = [
    Row {
        profile: Profile::Registry,
        service_name: "afl-registry-runner",
        has: &[Feature::LoadsFromTheStore, Feature::Topics],
    },
    Row { profile: Profile::Poller, service_name: "afl-agent", has: &[] },
    Row {
        profile: Profile::Service,
        service_name: "afl-runner",
        has: &[Feature::Locks, Feature::Http, Feature::SystemTasks, Feature::Topics],
    },
];

impl Row {
    fn has(&self, feature: Feature) -> bool {
        self.has.contains(&feature)
    }

    /// A worker with no port that another test may have.
    fn worker(&self, world: &World) -> Worker {
        self.worker_with(world, |_| {})
    }

    fn worker_with(&self, world: &World, configure: impl FnOnce(&mut Config)) -> Worker {
        world.worker_with(self.profile, |config| {
            config.http_port = config.http_port.map(|_| 0);
            configure(config);
        })
    }
}

#[test]
fn every_profile_has_a_row() {
    assert_eq!(MATRIX.map(|row| row.profile), Profile::ALL);
    assert_eq!(MATRIX.map(|row| row.service_name), MATRIX.map(|row| Config::of(row.profile).service_name));
}

/// Sees whether there is a lock while it works.
fn lock_seer(world: &World, worker: &Worker) {
    let locks = world.service.locks();
    worker.register(
        "ProcessPayment",
        concurrent(move |call: Call| {
            let locks = locks.clone();
            async move {
                let key = format!("task/{}", call.context.facts().idempotency_key);
                let held = locks.get(&key).await.unwrap().is_some();
                Ok(object(
                    json!({"transaction_id": if held { "locked" } else { "free" }, "status": "approved"}),
                ))
            }
        }),
    );
}

// covers: SDK-12-a, SDK-12-d, SDK-7.2-a
#[tokio::test]
async fn every_profile_polls_the_queue_and_is_a_server_with_heartbeats() {
    for row in &MATRIX {
        let world = World::new();
        let worker = row.worker_with(&world, |config| config.heartbeat_interval_ms = 5);
        lock_seer(&world, &worker);
        let (tell, mut told) = mpsc::channel(100);
        let worker = worker.with_listener(tell);
        let working = work(&worker);
        let Some(WorkerEvent::Ready { http, .. }) = told.recv().await else { panic!("it begins") };
        assert_eq!(http.is_some(), row.has(Feature::Http), "{}", row.service_name);
        let run = world.checkout().await;
        let locked = if row.has(Feature::Locks) { "locked" } else { "free" };
        assert_eq!(world.receipt(&run).await, locked, "{}", row.service_name);
        let first = world.servers().await.remove(0);
        assert_eq!(
            (first.service_name.as_str(), first.uuid.as_str()),
            (row.service_name, worker.server_id())
        );
        let mut changes = world.collection::<afl_runtime::server::Server>().watch();
        while world.servers().await[0].ping_time == first.ping_time {
            changes.changed().await;
        }
        working.stop().await;
        assert_eq!(worker.phase(), WorkerPhase::Ended);
    }
}

// covers: SDK-10-a, SDK-7.2-c
#[tokio::test]
async fn every_profile_does_as_many_tasks_at_once_as_it_may_and_no_more() {
    for row in &MATRIX {
        let world = World::new();
        let worker = row.worker_with(&world, |config| config.max_concurrent = 3);
        // None goes on before three are there at once.
        let barrier = Arc::new(Barrier::new(3));
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = most.clone();
        worker.register(
            "ProcessPayment",
            concurrent(move |_: Call| {
                let (barrier, now, most) = (barrier.clone(), now.clone(), most.clone());
                async move {
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    barrier.wait().await;
                    now.fetch_sub(1, Ordering::SeqCst);
                    Ok(paid())
                }
            }),
        );
        let mut runs = Vec::new();
        for _ in 0..9 {
            runs.push(world.checkout().await);
        }
        let working = work(&worker);
        for run in &runs {
            assert_eq!(world.receipt(run).await, "txn-12345", "{}", row.service_name);
        }
        assert_eq!(seen.load(Ordering::SeqCst), 3, "{}", row.service_name);
        working.stop().await;
    }
}

#[tokio::test]
async fn only_the_service_does_system_tasks() {
    for row in &MATRIX {
        let world = World::new();
        let hash = world.service.publish(&compile("test.afl", BILLING).unwrap()).await.unwrap();
        let inputs = object(json!({"total": 1.0}));
        world.service.hand_over(StartRequest { inputs, ..StartRequest::new(hash) }).await.unwrap();
        let worker = row.worker(&world);
        worker.register_default(blocking(|_| Ok(paid())));
        assert_eq!(
            worker.poll_once().await.unwrap(),
            usize::from(row.has(Feature::SystemTasks)),
            "{}",
            row.service_name
        );
    }
}

// covers: SDK-12-e, SDK-4.7-a
#[tokio::test]
async fn in_every_profile_a_program_that_was_given_is_not_looked_up() {
    for row in &MATRIX {
        for (cached, looks) in [(false, 1), (true, 0)] {
            let world = World::new();
            let run = world.checkout().await;
            // A process that has not seen the program yet.
            let fresh = world.restarted();
            let worker = row.worker(&fresh);
            worker.register("ProcessPayment", blocking(|_| Ok(paid())));
            if cached {
                worker.cache_workflow_ast(&compile("test.afl", BILLING).unwrap());
            }
            let before = world.spy.reads_of("@programs");
            assert_eq!(worker.poll_once().await.unwrap(), 1);
            assert_eq!(world.spy.reads_of("@programs") - before, looks, "{} {cached}", row.service_name);
            assert_eq!(fresh.receipt(&run).await, "txn-12345");
        }
    }
}

// covers: SDK-12-f
#[tokio::test]
async fn every_profile_knows_short_names_and_fails_the_step_of_a_handler_that_fails() {
    for row in &MATRIX {
        let world = World::new();
        let worker = row.worker(&world);
        worker.register("ProcessPayment", blocking(|_| Err(HandlerFailure::error("declined"))));
        let run = world.checkout().await;
        assert_eq!(worker.poll_once().await.unwrap(), 1, "{}", row.service_name);
        assert_eq!(world.error(&run).await, "Checkout.payment: declined", "{}", row.service_name);
    }
}

#[tokio::test]
async fn only_the_registry_runner_loads_registrations_from_the_store() {
    for row in &MATRIX {
        let world = World::new();
        let registration = Registration::new("billing.ProcessPayment", "builtin:echo");
        Registry::new(&world.service).register(registration).await.unwrap();
        world.checkout().await;
        let hosts = Arc::new(Hosts::new(HostsConfig::default()).unwrap());
        let worker = row.worker(&world).with_hosts(hosts);
        let done = worker.poll_once().await.unwrap();
        assert_eq!(done, usize::from(row.has(Feature::LoadsFromTheStore)), "{}", row.service_name);
        assert_eq!(worker.registered_names().len(), usize::from(row.has(Feature::LoadsFromTheStore)));
    }
}

// covers: SDK-12-h
#[tokio::test]
async fn a_poller_has_no_topics_and_the_others_keep_to_theirs() {
    for row in &MATRIX {
        let world = World::new();
        world.checkout().await;
        for (topic, fits) in [("billing.*", true), ("shipping.*", false)] {
            let mut config = row.worker(&world).config().clone();
            config.topics = vec![topic.to_owned()];
            match Worker::new(world.service.clone(), config) {
                Ok(worker) => {
                    assert!(row.has(Feature::Topics), "{}", row.service_name);
                    worker.register_default(blocking(|_| Ok(paid())));
                    assert_eq!(worker.poll_once().await.unwrap(), usize::from(fits), "{}", row.service_name);
                }
                Err(error) => {
                    assert!(
                        !row.has(Feature::Topics) && matches!(error, WorkerError::TopicsOfPoller),
                        "{error}"
                    );
                }
            }
        }
    }
}

//! Traps of the documents that a worker must not fall into.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afl_agents::handler::{Call, Object, blocking, concurrent};
use afl_agents::worker::Profile;
use afl_runtime::agent::{ClaimRequest, FacetFilter};
use afl_runtime::server::{Server, ServerStatus};
use afl_runtime::{Durability, Millis};
use afl_store::clock::{Clock, SimClock};
use afl_store::conformance::unread;
use afl_store::fault::{Fault, FaultMoment, Faulty};
use afl_store::memory::Memory;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::world::{World, paid, work};

const MINUTE: Duration = Duration::from_mins(1);

/// By the simulated clock of the runtime, which advances when all tasks wait.
#[tokio::test(start_paused = true)]
async fn t26_an_idle_worker_leaves_the_store_alone_and_takes_up_work_at_once() {
    let store = Arc::new(Faulty::new(Arc::new(Memory::new(Clock::System)), |_| Fault::None));
    let world = World::over(store.clone());
    let worker = world.worker(Profile::Poller);
    worker.register("ProcessPayment", concurrent(|_| async { Ok(paid()) }));
    let working = work(&worker);
    sleep(MINUTE).await;
    let before = store.counts().calls;
    sleep(10 * MINUTE).await;
    let calls = (store.counts().calls - before) / 10;
    assert!(calls < 150, "{calls} calls in a minute without work");

    let began = Instant::now();
    let run = world.checkout().await;
    assert_eq!(world.receipt(&run).await, "txn-12345");
    let back_stop = Duration::from_millis(worker.config().poll_interval_ms);
    assert!(began.elapsed() < back_stop / 10, "{:?}", began.elapsed());
    working.stop().await;
}

const IMPATIENT: &str = r"
namespace llm {
    event facet Write(topic: String) => (text: String)
    workflow Essay(topic: String) => (receipt: String) andThen {
        text = Write(topic = $.topic) with Heartbeat(ms = 900)
        yield Essay(receipt = text.text)
    }
}
";

/// The handler moves both clocks on: that of the runtime by sleeping, that of the store by hand.
#[tokio::test(start_paused = true)]
async fn t14_signs_of_life_keep_work_going_for_longer_than_its_step_allows_silence() {
    let clock = SimClock::new(Clock::System.now());
    let world = World::over(Arc::new(Memory::new(Clock::Simulated(clock.clone()))));
    let worker = world.worker(Profile::Poller);
    worker.register(
        "Write",
        concurrent(move |call: Call| {
            let clock = clock.clone();
            async move {
                for _ in 0..200 {
                    sleep(Duration::from_millis(100)).await;
                    clock.advance(Millis(100));
                    call.context.heartbeat();
                }
                Ok(Object::from_iter([("text".to_owned(), json!("long"))]))
            }
        }),
    );
    let run = world.start(IMPATIENT, json!({"topic": "patience"})).await;
    let working = work(&worker);
    assert_eq!(world.receipt(&run).await, "long");
    working.stop().await;
}

/// From a moment on the store takes calls and never answers.
#[tokio::test(start_paused = true)]
async fn f5_a_store_that_does_not_answer_keeps_no_handler_at_work_beyond_its_lease() {
    let is_stuck = Arc::new(AtomicBool::new(false));
    let plan = {
        let is_stuck = is_stuck.clone();
        move |_| if is_stuck.load(Ordering::SeqCst) { Fault::Delay(FaultMoment::Before) } else { Fault::None }
    };
    let store = Faulty::new(Arc::new(Memory::new(Clock::System)), plan);
    let world = World::over(Arc::new(store.pausing(Arc::new(|| Box::pin(std::future::pending())))));
    let worker = world.worker(Profile::Poller);
    let stopped = Arc::new(Notify::new());
    let tell = stopped.clone();
    worker.register(
        "ProcessPayment",
        concurrent(move |call: Call| {
            let (is_stuck, tell) = (is_stuck.clone(), tell.clone());
            async move {
                is_stuck.store(true, Ordering::SeqCst);
                call.context.stopped().await;
                tell.notify_one();
                Ok(paid())
            }
        }),
    );
    world.checkout().await;
    let working = tokio::spawn(async move { worker.poll_once().await });
    timeout(10 * MINUTE, stopped.notified()).await.expect("the handler is told to stop");
    working.abort();
}

#[tokio::test]
async fn t21_the_lease_decides_which_agent_has_a_task_and_the_status_of_its_server_is_for_people() {
    let clock = SimClock::new(Clock::System.now());
    let world = World::over(Arc::new(Memory::new(Clock::Simulated(clock.clone()))));
    let service = &world.service;
    let servers = world.collection::<Server>();
    let heartbeat = async |known| {
        let server = json!({
            "uuid": "s", "server_group": "default", "service_name": "s", "server_name": "s", "state": "running",
            "ping_time": clock.now(),
        });
        let server: Server = serde_json::from_value(server).unwrap();
        servers.put("s", &server, known, Durability::Relaxed).await.unwrap();
    };
    let status = async || servers.get("s").await.unwrap().unwrap().item.status(clock.now());
    let other = world.worker(Profile::Poller);
    other.register("ProcessPayment", blocking(|_| Ok(paid())));
    let run = world.checkout().await;
    heartbeat(None).await;

    let lease = Millis(60_000);
    let held =
        service.claim(&ClaimRequest { lease, ..ClaimRequest::new(FacetFilter::All, "s") }).await.unwrap();
    for _ in 0..4 {
        clock.advance(Millis(50_000));
        service.extend(&held[0].ticket, lease).await.unwrap();
        assert_eq!(other.poll_once().await.unwrap(), 0, "it is held");
    }
    assert_eq!(status().await, ServerStatus::Offline);

    clock.advance(lease);
    heartbeat(Some(unread(1))).await;
    assert_eq!(status().await, ServerStatus::Online);
    service.sweep_once().await.unwrap();
    assert_eq!(other.poll_once().await.unwrap(), 1, "its lease is over");
    assert_eq!(world.receipt(&run).await, "txn-12345");
}

#[test]
fn t13_no_parameter_can_have_a_name_that_the_agent_adds_to_a_payload() {
    let program = "event facet F(_facet_name: String)";
    let mistakes = afl_runtime::compile("t.afl", program).unwrap_err().to_string();
    assert!(mistakes.contains("kept for the runtime"), "{mistakes}");
}

const LIMITED: &str = "
namespace llm {
    event facet Write(topic: String) => (text: String)
    facet Try(topic: String) => (text: String) andThen {
        text = Write(topic = $.topic) with LIMIT
        yield Try(text = text.text)
    } catch {
        yield Try(text = $.error_type ++ \": \" ++ $.error)
    }
    workflow Essay(topic: String) => (receipt: String) andThen {
        text = Try(topic = $.topic)
        yield Essay(receipt = text.text)
    }
}
";

/// A handler that sends heartbeats for ever is stopped by the time of its attempt, and by the time of its step.
#[tokio::test(start_paused = true)]
async fn f15_heartbeats_prolong_neither_an_attempt_nor_a_step() {
    let limits = [
        ("AttemptTimeout(seconds = 5)", "timeout: the attempt took more than its AttemptTimeout of 5000 ms"),
        ("Timeout(seconds = 5)", "timeout: the Timeout of 5000 ms of the step is over"),
    ];
    for (limit, expected) in limits {
        let clock = SimClock::new(Clock::System.now());
        let world = World::over(Arc::new(Memory::new(Clock::Simulated(clock.clone()))));
        let worker = world.worker(Profile::Poller);
        let stopped = Arc::new(tokio::sync::Notify::new());
        let heard = stopped.clone();
        worker.register(
            "Write",
            concurrent(move |call: Call| {
                let heard = heard.clone();
                async move {
                    loop {
                        tokio::select! {
                            _ = call.context.stopped() => break,
                            () = sleep(Duration::from_millis(100)) => call.context.heartbeat(),
                        }
                    }
                    heard.notify_one();
                    Ok(Object::from_iter([("text".to_owned(), json!("late"))]))
                }
            }),
        );
        let run = world.start(&LIMITED.replace("LIMIT", limit), json!({"topic": "patience"})).await;
        let begun = Instant::now();
        let working = work(&worker);
        let receipt = world.receipt(&run).await;
        assert!(receipt.as_str().unwrap().starts_with(expected), "{limit}: {receipt}");
        timeout(MINUTE, stopped.notified()).await.expect("the handler is told to stop");
        let took = begun.elapsed();
        assert!((Duration::from_secs(5)..Duration::from_secs(7)).contains(&took), "{limit}: {took:?}");
        working.stop().await;
    }
}

//! A worker bounded to one run, beside other processes on the same store.

use std::fmt::Write as _;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use afl_agents::handler::{Call, concurrent};
use afl_agents::worker::{Profile, StopReason, Worker, WorkerError};
use afl_runtime::agent::{ClaimRequest, FacetFilter};
use afl_runtime::{Millis, RunId};
use afl_store::clock::{Clock, SimClock};
use afl_store::fault::{Fault, Faulty};
use afl_store::memory::Memory;
use serde_json::json;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

use crate::spy::Hearing;
use crate::world::{World, object, paid};

const TWO: &str = r"
namespace two {
    event facet Here(n: Long) => (n: Long)
    event facet There(n: Long) => (n: Long)
    workflow Both() => (n: Long) andThen {
        long = Here(n = 1)
        other = There(n = 2)
        next = Here(n = other.n)
        yield Both(n = long.n + next.n)
    }
}
";

fn finish(worker: &Worker, run: &RunId) -> JoinHandle<Result<StopReason<()>, WorkerError>> {
    let (worker, run) = (worker.clone(), run.clone());
    tokio::spawn(async move { worker.finish(&run, Duration::ZERO, pending()).await })
}

#[tokio::test(start_paused = true)]
async fn a_worker_of_one_run_stops_when_another_process_pauses_the_run() {
    let world = World::new();
    let run = world.checkout().await;
    let worker = world.worker(Profile::Poller);
    let began = Arc::new(Notify::new());
    let begins = began.clone();
    worker.register(
        "billing.ProcessPayment",
        concurrent(move |_| {
            begins.notify_one();
            pending()
        }),
    );
    let finished = finish(&worker, &run);
    began.notified().await;
    world.restarted().service.pause(&run).await.unwrap();
    assert_eq!(finished.await.unwrap().unwrap(), StopReason::Held);
}

/// The other process drives the run too, so its evaluation creates a task that the worker's own has not seen.
#[tokio::test(start_paused = true)]
async fn a_worker_of_one_run_does_the_tasks_that_another_process_created() {
    let world = World::new();
    let run = world.start(TWO, json!({})).await;
    let worker = world.worker(Profile::Poller);
    let (begins, mut began) = mpsc::unbounded_channel();
    let may_end = Arc::new(Notify::new());
    let waits = may_end.clone();
    let here = move |call: Call| {
        let (waits, n) = (waits.clone(), call.payload["n"].clone());
        begins.send(n.clone()).unwrap();
        async move {
            if n == 1 {
                waits.notified().await;
            }
            Ok(object(json!({ "n": n })))
        }
    };
    worker.register("two.Here", concurrent(here));
    let finished = finish(&worker, &run);
    assert_eq!(began.recv().await.unwrap(), 1);
    let other = world.restarted().service;
    let request = ClaimRequest::new(FacetFilter::Only(vec!["two.There".to_owned()]), "another");
    let claim = other.claim(&request).await.unwrap().pop().unwrap();
    other.complete(&claim.ticket, &claim.payload).await.unwrap();
    assert_eq!(began.recv().await.unwrap(), 2, "the first step is still in work");
    may_end.notify_one();
    assert_eq!(finished.await.unwrap().unwrap(), StopReason::Ended);
    assert_eq!(world.service.outputs(&run).await.unwrap(), object(json!({"n": 3})));
}

#[tokio::test(start_paused = true)]
async fn a_worker_of_one_run_leaves_the_tasks_of_other_runs() {
    let world = World::new();
    let [run, other] = [world.checkout().await, world.checkout().await];
    let worker = world.worker(Profile::Poller);
    worker.register("billing.ProcessPayment", concurrent(|_| async { Ok(paid()) }));
    assert_eq!(worker.finish(&run, Duration::ZERO, pending::<()>()).await.unwrap(), StopReason::Ended);
    assert_eq!(world.receipt(&run).await, "txn-12345");
    assert!(!world.service.run(&other).await.unwrap().status.is_terminal());
    assert_eq!(world.service.stats().await.unwrap().pending.values().sum::<usize>(), 1);
}

/// The other process dies with the task, so its lease ends; no janitor runs.
#[tokio::test(start_paused = true)]
async fn a_worker_of_one_run_takes_over_from_a_holder_that_fell_silent() {
    let world = World::simulated(Hearing::Good);
    let run = world.checkout().await;
    let request = ClaimRequest { lease: Millis(10_000), ..ClaimRequest::new(FacetFilter::All, "another") };
    assert_eq!(world.restarted().service.claim(&request).await.unwrap().len(), 1);
    let worker = world.worker(Profile::Poller);
    worker.register("billing.ProcessPayment", concurrent(|_| async { Ok(paid()) }));
    let finished = finish(&worker, &run);
    for _ in 0..20 {
        assert!(!finished.is_finished() || world.clock.now() >= Millis(1_800_000_010_000), "the lease lasts");
        world.pass(1_000).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
    assert!(finished.is_finished(), "its lease is over");
    assert_eq!(finished.await.unwrap().unwrap(), StopReason::Ended);
}

fn chain(steps: usize) -> String {
    let mut text = "namespace chain {
        event facet Next(n: Long) => (n: Long)
        workflow Long(n: Long) => (n: Long) andThen {
            s0 = Next(n = $.n)\n"
        .to_owned();
    for step in 1..steps {
        writeln!(text, "s{step} = Next(n = s{}.n)", step - 1).unwrap();
    }
    write!(text, "yield Long(n = s{}.n) }} }}", steps - 1).unwrap();
    text
}

/// The records that a run of such steps costs beside held runs. Each step takes a second, so the worker looks for
/// changes of other processes at each one, and reads its open tasks again many times.
async fn records(steps: usize, held_runs: usize) -> u64 {
    let store = Arc::new(Faulty::new(Arc::new(Memory::new(Clock::System)), |_| Fault::None));
    let world = World::over(store.clone());
    for _ in 0..held_runs {
        let held = world.start(&chain(1), json!({"n": 1})).await;
        world.service.pause(&held).await.unwrap();
        // A claim finds its run held, and puts the task aside.
        let request = ClaimRequest::new(FacetFilter::All, "another");
        assert!(world.service.claim(&request).await.unwrap().is_empty());
    }
    let run = world.start(&chain(steps), json!({"n": 7})).await;
    let worker = world.worker(Profile::Poller);
    let next = |call: Call| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(call.payload)
    };
    worker.register("chain.Next", concurrent(next));
    let before = store.counts().records;
    assert_eq!(worker.finish(&run, Duration::ZERO, pending::<()>()).await.unwrap(), StopReason::Ended);
    store.counts().records - before
}

#[tokio::test(start_paused = true)]
async fn a_slow_run_costs_the_same_beside_any_number_of_held_runs() {
    assert_eq!(records(70, 50).await, records(70, 0).await);
}

#[tokio::test(start_paused = true)]
async fn a_step_of_a_long_slow_run_costs_what_one_of_a_short_run_does() {
    let [short, long] = [100, 1_000];
    let of_short = records(short, 0).await / short as u64;
    let of_long = records(long, 0).await / long as u64;
    assert!(of_long * 10 < of_short * 13, "{of_short} records a step of {short}, {of_long} of {long}");
}

const WAITS: &str = r#"
namespace wait {
    event facet Manager(q: String) => (a: String)
    facet Ask() => (a: String) andThen {
        m = Manager(q = "ok?") with Timeout(minutes = 5)
        yield Ask(a = m.a)
    } catch {
        yield Ask(a = $.error_type)
    }
    workflow Both() => (a: String) andThen {
        pause = afl.time.Wait(seconds = 30)
        ask = Ask()
        yield Both(a = ask.a ++ pause.at)
    }
}
"#;

/// The clock of the store follows that of the runtime.
#[tokio::test(start_paused = true)]
async fn a_worker_of_one_run_fires_timers_that_are_near_and_stops_before_one_that_is_far() {
    let clock = SimClock::new(Millis(1_800_000_000_000));
    let world = World::over(Arc::new(Memory::new(Clock::Simulated(clock.clone()))));
    let run = world.start(WAITS, json!({})).await;
    let worker = world.worker(Profile::Poller);
    let ticking = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            clock.advance(Millis(100));
        }
    });
    let begun = tokio::time::Instant::now();
    let minute = Duration::from_mins(1);
    let waits = worker.finish(&run, minute, pending::<()>()).await.unwrap();
    assert_eq!(waits, StopReason::Waiting);
    assert!((30..35).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    let ended = worker.finish(&run, 5 * minute, pending::<()>()).await.unwrap();
    assert_eq!(ended, StopReason::Ended);
    let outputs = world.service.outputs(&run).await.unwrap();
    assert_eq!(outputs["a"], json!("timeout2027-01-15T08:00:30.000Z"));
    assert!((300..305).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    ticking.abort();
}

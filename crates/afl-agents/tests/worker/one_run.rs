//! A worker bounded to one run, beside other processes on the same store.

use std::future::pending;
use std::sync::Arc;

use afl_agents::handler::{Call, concurrent};
use afl_agents::worker::{Profile, StopReason, Worker, WorkerError};
use afl_runtime::RunId;
use afl_runtime::agent::{ClaimRequest, FacetFilter};
use serde_json::json;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

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
    tokio::spawn(async move { worker.finish(&run, pending()).await })
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
    assert_eq!(worker.finish(&run, pending::<()>()).await.unwrap(), StopReason::Ended);
    assert_eq!(world.receipt(&run).await, "txn-12345");
    assert!(!world.service.run(&other).await.unwrap().status.is_terminal());
    assert_eq!(world.service.stats().await.unwrap().pending.values().sum::<usize>(), 1);
}

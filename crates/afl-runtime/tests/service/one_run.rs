//! An agent that serves one run.

use std::sync::Arc;

use afl_engine::id::StepId;
use afl_runtime::agent::{ClaimRequest, FacetFilter};
use afl_runtime::{RunDriver, TaskQuery};
use serde_json::json;

use crate::world::World;

// covers: SDK-3.3-b, SDK-3.3-c, SDK-3.3-d
#[tokio::test]
async fn a_step_is_claimed_by_one_agent_and_not_while_its_run_is_held() {
    let world = World::new();
    let [run, other] = [world.start("One", json!({"n": 1})).await, world.start("One", json!({"n": 5})).await];
    let step: StepId = "wb0s0".parse().unwrap();
    let claim = async |owner| {
        let request = ClaimRequest::new(FacetFilter::All, owner);
        let task = world.service.task(&run, &step).await.unwrap().map(Arc::new);
        world.service.claim(&ClaimRequest { task, ..request }).await.unwrap().pop()
    };

    world.service.pause(&run).await.unwrap();
    assert!(claim("early").await.is_none());
    world.service.resume(&run).await.unwrap();
    let claimed = claim("first").await.unwrap();
    assert_eq!(claimed.payload["n"], 1);
    assert!(claim("second").await.is_none());

    // The tasks of others are where they were.
    let rest = world.service.stats().await.unwrap().pending;
    assert_eq!(rest.values().sum::<usize>(), 1);
    let result = json!({"n": 2}).as_object().unwrap().clone();
    world.service.complete(&claimed.ticket, &result).await.unwrap();
    world.service.turn().await.unwrap();
    assert_eq!(world.outputs(&run).await, json!({"n": 2}));
    assert_eq!(world.outputs(&other).await, json!({}));
}

#[tokio::test]
async fn a_driver_of_one_run_reads_its_open_tasks_in_bounded_calls() {
    const PAGE: u64 = 500;
    let world = World::new();
    let items: Vec<u64> = (0..1_200).collect();
    let run = world.start("Fan", json!({ "items": items })).await;
    let query = TaskQuery { run: Some(run.clone()), limit: 2_000, ..TaskQuery::default() };
    let steps: Vec<StepId> =
        world.service.tasks(&query).await.unwrap().tasks.iter().map(|task| task.step_id.clone()).collect();
    let driver = RunDriver::new(world.service.clone(), run);
    let before = world.faulty.counts();
    let tasks = driver.tasks(steps.clone()).await.unwrap();
    let after = world.faulty.counts();
    assert_eq!((tasks.len(), steps.len()), (1_200, 1_200));
    let (calls, records) = (after.calls - before.calls, after.records - before.records);
    assert!(records <= calls * PAGE, "{records} records in {calls} calls");
}

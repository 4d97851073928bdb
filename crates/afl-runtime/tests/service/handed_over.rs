//! Starts that are left to runners, as tasks that are no step's.

use afl_engine::event::EventError;
use afl_engine::id::RunId;
use afl_engine::run::RunStatus;
use afl_engine::task::{MAX_DELIVERIES, Task, TaskKind, TaskState};
use afl_engine::time::Millis;
use afl_runtime::agent::{Claim, ClaimRequest, FacetFilter};
use afl_runtime::doctor::{Finding, Promise, Remedy, Repair, Report};
use afl_runtime::{CancelResult, EXECUTE, Error, NotFound, RunQuery, StateRefusal, TaskQuery};
use serde_json::json;

use crate::world::World;

async fn claim(world: &World) -> Option<Claim> {
    let request = ClaimRequest::new(FacetFilter::Only(vec![EXECUTE.to_owned()]), "runner");
    world.service.claim(&request).await.unwrap().pop()
}

/// As a runner does.
async fn work(world: &World) {
    let claim = claim(world).await.expect("the task is there");
    match world.service.execute(claim.payload.clone()).await {
        Ok(result) => drop(world.service.complete(&claim.ticket, &result).await.unwrap()),
        Err(error) => {
            let error = EventError::new("refused", error.to_string());
            drop(world.service.fail(&claim.ticket, &error).await.unwrap());
        }
    }
}

async fn listed(world: &World, state: TaskState) -> Vec<Task> {
    let query = TaskQuery { state: Some(state), limit: 100, ..TaskQuery::default() };
    world.service.tasks(&query).await.unwrap().tasks
}

async fn runs(world: &World) -> Vec<RunId> {
    let list = world.service.runs(&RunQuery { limit: 100, ..RunQuery::default() }).await.unwrap();
    list.runs.into_iter().map(|run| run.id).collect()
}

#[tokio::test]
async fn a_start_that_is_handed_over_is_made_once_however_often_it_is_delivered() {
    let world = World::new();
    let handed = world.service.hand_over(world.request("Two", json!({"n": 1})).await).await.unwrap();
    assert!(handed.is_new);
    let waiting = listed(&world, TaskState::Pending).await;
    let [task] = &waiting[..] else { panic!("{waiting:?}") };
    assert_eq!(
        (&*task.name, task.path.as_str(), task.kind()),
        ("afl:execute", "start t.Two", TaskKind::System)
    );
    assert_eq!(runs(&world).await, [], "nothing is begun");
    let unknown = world.service.find(&handed.run.0).await.unwrap_err();
    assert!(
        matches!(&unknown, Error::Refused(StateRefusal::NotBegun { run, .. }) if *run == handed.run),
        "{unknown}"
    );

    // A runner dies right after the start, and another one does it again.
    let dead = claim(&world).await.unwrap();
    world.service.execute(dead.payload.clone()).await.unwrap();
    world.clock.advance(Millis(60_001));
    world.service.sweep_once().await.unwrap();
    assert!(world.service.complete(&dead.ticket, &json!({}).as_object().unwrap().clone()).await.is_err());
    work(&world).await;
    assert_eq!(runs(&world).await, std::slice::from_ref(&handed.run));
    let ended = listed(&world, TaskState::Completed).await;
    assert_eq!((ended.len(), ended[0].token), (1, 2));

    world.finish().await;
    assert_eq!(world.outputs(&handed.run).await, json!({"n": 3}));
    let direct = world.start("Two", json!({"n": 1})).await;
    world.finish().await;
    let canonical = |run: RunId| {
        let world = &world;
        async move { world.service.canonical(&run).await.unwrap() }
    };
    assert_eq!(canonical(handed.run).await, canonical(direct).await, "it is a run like any other");
}

#[tokio::test]
async fn refused_inputs_are_a_failed_task_that_says_why_and_frees_its_key() {
    let world = World::new();
    let mut wrong = world.request("One", json!({"n": "many"})).await;
    wrong.idempotency_key = Some("order-17".to_owned());
    let handed = world.service.hand_over(wrong.clone()).await.unwrap();
    assert_eq!(
        world.service.hand_over(wrong).await.unwrap().run,
        handed.run,
        "the same key is the same start"
    );
    work(&world).await;
    let failed = listed(&world, TaskState::Failed).await;
    let reason = failed[0].error.clone().unwrap();
    assert!(reason.contains("`n`"), "{reason}");
    assert_eq!(runs(&world).await, []);
    let told = world.service.find(&handed.run.0).await.unwrap_err().to_string();
    assert!(told.contains("could not be started") && told.contains(&reason), "{told}");

    let mut right = world.request("One", json!({"n": 1})).await;
    right.idempotency_key = Some("order-17".to_owned());
    let corrected = world.service.hand_over(right).await.unwrap();
    assert!(corrected.is_new);
    work(&world).await;
    world.finish().await;
    assert_eq!(world.outputs(&corrected.run).await, json!({"n": 2}));
}

#[tokio::test]
async fn a_key_stands_for_one_run_whether_it_is_started_here_or_handed_over() {
    let world = World::new();
    let mut request = world.request("One", json!({"n": 1})).await;
    request.idempotency_key = Some("k".to_owned());
    let handed = world.service.hand_over(request.clone()).await.unwrap();
    let started = world.service.start(request.clone()).await.unwrap();
    assert_eq!((started.run, started.is_new), (handed.run.clone(), false));
    assert_eq!(started.status, RunStatus::Running, "it will be started");
    let mut other = world.request("One", json!({"n": 2})).await;
    other.idempotency_key = Some("k".to_owned());
    assert!(matches!(
        world.service.hand_over(other).await,
        Err(Error::Refused(StateRefusal::KeyTaken { .. }))
    ));
    work(&world).await;
    world.finish().await;
    let again = world.service.hand_over(request).await.unwrap();
    assert_eq!((again.run, again.status, again.is_new), (handed.run, RunStatus::Completed, false));
    assert_eq!(runs(&world).await.len(), 1);
}

#[tokio::test]
async fn a_start_that_kills_its_runners_fails_in_the_end() {
    let world = World::new();
    world.service.hand_over(world.request("One", json!({"n": 1})).await).await.unwrap();
    for _ in 0..MAX_DELIVERIES {
        assert!(claim(&world).await.is_some());
        world.clock.advance(Millis(60_001));
        world.service.sweep_once().await.unwrap();
    }
    assert!(claim(&world).await.is_none());
    let failed = listed(&world, TaskState::Failed).await;
    assert!(failed[0].error.as_deref().unwrap().contains("its lease ran out 5 times"), "{failed:?}");

    let asked = world.service.ask_again(&failed[0].workflow_id, None).await.unwrap();
    assert_eq!((asked.state, asked.deliveries), (TaskState::Pending, 0));
    work(&world).await;
    assert_eq!(runs(&world).await.len(), 1);
}

#[tokio::test]
async fn a_start_that_is_withdrawn_is_not_made_and_its_runner_loses_it() {
    let world = World::new();
    let mut request = world.request("One", json!({"n": 1})).await;
    request.idempotency_key = Some("k".to_owned());
    let first = world.service.hand_over(request.clone()).await.unwrap();
    let claimed = claim(&world).await.unwrap();
    world.service.withdraw(&claimed.task.workflow_id).await.unwrap();
    let began = world.service.execute(claimed.payload.clone()).await;
    assert!(matches!(began, Err(Error::Refused(StateRefusal::NotBegun { .. }))), "{began:?}");
    let late = world.service.complete(&claimed.ticket, &claimed.payload).await;
    assert!(late.is_err(), "{late:?}");
    let second = world.service.hand_over(request).await.unwrap();
    assert_ne!(second.run, first.run, "the key is free again");
    assert_eq!(runs(&world).await, []);
}

#[tokio::test]
async fn old_system_tasks_are_deleted_with_all_their_records() {
    let world = World::new();
    let long: Vec<i64> = (0..5_000).collect();
    world.service.hand_over(world.request("Fan", json!({"items": long})).await).await.unwrap();
    work(&world).await;
    let task = listed(&world, TaskState::Completed).await.pop().unwrap();
    let store = world.store();
    assert!(store.inspect(&task.workflow_id, None, 100).await.unwrap().len() > 2, "its inputs are large");
    world.clock.advance(Millis(1_000));
    world.service.collect(world.clock.now()).await.unwrap();
    assert!(store.inspect(&task.workflow_id, None, 100).await.unwrap().is_empty());
    assert_eq!(listed(&world, TaskState::Completed).await, []);
    assert_eq!(runs(&world).await.len(), 1, "the run is another thing");
    world.examine().await;
}

#[tokio::test]
async fn canceling_a_run_that_has_not_begun_takes_its_start_back() {
    let world = World::new();
    let mut request = world.request("One", json!({"n": 1})).await;
    request.idempotency_key = Some("k".to_owned());
    for taken_by_a_runner in [false, true] {
        let run = world.service.hand_over(request.clone()).await.unwrap().run;
        let held = if taken_by_a_runner { claim(&world).await } else { None };
        for _ in 0..2 {
            assert_eq!(world.service.cancel(&run).await.unwrap(), CancelResult::Start);
        }
        assert!(claim(&world).await.is_none());
        if let Some(held) = held {
            let late = world.service.execute(held.payload).await.unwrap_err();
            assert!(late.to_string().contains("canceled before it was started"), "{late}");
        }
        assert_eq!(runs(&world).await, []);
        world.examine().await;
    }
    // Its key can be used again, and a run that has begun is canceled as any other.
    let run = world.service.hand_over(request).await.unwrap().run;
    work(&world).await;
    assert_eq!(world.service.cancel(&run).await.unwrap(), CancelResult::Run);
    assert_eq!(world.status(&run).await, RunStatus::Canceled);
    let unknown = world.service.cancel(&RunId("none".into())).await.unwrap_err();
    assert!(matches!(unknown, Error::NotFound(NotFound::Run { .. })), "{unknown}");
}

#[tokio::test]
async fn the_doctor_finds_system_tasks_that_are_damaged_or_misplaced() {
    let world = World::new();
    let mut starts = Vec::new();
    for n in 0..4 {
        let run = world.service.hand_over(world.request("One", json!({ "n": n })).await).await.unwrap().run;
        starts.push(format!("@execute/{run}"));
        world.clock.advance(Millis(1));
    }
    work(&world).await;
    claim(&world).await.expect("one is in work");
    let healthy = world.service.doctor(Remedy::Tell).await.unwrap();
    assert_eq!((healthy.runs, healthy.system_tasks, healthy.findings), (1, 4, Vec::new()));

    let task = "t/w";
    world.rewrite(&starts[2], task, |content| content.place.as_mut().unwrap().bucket = "ended".into()).await;
    world.damage(&starts[3], task).await;
    let found = |report: Report| {
        let finding = |finding: Finding| (finding.promise, finding.repair, finding.run.to_string());
        let mut found: Vec<_> = report.findings.into_iter().map(finding).collect();
        // Ids of the same second are in no order.
        found.sort_by_key(|(promise, ..)| *promise);
        found
    };
    let misplaced = |repair| (Promise::NoSilentStall, repair, starts[2].clone());
    let damaged = (Promise::FailStop, Repair::ByHand, starts[3].clone());
    let first = world.service.doctor(Remedy::Tell).await.unwrap();
    assert_eq!(found(first), [misplaced(Repair::Possible), damaged.clone()]);
    let fixed = world.service.doctor(Remedy::Fix).await.unwrap();
    assert_eq!(found(fixed), [misplaced(Repair::Done), damaged.clone()]);
    assert_eq!(found(world.service.doctor(Remedy::Tell).await.unwrap()), [damaged]);
    assert_eq!(claim(&world).await.unwrap().ticket.run.to_string(), starts[2]);
    world.service.discard(&RunId(starts[3].as_str().into())).await.unwrap();
    assert_eq!(world.service.doctor(Remedy::Tell).await.unwrap().findings, []);
}

//! The records of a task, and how they are shown.

use afl_engine::event::{EventState, Reception};
use afl_engine::id::RunId;
use afl_engine::state::State;
use afl_engine::task::TaskState;
use afl_runtime::agent::Actor;
use afl_runtime::view::TaskView;
use afl_runtime::{Again, Error, InvalidRequest, PageCursor, ReportedOutcome, RunQuery, Service, TaskQuery};
use serde_json::json;

use crate::world::{World, inc};

async fn events(world: &World, run: &RunId, path: &str) -> Vec<String> {
    let step = world.step(run, path).await;
    let task = world.store().task(run, &step).await.unwrap().unwrap().item;
    task.events().iter().map(|event| format!("{} {}", event.event_type, event.actor)).collect()
}

async fn views(world: &World, query: &TaskQuery) -> Vec<TaskView> {
    world.service.view_tasks(&world.service.tasks(query).await.unwrap().tasks).await.unwrap()
}

fn ada(world: &World) -> Service {
    world.service.clone().acting_as(Actor::User("ada".to_owned()))
}

// covers: SDK-3.1-a, SDK-3.1-b, SDK-3.1-d
#[tokio::test]
async fn a_task_is_shown_with_the_fields_of_the_documents() {
    let world = World::new();
    let run = world.start("Two", json!({"n": 1})).await;
    let query = TaskQuery { limit: 10, ..TaskQuery::default() };
    let [waiting] = &views(&world, &query).await[..] else { panic!("one task waits") };
    let created = world.clock.now();
    assert_eq!(
        serde_json::to_value(waiting).unwrap(),
        json!({
            "uuid": format!("{run}/wb0s0"), "name": "t.Inc", "kind": "event", "runner_id": run, "claimer": null,
            "workflow_id": run, "flow_id": world.run(&run).await.workflow_version, "step_id": "wb0s0",
            "state": "pending", "created": created, "updated": created, "error": null,
            "task_list_name": "default", "data_type": "", "data": {"n": 1},
            "path": "Two.a", "error_kind": null, "attempts": 0, "claims": 0, "priority": 50,
            "not_before": null, "times_out": null, "desired_server": null, "expires": null, "started": null, "ended": null,
        })
    );
    world.claim(1).await;
    let [held] = &views(&world, &query).await[..] else { panic!("one task is held") };
    assert_eq!((held.state, held.claimer.as_deref()), (TaskState::Running, Some("agent")));
}

// covers: XR-20
#[tokio::test]
async fn xr20_a_retry_puts_step_event_and_task_back_together_and_is_recorded() {
    let world = World::new();
    let run = world.start("Risky", json!({"n": 1})).await;
    world.finish().await;
    let step = world.step(&run, "Risky.b").await;
    ada(&world).retry(&run, &Again::Step(step.clone())).await.unwrap();
    let store = world.store();
    let (at, task) = (store.step(&run, &step).await.unwrap(), store.task(&run, &step).await.unwrap());
    let event = store.event(&run, &step).await.unwrap().unwrap().item;
    assert_eq!(at.unwrap().item.state, State::EventTransmit);
    assert_eq!((event.state, event.reception), (EventState::Created, Reception::Open));
    let task = task.unwrap().item;
    assert_eq!((task.state, task.deliveries, task.attempts), (TaskState::Pending, 0, 0));
    assert_eq!((&task.error, &task.error_kind), (&None, &None));
    let told = events(&world, &run, "Risky.b").await;
    assert_eq!(told[4..], ["ERROR agent:agent", "RETRIED user:ada", "QUEUED user:ada"]);
    world.examine().await;
}

#[tokio::test]
async fn decisions_of_people_are_recorded_under_their_names() {
    let world = World::new();
    let run = world.start("Risky", json!({"n": 1})).await;
    world.finish().await;
    let step = world.step(&run, "Risky.b").await;
    let done = ReportedOutcome::Done(json!({"n": 2}).as_object().unwrap().clone());
    ada(&world).answer(&run, &step, &done).await.unwrap();
    assert_eq!(events(&world, &run, "Risky.b").await[4..], ["ERROR agent:agent", "COMPLETED user:ada"]);
    ada(&world).cancel(&run).await.unwrap();
    let created = ["CREATED system", "QUEUED system"];
    assert_eq!(events(&world, &run, "Risky.c").await[..], [created[0], created[1], "CANCELLED user:ada"]);

    let told = world.start("Told", json!({"n": 1})).await;
    ada(&world).skip(&told, &world.step(&told, "Told.a").await).await.unwrap();
    assert_eq!(events(&world, &told, "Told.a").await[2..], ["IGNORED user:ada"]);
    for claim in world.claim(1).await {
        world.service.complete(&claim.ticket, &inc(&claim)).await.unwrap();
    }
}

// covers: XR-2
#[tokio::test]
async fn xr2_both_spellings_of_a_state_are_understood_and_one_is_printed() {
    let both = [
        ("pending", "QUEUED"),
        ("running", "RUNNING"),
        ("awaiting_response", "AWAITING_RESPONSE"),
        ("completed", "COMPLETE"),
        ("failed", "ERROR"),
        ("canceled", "CANCELLED"),
        ("ignored", "IGNORED"),
    ];
    for (canonical, alias) in both {
        let state = TaskState::spelled(alias).unwrap();
        assert_eq!((state.name(), TaskState::spelled(canonical)), (canonical, Some(state)));
    }
    assert_eq!(TaskState::spelled("DONE"), None);
}

#[tokio::test]
async fn the_tasks_of_a_run_come_in_pages_whose_cursors_have_a_text_form() {
    let world = World::new();
    let run = world.start("Fan", json!({"items": [1, 2, 3, 4, 5]})).await;
    let mut query = TaskQuery { run: Some(run.clone()), limit: 2, ..TaskQuery::default() };
    let mut seen = Vec::new();
    loop {
        let list = world.service.tasks(&query).await.unwrap();
        seen.push(list.tasks.len());
        let Some(next) = list.next else { break };
        query.after = Some(next.to_string().parse::<PageCursor>().unwrap());
    }
    assert_eq!(seen, [2, 2, 1]);
    // A page that holds the rest has none behind it.
    assert_eq!(world.service.tasks(&TaskQuery { limit: 1, ..query.clone() }).await.unwrap().next, None);

    let other = world.start("Two", json!({"n": 1})).await;
    let runs = world.service.runs(&RunQuery { limit: 1, ..RunQuery::default() }).await.unwrap();
    for (run, after) in [(Some(other), query.after.clone()), (Some(run), runs.next), (None, query.after)] {
        let refused = world.service.tasks(&TaskQuery { run, after, limit: 2, ..TaskQuery::default() }).await;
        assert!(matches!(refused, Err(Error::Invalid(InvalidRequest::Cursor(_)))), "{refused:?}");
    }
}

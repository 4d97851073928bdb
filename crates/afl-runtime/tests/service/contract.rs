//! The demands of the documents on a runtime's interface: permissions, and the result of each call.

use afl_engine::attribute::ValueRef;
use afl_engine::run::RunStatus;
use afl_engine::state::State;
use afl_engine::task::TaskState;
use afl_runtime::agent::{ClaimRequest, FacetFilter, Refusal};
use afl_runtime::{Arrival, DriveStatus, RunWork, StartRequest, compile};
use afl_store::backend::{Backend, Scan};
use afl_store::record::{Record, Tenant};
use serde_json::json;

use crate::world::{World, answer, broken, inc};

async fn records(world: &World, run: &afl_engine::id::RunId, prefix: &str) -> Vec<Record> {
    let scan = Scan::Scope {
        tenant: Tenant::new(Tenant::LOCAL).unwrap(),
        scope: run.0.clone(),
        prefix: prefix.to_owned(),
        after: None,
        limit: 1_000,
    };
    world.memory.scan(&scan).await.unwrap()
}

// covers: SDK-6.4-a, SDK-6.4-b, RT-10.1-b, RT-2-b
#[tokio::test]
async fn driving_goes_to_the_next_fixed_point_and_says_where_that_is() {
    let world = World::new();
    let run = world.start("Two", json!({"n": 1})).await;
    for (expected, outputs) in [(RunStatus::Paused, json!({})), (RunStatus::Completed, json!({"n": 3}))] {
        // Waiting work is visible to agents at the pause.
        let held = world.claim(1).await.remove(0);
        world.service.complete(&held.ticket, &inc(&held)).await.unwrap();
        let arrivals = vec![Arrival { step: held.ticket.step.clone(), event: None }];
        let work = RunWork { run: run.clone(), arrivals };
        // Two processes that know nothing but the store; what one did the other finds done.
        for process in [world.restarted(), world.restarted()] {
            let driven = process.service.drive_once(&work).await.unwrap();
            assert_eq!(driven.status, DriveStatus::Rests(expected));
        }
        assert_eq!(world.outputs(&run).await, outputs);
    }
    assert_eq!(world.run(&run).await.iterations_per_run.len(), 3);
    world.examine().await;
}

// covers: RT-16-a, RT-16-b, RT-16-c
#[tokio::test]
async fn an_agent_changes_its_event_and_its_task_and_never_a_step() {
    let world = World::new();
    let run = world.start("Fan", json!({"items": [1, 2]})).await;
    let (steps, tasks, events) = (
        records(&world, &run, "s/").await,
        records(&world, &run, "t/").await,
        records(&world, &run, "e/").await,
    );
    let held = world.claim(1).await.remove(0);
    let seen = world.service.steps(&run, Some(&held.ticket.step), None, 9).await.unwrap().steps;
    assert_eq!(seen[0].step.attributes.params.len(), held.payload.len());

    let mut result = inc(&held);
    result.insert("steps".to_owned(), json!([{"id": "wb0e9", "state": "state.statement.Complete"}]));
    world.service.complete(&held.ticket, &result).await.unwrap();
    assert_eq!(records(&world, &run, "s/").await, steps);
    let changed = |before: &[Record], after: &[Record]| {
        assert_eq!(before.len(), after.len());
        let changed = before.iter().zip(after).filter(|(before, after)| before != after);
        changed.map(|(before, _)| before.key.id.clone()).collect::<Vec<_>>()
    };
    let own = &held.ticket.step;
    assert_eq!(changed(&tasks, &records(&world, &run, "t/").await), [format!("t/{own}")]);
    assert_eq!(changed(&events, &records(&world, &run, "e/").await), [format!("e/{own}")]);
    world.service.turn().await.unwrap();
    // The evaluator takes what the facet declares, and nothing else.
    let returns =
        world.service.steps(&run, Some(own), None, 1).await.unwrap().steps.remove(0).step.attributes.returns;
    assert_eq!(returns.keys().collect::<Vec<_>>(), ["n"]);
}

// covers: SDK-3.2-b, EVT-4-h
#[tokio::test]
async fn a_step_has_one_task_that_runs_once_at_a_time_and_is_free_again_when_it_ends() {
    let world = World::new();
    let run = world.start("Retried", json!({"n": 1})).await;
    let step = world.step(&run, "Retried.a").await;
    let state = async || {
        let steps = world.service.steps(&run, Some(&step), None, 1).await.unwrap().steps;
        steps[0].task.as_ref().unwrap().state
    };
    for attempt in 1..=3 {
        world.clock.advance(afl_engine::time::Millis(60_000));
        world.service.sweep_once().await.unwrap();
        assert_eq!(state().await, TaskState::Pending, "attempt {attempt}");
        let held = world.claim(9).await;
        assert_eq!((held.len(), state().await), (1, TaskState::Running), "attempt {attempt}");
        let others = ClaimRequest { max: 9, ..ClaimRequest::new(FacetFilter::All, "another") };
        assert!(world.service.claim(&others).await.unwrap().is_empty());
        world.service.fail(&held[0].ticket, &crate::world::broken()).await.unwrap();
    }
    assert_eq!(state().await, TaskState::Failed);
}

// covers: SDK-10.2-b, SDK-10.6-a
#[tokio::test]
async fn runs_that_are_driven_by_turns_come_out_as_each_does_alone() {
    let works =
        [("Two", json!({"n": 1})), ("Pairs", json!({"items": [5, 6, 7]})), ("Risky", json!({"n": 8}))];
    let mut alone = Vec::new();
    for (workflow, inputs) in works.clone() {
        let world = World::new();
        let run = world.start(workflow, inputs).await;
        world.finish().await;
        alone.push(world.service.canonical(&run).await.unwrap());
    }
    // Two processes over one store; the ids of the steps are the same in all runs.
    let one = World::new();
    let other = one.restarted();
    let mut runs = Vec::new();
    for (workflow, inputs) in works {
        runs.push(one.start(workflow, inputs).await);
    }
    loop {
        // One task of each, so that no run gets far before the others.
        let claims = [one.claim(1).await, other.claim(1).await, one.claim(1).await].concat();
        if claims.is_empty() {
            break;
        }
        for (at, claim) in claims.iter().enumerate() {
            let (answers, drives) = if at % 2 == 0 { (&one, &other) } else { (&other, &one) };
            answer(&answers.service, claim).await;
            let arrivals = vec![Arrival { step: claim.ticket.step.clone(), event: None }];
            drives.service.drive_once(&RunWork { run: claim.ticket.run.clone(), arrivals }).await.unwrap();
        }
    }
    for (run, alone) in runs.iter().zip(alone) {
        assert_eq!(other.service.canonical(run).await.unwrap(), alone);
    }
    one.examine().await;
}

// covers: XR-8, SDK-6.2-a, SDK-6.2-b, SDK-6.3-b
#[tokio::test]
async fn a_step_is_continued_or_failed_from_outside_at_its_event_and_not_before() {
    let program = "namespace t {
        event facet Inc(n: Long) => (n: Long)
        event facet Side(n: Long) => (k: Long)
        facet Prepared(n: Long) => (k: Long) andThen { s = Side(n = $.n) yield Prepared(k = s.k) }
        workflow Mixed() => (n: Long) andThen {
            a = Inc(n = 1) with Prepared(n = 1) as prepared
            b = Inc(n = a.n)
            yield Mixed(n = b.n)
        } }";
    let world = World::with_power_cuts();
    let hash = world.service.publish(&compile("t.afl", program).unwrap()).await.unwrap();
    let run = world.service.start(StartRequest::new(hash)).await.unwrap().run;
    let result = json!({"n": 2}).as_object().unwrap().clone();
    let step = world.step(&run, "Mixed.a").await;
    let at = async |step| world.store().step(&run, step).await.unwrap().unwrap().item;
    assert_eq!(at(&step).await.state, State::MixinBlocksContinue);
    let before = world.service.canonical(&run).await.unwrap();
    let early = world.service.continue_step(&run, &step, &result).await.unwrap_err();
    assert!(matches!(early, Refusal::TooEarly { .. }), "{early}");
    let early = world.service.fail_step(&run, &step, &broken()).await.unwrap_err();
    assert!(matches!(early, Refusal::TooEarly { .. }), "{early}");
    assert_eq!(world.service.canonical(&run).await.unwrap(), before);

    let side = world.claim(1).await.remove(0);
    world.service.complete(&side.ticket, json!({"k": 1}).as_object().unwrap()).await.unwrap();
    world.service.turn().await.unwrap();
    assert_eq!(at(&step).await.state, State::EventTransmit);
    world.service.continue_step(&run, &step, &result).await.unwrap();
    world.memory.power_cut(9);
    world.service.turn().await.unwrap();
    let continued = at(&step).await;
    assert_eq!(continued.state, State::Complete);
    assert_eq!(continued.attributes.returns["n"].held, ValueRef::Inline(json!(2)));

    let next = world.step(&run, "Mixed.b").await;
    world.service.fail_step(&run, &next, &broken()).await.unwrap();
    world.memory.power_cut(9);
    world.service.turn().await.unwrap();
    let failed = at(&next).await;
    assert_eq!((failed.state, failed.error.unwrap().message), (State::Error, "it broke".to_owned()));
    assert_eq!(world.status(&run).await, RunStatus::Failed);
    world.examine().await;
}

//! The promises of a service about runs, on memory with a simulated clock.

use crate::world::{PROGRAM, World, inc};
use afl_engine::attribute::ValueRef;
use afl_engine::run::RunStatus;
use afl_engine::state::State;
use afl_runtime::agent::{Actor, Refusal};
use afl_runtime::{
    Again, Error, InvalidRequest, NotFound, On, RunQuery, StartRequest, StateRefusal, StepView,
    TraceSubscription, WhyReason, compile,
};
use serde_json::json;

// covers: SDK-2.2-b, SDK-2.2-e, SDK-2.3-a, SDK-2.3-b, EVT-8-b, RT-10.1-a, RT-10.2-a
#[tokio::test]
async fn a_run_pauses_for_work_and_continues_with_its_result() {
    let world = World::new();
    let run = world.start("Two", json!({"n": 1})).await;
    assert_eq!(world.status(&run).await, RunStatus::Paused);
    world.finish().await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    assert_eq!(world.outputs(&run).await, json!({"n": 3}));
    assert_eq!(world.run(&run).await.iterations_per_run.len(), 3);
}

#[tokio::test]
async fn a_run_without_outside_work_ends_in_the_commit_that_starts_it() {
    let world = World::new();
    let request = world.request("Pure", json!({"n": 1})).await;
    let before = world.faulty.counts();
    let started = world.service.start(request).await.unwrap();
    let after = world.faulty.counts();
    assert_eq!(after.writes() - before.writes(), 1);
    assert_eq!(started.status, RunStatus::Completed);
    assert_eq!(world.outputs(&started.run).await, json!({"n": 3}));
}

#[tokio::test]
async fn a_run_with_one_event_costs_two_durable_commits() {
    let world = World::new();
    let request = world.request("One", json!({"n": 1})).await;
    let before = world.faulty.counts();
    let started = world.service.start(request).await.unwrap();
    world.finish().await;
    let after = world.faulty.counts();
    assert_eq!(world.status(&started.run).await, RunStatus::Completed);
    assert_eq!(after.durable_commits - before.durable_commits, 2);
    assert_eq!(after.relaxed_commits - before.relaxed_commits, 1);
}

#[tokio::test]
async fn wrong_inputs_are_refused_before_anything_is_stored() {
    let world = World::new();
    let request = world.request("One", json!({"m": 1})).await;
    let before = world.faulty.counts().writes();
    let error = world.service.start(request).await.unwrap_err();
    assert!(matches!(&error, Error::Invalid(InvalidRequest::Inputs(_))), "{error}");
    assert_eq!(world.faulty.counts().writes(), before);
    let request = world.request("Fam", json!({})).await;
    let error = world.service.start(request).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no workflow `Fam` in this program; did you mean `Fan`?");
}

#[tokio::test]
async fn f6_fifty_starts_with_one_key_give_one_run() {
    let world = World::new();
    let mut request = world.request("One", json!({"n": 1})).await;
    request.idempotency_key = Some("order-7".to_owned());
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (service, request) = (world.service.clone(), request.clone());
        starts.spawn(async move { service.start(request).await.unwrap() });
    }
    let started = starts.join_all().await;
    assert!(started.iter().all(|one| one.run == started[0].run));
    assert_eq!(started.iter().filter(|one| one.is_new).count(), 1);
    let list = world.service.runs(&RunQuery { limit: 100, ..RunQuery::default() }).await.unwrap();
    assert_eq!(list.runs.len(), 1);
    request.inputs.insert("n".to_owned(), json!(2));
    let error = world.service.start(request).await.unwrap_err();
    assert!(matches!(&error, Error::Refused(StateRefusal::KeyTaken { .. })), "{error}");
}

// covers: SDK-6.2-b, RT-13-a
#[tokio::test]
async fn a_failed_step_fails_its_run_with_its_readable_path() {
    let world = World::new();
    let run = world.start("Risky", json!({"n": 1})).await;
    world.finish().await;
    let step = world.step(&run, "Risky.b").await;
    let failed = world.store().step(&run, &step).await.unwrap().unwrap().item;
    assert_eq!((failed.state, failed.is_terminal()), (State::Error, true));
    let record = world.run(&run).await;
    assert_eq!(record.status, RunStatus::Failed);
    assert_eq!(record.error.unwrap().to_string(), "Risky.b: it broke");
    let why = world.service.why(&run).await.unwrap();
    assert!(matches!(&why.reason, WhyReason::Failed(failure) if failure.path == "Risky.b"), "{why:?}");
}

// covers: SDK-6.1-e, RT-12-c, RT-13-b, RT-13-c
#[tokio::test]
async fn t10_a_retry_resets_step_and_task_together_and_keeps_complete_steps() {
    let world = World::new();
    let run = world.start("Risky", json!({"n": 1})).await;
    world.finish().await;
    let step = world.step(&run, "Risky.b").await;
    let before = world.faulty.counts().durable_commits;
    assert_eq!(world.service.retry(&run, &Again::Run).await.unwrap(), [step]);
    assert_eq!(world.faulty.counts().durable_commits, before + 1);
    assert_eq!(world.status(&run).await, RunStatus::Paused);
    let claims = world.claim(10).await;
    let paths: Vec<&str> = claims.iter().map(|claim| claim.task.path.as_str()).collect();
    assert_eq!(paths, ["Risky.b"]);
    world.service.complete(&claims[0].ticket, &inc(&claims[0])).await.unwrap();
    world.finish().await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    assert_eq!(world.outputs(&run).await, json!({"n": 4}));
    let error = world.service.retry(&run, &Again::Run).await.unwrap_err();
    let message = format!("nothing of `Risky` in run {run} failed, so there is nothing to retry");
    assert_eq!(error.to_string(), message);
}

#[tokio::test]
async fn a_failed_element_of_a_foreach_is_retried_alone() {
    let world = World::new();
    let run = world.start("Fan", json!({"items": [1, 2, 3]})).await;
    let claims = world.claim(10).await;
    world.service.fail(&claims[1].ticket, &crate::world::broken()).await.unwrap();
    for at in [0, 2] {
        world.service.complete(&claims[at].ticket, &inc(&claims[at])).await.unwrap();
    }
    world.finish().await;
    assert_eq!(world.status(&run).await, RunStatus::Failed);
    let element = world.step(&run, "Fan[1]").await;
    assert_eq!(world.service.retry(&run, &Again::Step(element)).await.unwrap().len(), 1);
    assert_eq!(world.claim(0).await.len(), 0);
    world.finish().await;
    assert_eq!(world.outputs(&run).await, json!({"sum": [2, 3, 4]}));
}

#[tokio::test]
async fn g7_a_canceled_run_ends_whole_and_refuses_late_outcomes() {
    let world = World::new();
    let run = world.start("Fan", json!({"items": [1, 2, 3, 4]})).await;
    let claims = world.claim(2).await;
    world.service.cancel(&run).await.unwrap();
    assert_eq!(world.status(&run).await, RunStatus::Canceled);
    let refusal = world.service.complete(&claims[0].ticket, &inc(&claims[0])).await.unwrap_err();
    assert!(matches!(&refusal, Refusal::Canceled { path, .. } if path == "Fan[0].a"), "{refusal}");
    assert!(world.claim(10).await.is_empty());
    let steps = world.service.steps(&run, None, None, 100).await.unwrap().steps;
    assert!(steps.iter().all(|step| step.step.is_terminal()));
    assert!(steps.iter().filter_map(|step| step.task.as_ref()).all(|task| task.state.is_terminal()));
    world.service.cancel(&run).await.unwrap();
    let record = world.run(&run).await;
    assert_eq!(
        (record.counts.waiting, record.counts.complete + record.counts.failed),
        (0, record.counts.steps)
    );
}

#[tokio::test]
async fn a_cancel_that_crashed_is_completed_by_the_next_process() {
    let world = World::new();
    let run = world.start("Fan", json!({"items": [1, 2, 3, 4]})).await;
    let writes = world.faulty.counts().writes();
    for lost in 1.. {
        let crashing = World::new();
        let run = crashing.start("Fan", json!({"items": [1, 2, 3, 4]})).await;
        crashing.faulty.plan(afl_store::fault::at_write(
            writes + lost,
            afl_store::fault::Fault::Gone(afl_store::fault::FaultMoment::Before),
        ));
        let outcome = crashing.service.cancel(&run).await;
        let next = crashing.restarted();
        next.service.turn().await.unwrap();
        match (lost, outcome) {
            (1, outcome) => {
                outcome.unwrap_err();
                assert_eq!(next.status(&run).await, RunStatus::Paused);
            }
            (_, Err(_)) => assert_eq!(next.status(&run).await, RunStatus::Canceled),
            (_, Ok(_)) => break,
        }
    }
    world.service.cancel(&run).await.unwrap();
}

#[tokio::test]
async fn a_held_run_is_neither_evaluated_nor_handed_out() {
    let world = World::new();
    let run = world.start("Two", json!({"n": 1})).await;
    let claims = world.claim(1).await;
    world.service.pause(&run).await.unwrap();
    world.service.complete(&claims[0].ticket, &inc(&claims[0])).await.unwrap();
    world.service.turn().await.unwrap();
    assert!(world.claim(10).await.is_empty());
    let why = world.service.why(&run).await.unwrap();
    assert_eq!(why.reason, WhyReason::Held);
    assert_eq!(why.waits[0].on, On::Driver);
    world.service.resume(&run).await.unwrap();
    world.finish().await;
    assert_eq!(world.outputs(&run).await, json!({"n": 3}));
}

#[tokio::test]
async fn why_shows_the_chain_and_what_to_do() {
    let world = World::new();
    let run = world.start("Fan", json!({"items": [1, 2]})).await;
    world.claim(1).await;
    let why = world.service.why(&run).await.unwrap();
    assert_eq!(why.reason, WhyReason::Waiting);
    assert_eq!(why.waiting, 2);
    let chain: Vec<(&str, State)> =
        why.waits[1].chain.iter().map(|link| (link.path.as_str(), link.state)).collect();
    assert_eq!(
        chain,
        [
            ("Fan", State::StatementBlocksContinue),
            ("Fan", State::BlockExecutionContinue),
            ("Fan[1]", State::BlockExecutionContinue),
            ("Fan[1].a", State::EventTransmit),
        ]
    );
    assert!(matches!(&why.waits[0].on, On::Holder { owner, .. } if owner == "agent"));
    let advice = why.waits[1].on.advice();
    assert_eq!(advice, "start an agent for `t.Inc` on the task list `default`");
    assert!(why.next.is_some());
}

#[tokio::test]
async fn why_of_a_step_counts_the_waiting_steps_within_it_and_no_more() {
    let world = World::new();
    let run = world.start("Fan", json!({"items": [1, 2, 3]})).await;
    let element = world.step(&run, "Fan[1]").await;
    assert_eq!(world.service.why(&run).await.unwrap().waiting, 3);
    assert_eq!(world.service.why_within(&run, &element).await.unwrap().waiting, 1);
}

#[tokio::test]
async fn a_run_is_found_by_a_part_of_its_id() {
    let world = World::new();
    let run = world.start("Pure", json!({"n": 1})).await;
    let other = world.start("Pure", json!({"n": 1})).await;
    let end = &run.0[run.0.len() - 6..];
    assert_eq!(world.service.find(end).await.unwrap(), run);
    assert_eq!(world.service.find(&other.0[..12]).await.unwrap(), other);
    let error = world.service.find(&run.0[..5]).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(InvalidRequest::AmbiguousRun { .. })), "{error}");
    assert!(matches!(world.service.find("nope").await.unwrap_err(), Error::NotFound(NotFound::Run { .. })));
}

#[tokio::test]
async fn old_runs_are_collected_with_all_that_is_theirs() {
    let world = World::new();
    let old = world.start("Fan", json!({"items": [1, 2]})).await;
    world.finish().await;
    world.clock.advance(afl_engine::time::Millis(10_000));
    let open = world.start("One", json!({"n": 1})).await;
    let collected = world.service.collect(world.clock.now()).await.unwrap();
    assert_eq!(collected, std::slice::from_ref(&old));
    assert!(matches!(world.service.run(&old).await.unwrap_err(), Error::NotFound(NotFound::Run { .. })));
    assert!(world.store().steps_page(&old, None, 10).await.unwrap().items.is_empty());
    assert_eq!(world.status(&open).await, RunStatus::Paused);
}

// covers: RT-18-a, RT-18-b, RT-18-c, RT-18-d, RT-18-e
#[tokio::test]
async fn a_run_publishes_its_trace_and_a_slow_or_lost_subscriber_changes_nothing() {
    use afl_engine::trace::{Trace, Tracing};

    let World { service, clock, memory, faulty } = World::new();
    let (service, mut listener) = service.subscribe(Tracing::Full, 1_000);
    let (service, slow) = service.subscribe(Tracing::Full, 1);
    let (service, for_people) = service.subscribe(Tracing::LogsOnly, 1);
    let world = World { clock, memory, faulty, service };
    let run = world.start("Two", json!({"n": 1})).await;
    let claims = world.claim(1).await;
    world.service.complete(&claims[0].ticket, &inc(&claims[0])).await.unwrap();
    world.service.turn().await.unwrap();
    let mut told = Vec::new();
    listener.next_many(&mut told, 1_000).await;
    assert!(told.iter().all(|traced| traced.run == run));
    assert_eq!(
        [&listener, &slow, &for_people].map(TraceSubscription::take_missed),
        [0, told.len() as u64 - 1, 0]
    );
    assert_eq!(slow.take_missed(), 0, "they were counted");
    let count = |sort: fn(&Trace) -> bool| told.iter().filter(|traced| sort(&traced.trace)).count();
    assert!(count(|trace| matches!(trace, Trace::Transition { .. })) > 0);
    assert!(count(|trace| matches!(trace, Trace::IterationEnded { .. })) > 0);
    assert!(count(|trace| matches!(trace, Trace::Resolved { .. })) > 0);
    assert_eq!(count(|trace| matches!(trace, Trace::Published { .. })), 2);
    drop(listener);
    world.finish().await;
    assert_eq!(world.outputs(&run).await, json!({"n": 3}));
}

// covers: RT-4-a, RT-4-b, RT-4-e, RT-4-f, RT-12-a, RT-12-d, EVT-1-b, EVT-9-c
#[tokio::test]
async fn an_event_walks_its_states_with_its_task_and_blocks_are_read_whole() {
    use afl_engine::event::EventState;

    let world = World::new();
    let run = world.start("Two", json!({"n": 1})).await;
    let step = world.step(&run, "Two.a").await;
    let state = async || {
        let list = world.service.steps(&run, Some(&step), None, 10).await.unwrap();
        (list.steps[0].event_state.unwrap(), list.steps[0].step.state)
    };
    assert_eq!(state().await, (EventState::Dispatched, State::EventTransmit));
    let claims = world.claim(1).await;
    assert_eq!(state().await, (EventState::Processing, State::EventTransmit));
    let begun = world.clock.now();
    world.clock.advance(afl_engine::time::Millis(7_000));
    world.service.complete(&claims[0].ticket, &inc(&claims[0])).await.unwrap();
    assert_eq!(state().await, (EventState::Completed, State::EventTransmit));
    world.service.turn().await.unwrap();
    assert_eq!(state().await, (EventState::Completed, State::Complete));
    // The event has the outcome, the task who worked, when and how long.
    let view = world.service.steps(&run, Some(&step), None, 1).await.unwrap().steps.remove(0);
    let (event, task) = (view.event.unwrap(), view.task.unwrap());
    assert_eq!(event.result.unwrap()["n"], ValueRef::Inline(json!(2)));
    assert_eq!(task.holder(), Actor::Agent("agent".to_owned()));
    assert_eq!((task.started, task.ended), (Some(begun), Some(world.clock.now())));

    let block = step.parent().unwrap();
    let of_block = world.service.steps(&run, Some(&block), None, 10).await.unwrap().steps;
    let paths: Vec<&str> = of_block.iter().map(|view| view.path.as_str()).collect();
    assert_eq!(paths, ["Two", "Two.a", "Two.b"]);
    let first = world.service.iteration(&run, 1).await.unwrap();
    assert!(first.iter().any(|moved| moved.path == "Two.a" && moved.state == State::EventTransmit));
}

// covers: RT-4-g
#[tokio::test]
async fn the_blocks_of_a_step_are_read_by_its_id() {
    let program = "namespace t { event facet Inc(n: Long) => (n: Long)
        workflow W() => (n: Long, m: Long) andThen {
            a = Inc(n = 1) andThen { yield Inc(n = 3) }
            yield W(n = a.n)
        } andThen {
            b = Inc(n = 2)
            yield W(m = b.n)
        } }";
    let world = World::new();
    let hash = world.service.publish(&compile("blocks.afl", program).unwrap()).await.unwrap();
    let run = world.service.start(StartRequest::new(hash)).await.unwrap().run;
    world.finish().await;
    for (path, expected) in [("W", &["wb0", "wb1"][..]), ("W.a", &["wb0s0b0"]), ("W.b", &[])] {
        let container = world.step(&run, path).await;
        let within = world.service.steps(&run, Some(&container), None, 100).await.unwrap().steps;
        let is_of = |view: &&StepView| {
            view.step.object_type.is_block() && view.id.parent().as_ref() == Some(&container)
        };
        let blocks: Vec<&str> = within.iter().filter(is_of).map(|view| view.id.as_str()).collect();
        assert_eq!(blocks, expected, "{path}");
    }
}

// covers: RT-20-a
#[tokio::test]
async fn g8_a_run_keeps_to_its_program_when_another_of_the_name_is_published() {
    let world = World::new();
    let run = world.start("Two", json!({"n": 1})).await;
    let version = world.run(&run).await.workflow_version;
    let changed = PROGRAM.replace("b = Inc(n = a.n)", "b = Inc(n = a.n * 100)");
    let hash = world.service.publish(&compile("t.afl", &changed).unwrap()).await.unwrap();
    assert_ne!(hash.to_string(), version);
    // Another process reads the program of the run from the store.
    let world = world.restarted();
    world.finish().await;
    assert_eq!(world.outputs(&run).await, json!({"n": 3}));
    assert_eq!(world.run(&run).await.workflow_version, version);
    let inputs = json!({"n": 1}).as_object().unwrap().clone();
    let request = StartRequest { workflow: Some("Two".to_owned()), inputs, ..StartRequest::new(hash) };
    let new = world.service.start(request).await.unwrap().run;
    world.finish().await;
    assert_eq!(world.outputs(&new).await, json!({"n": 201}));
}

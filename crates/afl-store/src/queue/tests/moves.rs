//! Every verb of the queue in every state of a task: the verb makes its move of the task machine, or it is refused.
//! The queue has no verb for M4-M6 yet; M1 and M11 are the evaluator's.

use afl_engine::history::TaskEventType;
use afl_engine::task::{Authority, Move, QuestionId, QuestionWait};

use super::super::Ticket;
use super::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verb {
    Claim,
    ClaimNamed,
    Extend,
    Complete,
    Fail,
    Release,
    /// The lease ends and the janitor comes.
    Expire,
    Skip,
    Cancel,
    /// Document 000 §6: past the event it is a no-op and no mistake.
    Continue,
    FailStep,
}

const VERBS: [Verb; 11] = [
    Verb::Claim,
    Verb::ClaimNamed,
    Verb::Extend,
    Verb::Complete,
    Verb::Fail,
    Verb::Release,
    Verb::Expire,
    Verb::Skip,
    Verb::Cancel,
    Verb::Continue,
    Verb::FailStep,
];

#[derive(Clone, PartialEq, Eq, Debug)]
enum VerbResult {
    /// To this state, with these events in the history.
    Moved(TaskState, Vec<TaskEventType>),
    /// Nothing was there to do, or it was done before.
    Nothing,
    LeaseLost,
    Canceled,
    NotOpen,
}

fn table(state: TaskState, verb: Verb) -> (VerbResult, &'static str) {
    use TaskEventType as Type;
    use TaskState as State;
    let moved = |to, events: &[Type]| VerbResult::Moved(to, events.to_vec());
    match (state, verb) {
        (State::Pending, Verb::Claim | Verb::ClaimNamed) => {
            (moved(State::Running, &[Type::Leased, Type::Started]), "M2")
        }
        (State::Running | State::AwaitingResponse, Verb::Extend) => (moved(state, &[Type::Progress]), "M3"),
        (State::Running, Verb::Complete) => (moved(State::Completed, &[Type::Completed]), "M7"),
        (State::AwaitingResponse, Verb::Complete) => (VerbResult::NotOpen, "the answer comes first"),
        (State::Running | State::AwaitingResponse, Verb::Fail) => {
            (moved(State::Failed, &[Type::Error]), "M8")
        }
        (State::Running | State::AwaitingResponse, Verb::Release | Verb::Expire) => {
            (moved(State::Pending, &[Type::Requeued]), "M9")
        }
        (State::Pending | State::Running | State::AwaitingResponse, Verb::Cancel) => {
            (moved(State::Canceled, &[Type::Cancelled]), "M10")
        }
        (State::Pending, Verb::Skip) => (moved(State::Ignored, &[Type::Ignored]), "M12"),
        (State::Pending | State::Running | State::AwaitingResponse, Verb::Continue) => {
            (moved(State::Completed, &[Type::Completed]), "M7 by a person")
        }
        (State::Pending | State::Running | State::AwaitingResponse, Verb::FailStep) => {
            (moved(State::Failed, &[Type::Error]), "M8 by a person")
        }
        (_, Verb::Skip | Verb::Cancel) => (VerbResult::NotOpen, "refused"),
        (_, Verb::Continue | Verb::FailStep) => (VerbResult::Nothing, "past the event"),
        (_, Verb::Claim | Verb::ClaimNamed | Verb::Expire) => (VerbResult::Nothing, "not there"),
        (State::Canceled, _) => (VerbResult::Canceled, "refused"),
        (State::Completed | State::Failed, Verb::Complete | Verb::Fail | Verb::Release) => {
            (VerbResult::Nothing, "the same holder said so before")
        }
        (_, Verb::Extend | Verb::Complete | Verb::Fail | Verb::Release) => (VerbResult::LeaseLost, "refused"),
    }
}

/// A task in a state, and the ticket of its last holder.
async fn in_state(state: TaskState) -> (World, StepId, Ticket) {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    let ticket = world.one().await.ticket;
    let system = Actor::System;
    match state {
        TaskState::Running => {}
        TaskState::Completed => drop(world.queue.complete(&ticket, &result()).await.unwrap()),
        TaskState::Failed => drop(world.queue.fail(&ticket, &error()).await.unwrap()),
        TaskState::Canceled => drop(world.queue.cancel(&world.run, &step, &error(), &system).await.unwrap()),
        TaskState::Pending | TaskState::Ignored => {
            world.clock.advance(Millis(LEASE.0 + 1));
            assert_eq!(world.queue.sweep_once().await.unwrap().requeued, 1);
            if state == TaskState::Ignored {
                world.queue.skip(&world.run, &step, &system).await.unwrap();
            }
        }
        TaskState::AwaitingResponse => drop(make_question(&world, &step, &ticket, QuestionWait::Hold).await),
    }
    assert_eq!(world.task(&step).await.state, state);
    (world, step, ticket)
}

/// M4, which the queue has no verb for yet.
async fn make_question(world: &World, step: &StepId, ticket: &Ticket, wait: QuestionWait) -> QuestionId {
    let question = QuestionId("q1".to_owned());
    write_move(world, step, Move::Ask { question: &question, wait }, ticket.authority()).await;
    question
}

async fn write_move(world: &World, step: &StepId, what: Move<'_>, by: Authority<'_>) {
    let (run, now) = (&world.run, world.clock.now());
    let mut task = world.store().task(run, step).await.unwrap().unwrap();
    task.item.apply(what, by, now).unwrap();
    let write = world.store().update(run, &task, now);
    world.store().write(vec![write], Durability::Durable).await.unwrap();
}

async fn ask(world: &World, step: &StepId, ticket: &Ticket, verb: Verb) -> Result<(), Refusal> {
    let (queue, run) = (&world.queue, &world.run);
    let by = Actor::User("ada".to_owned());
    match verb {
        Verb::Claim => drop(world.claim(&[], 1).await),
        Verb::ClaimNamed => drop(world.claim_named(step, &ClaimRequest::new(FacetFilter::All, "a1")).await),
        Verb::Extend => drop(queue.extend(ticket, LEASE).await?),
        Verb::Complete => drop(queue.complete(ticket, &result()).await?),
        Verb::Fail => drop(queue.fail(ticket, &error()).await?),
        Verb::Release => drop(queue.release(ticket, None).await?),
        Verb::Expire => {
            world.clock.advance(Millis(LEASE.0 + 1));
            drop(queue.sweep_once().await?);
        }
        Verb::Skip => drop(queue.skip(run, step, &by).await?),
        Verb::Cancel => drop(queue.cancel(run, step, &error(), &by).await?),
        Verb::Continue => drop(queue.continue_step(run, step, WorkOfStep::Event, Ok(&result()), &by).await?),
        Verb::FailStep => drop(queue.continue_step(run, step, WorkOfStep::Event, Err(&error()), &by).await?),
    }
    Ok(())
}

// covers: SDK-3.2-b, XR-3
#[tokio::test]
async fn every_verb_moves_a_task_as_the_table_says_or_not_at_all() {
    for &state in TaskState::ALL {
        for verb in VERBS {
            let (world, step, ticket) = in_state(state).await;
            let before = world.task(&step).await;
            let came = match ask(&world, &step, &ticket, verb).await {
                Ok(()) => {
                    let after = world.task(&step).await;
                    let types: Vec<_> = after.events().iter().map(|event| event.event_type).collect();
                    match types[before.events().len()..].to_vec() {
                        new if new.is_empty() => {
                            assert_eq!(after, before, "{verb:?} of a {state} task moves it without a word");
                            VerbResult::Nothing
                        }
                        new => VerbResult::Moved(after.state, new),
                    }
                }
                Err(Refusal::LeaseLost { .. }) => VerbResult::LeaseLost,
                Err(Refusal::Canceled { .. }) => VerbResult::Canceled,
                Err(Refusal::NotOpen { .. }) => VerbResult::NotOpen,
                Err(other) => panic!("{verb:?} of a {state} task: {other}"),
            };
            let (expected, why) = table(state, verb);
            assert_eq!(came, expected, "{verb:?} of a {state} task: {why}");
            if !matches!(came, VerbResult::Moved(..)) {
                assert_eq!(world.task(&step).await, before, "{verb:?} of a {state} task");
            }
        }
    }
}

#[tokio::test]
async fn m4_m6_a_parked_task_waits_in_no_queue_until_its_answer_and_then_for_its_server() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    let ticket = world.one().await.ticket;
    let park = QuestionWait::Park { server: Some("host-1".into()) };
    let question = make_question(&world, &step, &ticket, park).await;
    assert!(matches!(world.queue.extend(&ticket, LEASE).await, Err(Refusal::LeaseLost { .. })));
    world.clock.advance(Millis(LEASE.0 * 100));
    let swept = world.queue.sweep_once().await.unwrap();
    assert_eq!((swept.requeued, swept.arrived.len()), (0, 0));
    assert_eq!(world.claim(&[], 1).await, []);

    let person = Actor::User("ada".to_owned());
    let answer = Move::AnswerParked { question: &question };
    write_move(&world, &step, answer, Authority::Actor(&person)).await;
    assert_eq!(world.claim(&[], 1).await, []);
    let request = ClaimRequest::new(FacetFilter::All, "a2");
    let of_host = ClaimRequest { server: Some("host-1".to_owned()), ..request };
    assert_eq!(world.queue.claim(&of_host).await.unwrap().len(), 1);
    let task = world.task(&step).await;
    assert_eq!((task.deliveries, task.token), (1, ticket.token + 1));
}

#[tokio::test]
async fn the_history_names_who_made_each_move_and_why() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    world.one().await;
    world.clock.advance(Millis(LEASE.0 + 1));
    world.queue.sweep_once().await.unwrap();
    let held = world.one().await;
    world.clock.advance(Millis(5));
    world.queue.release(&held.ticket, None).await.unwrap();
    world.queue.cancel(&world.run, &step, &error(), &Actor::User("ada".to_owned())).await.unwrap();
    let task = world.task(&step).await;
    let lines: Vec<String> = task
        .events()
        .iter()
        .map(|event| {
            let after = event.created.since(task.created).0;
            format!("{after} {} {} {} {}", event.event_type, event.actor, event.level, event.message)
        })
        .collect();
    assert_eq!(
        lines,
        [
            "0 CREATED system info ",
            "0 QUEUED system info ",
            "0 LEASED agent:a1 info ",
            "0 STARTED agent:a1 info ",
            "60001 REQUEUED system info a1 fell silent",
            "60001 LEASED agent:a1 info ",
            "60001 STARTED agent:a1 info ",
            "60006 REQUEUED agent:a1 info given back",
            "60006 CANCELLED user:ada warn it broke",
        ]
    );
}

#[tokio::test]
async fn the_history_of_ordinary_work_costs_a_few_bytes() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    let claim = world.one().await;
    world.clock.advance(Millis(12));
    world.queue.complete(&claim.ticket, &result()).await.unwrap();
    let task = world.task(&step).await;
    let bytes = |task: &Task| serde_json::to_vec(task).unwrap().len();
    let without = rewritten(&task, json!({ "history": { "m": [] } }));
    let cost = bytes(&task) - bytes(&without);
    assert!(cost < 60, "{cost} bytes");
    let written = serde_json::to_value(&without).unwrap();
    assert!(written.get("history").is_none(), "a task without moves says nothing of them");
    let read: Task = serde_json::from_value(written).unwrap();
    assert!(read.history.is_empty(), "what was stored before tasks had a history is read");
}

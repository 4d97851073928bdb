//! Every verb in every state of a task: the moves T2-T12 of the design, and nothing else. That nobody asks a person yet
//! leaves out `awaiting_response` with T4-T6; T1 and T11 are the evaluator's.

use afl_engine::history::TaskEventType;

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

const STATES: [TaskState; 6] = [
    TaskState::Pending,
    TaskState::Running,
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Ignored,
    TaskState::Canceled,
];

/// What came of a verb.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Came {
    /// To this state, with these events in the history.
    Moved(TaskState, Vec<TaskEventType>),
    /// Nothing was there to do, or it was done before.
    Nothing,
    LeaseLost,
    Canceled,
    NotOpen,
}

fn table(state: TaskState, verb: Verb) -> (Came, &'static str) {
    use TaskEventType as Type;
    use TaskState as State;
    let moved = |to, events: &[Type]| Came::Moved(to, events.to_vec());
    match (state, verb) {
        (State::Pending, Verb::Claim | Verb::ClaimNamed) => {
            (moved(State::Running, &[Type::Leased, Type::Started]), "T2")
        }
        (State::Running, Verb::Extend) => (moved(State::Running, &[Type::Progress]), "T3"),
        (State::Running, Verb::Complete) => (moved(State::Completed, &[Type::Completed]), "T7"),
        (State::Running, Verb::Fail) => (moved(State::Failed, &[Type::Error]), "T8"),
        (State::Running, Verb::Release | Verb::Expire) => (moved(State::Pending, &[Type::Requeued]), "T9"),
        (State::Pending | State::Running, Verb::Cancel) => {
            (moved(State::Canceled, &[Type::Cancelled]), "T10")
        }
        (State::Pending, Verb::Skip) => (moved(State::Ignored, &[Type::Ignored]), "T12"),
        (State::Pending | State::Running, Verb::Continue) => {
            (moved(State::Completed, &[Type::Completed]), "T7 by a person")
        }
        (State::Pending | State::Running, Verb::FailStep) => {
            (moved(State::Failed, &[Type::Error]), "T8 by a person")
        }
        (_, Verb::Skip | Verb::Cancel) => (Came::NotOpen, "refused"),
        (_, Verb::Continue | Verb::FailStep) => (Came::Nothing, "past the event"),
        (_, Verb::Claim | Verb::ClaimNamed | Verb::Expire) => (Came::Nothing, "not there"),
        (State::Canceled, _) => (Came::Canceled, "refused"),
        (State::Completed | State::Failed, Verb::Complete | Verb::Fail | Verb::Release) => {
            (Came::Nothing, "the same holder said so before")
        }
        (_, Verb::Extend | Verb::Complete | Verb::Fail | Verb::Release) => (Came::LeaseLost, "refused"),
    }
}

/// A task in a state, and the ticket of whoever held it last.
async fn in_state(state: TaskState) -> (World, StepId, super::super::Ticket) {
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
        TaskState::AwaitingResponse => unreachable!("no verb leads there"),
    }
    assert_eq!(world.task(&step).await.state, state);
    (world, step, ticket)
}

async fn ask(world: &World, step: &StepId, ticket: &super::super::Ticket, verb: Verb) -> Result<(), Refusal> {
    let (queue, run) = (&world.queue, &world.run);
    let by = Actor::User("ada".to_owned());
    match verb {
        Verb::Claim => drop(world.claim(&[], 1).await),
        Verb::ClaimNamed => drop(world.claim_named(step, &ClaimRequest::new(FacetFilter::All, "a1")).await),
        Verb::Extend => drop(queue.extend(ticket, LEASE).await?),
        Verb::Complete => drop(queue.complete(ticket, &result()).await?),
        Verb::Fail => drop(queue.fail(ticket, &error()).await?),
        Verb::Release => drop(queue.release(ticket).await?),
        Verb::Expire => {
            world.clock.advance(Millis(LEASE.0 + 1));
            drop(queue.sweep_once().await?);
        }
        Verb::Skip => drop(queue.skip(run, step, &by).await?),
        Verb::Cancel => drop(queue.cancel(run, step, &error(), &by).await?),
        Verb::Continue => drop(queue.continue_step(run, step, &result(), &by).await?),
        Verb::FailStep => drop(queue.fail_step(run, step, &error(), &by).await?),
    }
    Ok(())
}

// covers: SDK-3.2-b, XR-3
#[tokio::test]
async fn t1_to_t12_every_verb_moves_a_task_as_the_table_says_or_not_at_all() {
    for state in STATES {
        for verb in VERBS {
            let (world, step, ticket) = in_state(state).await;
            let before = world.task(&step).await;
            let came = match ask(&world, &step, &ticket, verb).await {
                Ok(()) => {
                    let after = world.task(&step).await;
                    let told: Vec<_> = after.events().iter().map(|event| event.event_type).collect();
                    match told[before.events().len()..].to_vec() {
                        new if new.is_empty() => {
                            assert_eq!(after, before, "{verb:?} of a {state} task moves it without a word");
                            Came::Nothing
                        }
                        new => Came::Moved(after.state, new),
                    }
                }
                Err(Refusal::LeaseLost { .. }) => Came::LeaseLost,
                Err(Refusal::Canceled { .. }) => Came::Canceled,
                Err(Refusal::NotOpen { .. }) => Came::NotOpen,
                Err(other) => panic!("{verb:?} of a {state} task: {other}"),
            };
            let (expected, why) = table(state, verb);
            assert_eq!(came, expected, "{verb:?} of a {state} task: {why}");
            if !matches!(came, Came::Moved(..)) {
                assert_eq!(world.task(&step).await, before, "{verb:?} of a {state} task");
            }
        }
    }
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
    world.queue.release(&held.ticket).await.unwrap();
    world.queue.cancel(&world.run, &step, &error(), &Actor::User("ada".to_owned())).await.unwrap();
    let task = world.task(&step).await;
    let told: Vec<String> = task
        .events()
        .iter()
        .map(|event| {
            let after = event.created.since(task.created).0;
            format!("{after} {} {} {} {}", event.event_type, event.actor, event.level, event.message)
        })
        .collect();
    assert_eq!(
        told,
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
    let without = Task { history: History::default(), ..task.clone() };
    let cost = bytes(&task) - bytes(&without);
    assert!(cost < 60, "{cost} bytes");
    let written = serde_json::to_value(&without).unwrap();
    assert!(written.get("history").is_none(), "a task without moves says nothing of them");
    let read: Task = serde_json::from_value(written).unwrap();
    assert!(read.history.is_empty(), "what was stored before tasks had a history is read");
}

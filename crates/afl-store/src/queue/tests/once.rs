//! G4: which failures of work that must happen at most once the declared retries repeat.

use afl_engine::event::{EventState, WorkEvidence};
use afl_engine::policy::{Effect, Policy, RetryPolicy};
use afl_engine::task::{TaskState, UNCERTAIN};
use afl_engine::time::Millis;

use super::{World, error};
use crate::queue::SettleResult;

fn retried(effect: Option<Effect>) -> Policy {
    let retry = RetryPolicy { max: 3, backoff_ms: Millis(0), factor: 2.0, max_backoff_ms: Millis(0) };
    Policy { effect, retry: Some(retry), ..Policy::default() }
}

#[tokio::test]
async fn g4_once_work_is_repeated_only_where_nothing_happened() {
    let repeatable = [None, Some(Effect::Idempotent), Some(Effect::Pure)];
    for evidence in WorkEvidence::ALL.iter().copied() {
        for effect in repeatable.into_iter().chain([Some(Effect::Once)]) {
            let world = World::new().await;
            let step = world.ask(1, "a.F", retried(effect)).await;
            let claim = world.one().await;
            let failure = error().with_evidence(evidence);
            let settled = world.queue.fail(&claim.ticket, &failure).await.unwrap();
            let task = world.task(&step).await;
            if effect != Some(Effect::Once) || evidence == WorkEvidence::NotDone {
                assert!(matches!(settled, SettleResult::Again { .. }), "{effect:?} {evidence}: {settled:?}");
                assert_eq!((task.state, task.attempts), (TaskState::Pending, 1), "{effect:?} {evidence}");
                continue;
            }
            assert_eq!((task.state, task.evidence), (TaskState::Failed, evidence));
            let event = world.event(&step).await;
            let kind = event.error.unwrap().kind;
            let expected = if evidence == WorkEvidence::Unknown { UNCERTAIN } else { "Boom" };
            assert_eq!((event.state, &*kind), (EventState::Error, expected), "{evidence}");
            assert!(task.needs_decision() && task.is_uncertain() == (kind == UNCERTAIN), "{task:?}");
            assert_eq!(world.claim(&[], 1).await, [], "{evidence}: it is offered to no agent");
        }
    }
}

#[tokio::test]
async fn g4_once_work_of_which_nothing_happened_fails_when_its_retries_are_used_up() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", retried(Some(Effect::Once))).await;
    for _ in 0..3 {
        let claim = world.one().await;
        world.queue.fail(&claim.ticket, &error().with_evidence(WorkEvidence::NotDone)).await.unwrap();
    }
    let task = world.task(&step).await;
    assert_eq!((task.state, task.attempts, task.needs_decision()), (TaskState::Failed, 3, false));
}

/// Otherwise the attempts would not end, and the wait before the next one would be forgotten.
#[tokio::test]
async fn g2_a_failed_attempt_that_is_retried_outlives_a_power_cut() {
    for effect in [None, Some(Effect::Once)] {
        let world = World::new().await;
        let step = world.ask(1, "a.F", retried(effect)).await;
        let claim = world.one().await;
        world.queue.fail(&claim.ticket, &error().with_evidence(WorkEvidence::NotDone)).await.unwrap();
        world.memory.power_cut(10);
        let task = world.task(&step).await;
        assert_eq!((task.state, task.attempts), (TaskState::Pending, 1), "{effect:?}");
        assert_eq!(task.error.as_deref(), Some("it broke"), "{effect:?}");
    }
}

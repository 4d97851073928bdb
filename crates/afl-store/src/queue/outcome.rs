//! The effects on a task and its event when an attempt ends.

use std::collections::BTreeMap;

use afl_engine::attribute::{Blob, ValueRef, blob_of};
use afl_engine::event::{Event, EventError, EventState, Payload, Reception, WorkEvidence};
use afl_engine::history::Actor;
use afl_engine::policy::Effect;
use afl_engine::task::{
    Authority, FailureSource, MAX_DELIVERIES, Move, MoveRefusal, Requeue, Task, TaskKind, TaskState,
    UNCERTAIN,
};
use afl_engine::time::Millis;
use afl_engine::timer::{TimerFacet, fired};
use afl_engine::value::{Map, Value, check_size};

use super::Refusal;
use crate::backend::ClockStatus;

/// The records to write. Without an event the task goes on.
#[derive(Clone, Debug)]
pub(super) struct TaskOutcome {
    pub(super) task: Task,
    pub(super) event: Option<Event>,
    pub(super) blobs: Vec<Blob>,
}

/// The kinds of failures that the queue itself finds.
pub(super) const LEASE_EXHAUSTED: &str = "lease_exhausted";
pub(super) const TIMEOUT: &str = "timeout";

impl TaskOutcome {
    /// The task goes back to its queue.
    pub(super) fn requeued(task: Task) -> Self {
        Self { task, event: None, blobs: Vec::new() }
    }

    /// The event of a task that was completed or skipped.
    pub(super) fn completed(task: Task, event: Event, result: Map<String, Value>) -> Self {
        let (values, blobs) = held(result);
        let mut result = event.told_by(task.token);
        result.extend(values);
        let event = Event {
            state: EventState::Completed,
            result: Some(result),
            error: None,
            reception: received(&task),
            ..event
        };
        Self { task, event: Some(event), blobs }
    }

    /// The event of a task that failed or was canceled.
    pub(super) fn failed(task: Task, event: Event, error: EventError) -> Self {
        let event = Event {
            state: EventState::Error,
            result: None,
            error: Some(error),
            reception: received(&task),
            ..event
        };
        Self { task, event: Some(event), blobs: Vec::new() }
    }
}

/// Whether a result can be stored and read again; asked before it is copied.
pub(super) fn check(task: &Task, result: &Map<String, Value>) -> Result<(), Refusal> {
    check_size(result).map_err(|oversize| Refusal::TooLarge { path: task.path.clone(), oversize })
}

/// The end of an attempt: the declared retries decide whether it is that of the task.
pub(super) fn attempt_failed(
    mut task: Task,
    event: Event,
    error: EventError,
    by: Authority<'_>,
    now: Millis,
) -> Result<TaskOutcome, MoveRefusal> {
    let error = judged(&task, error);
    // No attempt begins when the time of the step is over.
    let is_over = task.times_out.is_some_and(|at| at <= now);
    let retry = task.policy.retry.filter(|_| !is_over && may_repeat(&task, &error));
    let Some(wait) = retry.and_then(|retry| retry.wait_after(task.attempts + 1)) else {
        task.apply(Move::Fail { error: &error, source: FailureSource::Attempt }, by, now)?;
        return Ok(TaskOutcome::failed(task, event, error));
    };
    let not_before = (wait > Millis(0)).then(|| now.plus(wait));
    task.apply(Move::Requeue(Requeue::NextAttempt { error: &error.message, not_before }), by, now)?;
    Ok(TaskOutcome::requeued(task))
}

/// Work that must happen at most once, and may have happened, asks a person.
fn judged(task: &Task, error: EventError) -> EventError {
    match (task.policy.effect, error.evidence) {
        (Some(Effect::Once), WorkEvidence::Unknown) => EventError::uncertain(&error.message),
        (Some(Effect::Once), WorkEvidence::Reported | WorkEvidence::NotDone)
        | (Some(Effect::Idempotent | Effect::Pure) | None, _) => error,
    }
}

/// Whether the declared retries count for this failure. Work that must happen at most once is repeated only if it is
/// known that nothing happened.
fn may_repeat(task: &Task, error: &EventError) -> bool {
    let is_known = match task.policy.effect {
        Some(Effect::Once) => error.evidence == WorkEvidence::NotDone,
        Some(Effect::Idempotent | Effect::Pure) | None => true,
    };
    // A handler may say itself that it does not know.
    is_known && error.kind != UNCERTAIN
}

/// The outcome of a task that nobody settled in time; `None` while nothing is due. The wall clock judges moments that
/// people name, the store's clock all else.
pub(super) fn due(
    mut task: Task,
    event: Event,
    clock: ClockStatus,
) -> Result<Option<TaskOutcome>, MoveRefusal> {
    let now = clock.now;
    let timeout = task.times_out.zip(task.policy.timeout_ms).filter(|_| !task.state.is_terminal());
    if let Some((_, limit)) = timeout.filter(|(at, limit)| *at <= clock.judging(at.since(*limit))) {
        return overdue(task, event, limit, now).map(Some);
    }
    match (task.state, task.timer(), task.not_before) {
        (TaskState::Pending, Some(timer), Some(at)) => {
            let shown = match timer {
                TimerFacet::Wait => now,
                TimerFacet::Until => clock.wall,
            };
            if at > shown {
                return Ok(None);
            }
            task.apply(Move::Complete, Authority::Actor(&Actor::System), now)?;
            Ok(Some(TaskOutcome::completed(task, event, fired(at))))
        }
        (TaskState::Running | TaskState::AwaitingResponse, _, _) => silent(task, event, clock),
        (
            TaskState::Pending
            | TaskState::Completed
            | TaskState::Failed
            | TaskState::Ignored
            | TaskState::Canceled,
            _,
            _,
        ) => Ok(None),
    }
}

/// The time of the whole step is over. Begun work that must happen at most once asks a person.
fn overdue(mut task: Task, event: Event, limit: Millis, now: Millis) -> Result<TaskOutcome, MoveRefusal> {
    let limit = format!("its Timeout of {} ms is over", limit.0);
    let last = task.error.as_ref().map(|error| format!("; the last attempt failed: {error}"));
    let last = last.unwrap_or_default();
    let error = match (task.state, task.policy.effect) {
        (TaskState::Pending, _) => {
            let name = &task.name;
            let message = match task.timer() {
                Some(_) => limit,
                None if task.started.is_none() => {
                    format!("{limit}, and no agent took `{name}`: start one for it")
                }
                None => format!("{limit}{last}"),
            };
            // Whatever was begun before said that nothing happened, or the task would not wait.
            EventError::new(TIMEOUT, message).with_evidence(WorkEvidence::NotDone)
        }
        (_, Some(Effect::Once)) => EventError::uncertain(&limit),
        (_, Some(Effect::Idempotent | Effect::Pure) | None) => {
            let message = format!("{limit}, and {} has not answered{last}", task.holder());
            EventError::new(TIMEOUT, message).with_evidence(WorkEvidence::Unknown)
        }
    };
    let fail = Move::Fail { error: &error, source: FailureSource::Deadline };
    task.apply(fail, Authority::Actor(&Actor::System), now)?;
    Ok(TaskOutcome::failed(task, event, error))
}

/// The outcome when a holder's lease has ended, or its attempt was silent or long beyond its policy; `None` while
/// neither is so.
fn silent(mut task: Task, event: Event, clock: ClockStatus) -> Result<Option<TaskOutcome>, MoveRefusal> {
    let now = clock.now;
    let Some(lease) = task.lease.as_ref() else { return Ok(None) };
    let owner = &lease.owner;
    let by = Authority::Actor(&Actor::System);
    let judged = clock.judging(lease.heartbeat);
    let silence = task.policy.heartbeat_ms.filter(|heartbeat| lease.heartbeat.plus(*heartbeat) <= judged);
    let silence = silence.map(|heartbeat| format!("{owner} was silent for more than {} ms", heartbeat.0));
    let attempt = clock.judging(lease.since);
    let length = task.policy.attempt_timeout_ms.filter(|timeout| lease.since.plus(*timeout) <= attempt);
    let length = length.map(|timeout| format!("the attempt of {owner} took more than {} ms", timeout.0));
    let timed_out = length.or(silence);
    let lost = match (timed_out, task.policy.effect) {
        (None, _) if lease.expires > judged => return Ok(None),
        (timed_out, Some(Effect::Once)) => {
            EventError::uncertain(&timed_out.unwrap_or_else(|| format!("{owner} fell silent")))
        }
        (Some(message), Some(Effect::Idempotent | Effect::Pure) | None) => {
            let error = EventError::new(TIMEOUT, message).with_evidence(WorkEvidence::Unknown);
            return attempt_failed(task, event, error, by, now).map(Some);
        }
        (None, Some(Effect::Idempotent | Effect::Pure) | None) if task.deliveries >= MAX_DELIVERIES => {
            let message = format!("its lease ran out {} times, the last time with {owner}", task.deliveries);
            EventError::new(LEASE_EXHAUSTED, message).with_evidence(WorkEvidence::Unknown)
        }
        (None, Some(Effect::Idempotent | Effect::Pure) | None) => {
            let error = format!("{owner} fell silent");
            task.apply(Move::Requeue(Requeue::LostLease { error: &error }), by, now)?;
            return Ok(Some(TaskOutcome::requeued(task)));
        }
    };
    task.apply(Move::Fail { error: &lost, source: FailureSource::LostLease }, by, now)?;
    Ok(Some(TaskOutcome::failed(task, event, lost)))
}

/// An outcome waits for the evaluator of its run; that of a system task has no reader.
fn received(task: &Task) -> Reception {
    match task.kind() {
        TaskKind::Event => Reception::Arrived,
        TaskKind::System => Reception::Taken,
    }
}

pub(super) fn held(result: Map<String, Value>) -> (Payload, Vec<Blob>) {
    let mut payload = BTreeMap::new();
    let mut blobs = Vec::new();
    for (name, value) in result {
        let blob = blob_of(&value);
        payload.insert(name, blob.as_ref().map_or(ValueRef::Inline(value), Blob::held));
        blobs.extend(blob);
    }
    (payload, blobs)
}

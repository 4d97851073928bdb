//! What becomes of a task and its event when an attempt ends.

use std::collections::BTreeMap;

use afl_engine::attribute::{Blob, Held, blob_of};
use afl_engine::event::{Event, EventError, EventState, Payload, Reception};
use afl_engine::history::{Actor, Move};
use afl_engine::policy::Effect;
use afl_engine::task::{MAX_DELIVERIES, Task, TaskKind, TaskState, UNCERTAIN};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value, check_size};

use super::Refusal;

/// What to write. Without an event the task goes on.
#[derive(Clone, Debug)]
pub(super) struct TaskOutcome {
    pub(super) task: Task,
    pub(super) event: Option<Event>,
    pub(super) blobs: Vec<Blob>,
}

/// The kinds of failures that the queue itself finds.
pub(super) const LEASE_EXHAUSTED: &str = "lease_exhausted";
pub(super) const TIMEOUT: &str = "timeout";

/// Whether a result can be stored and read again; asked before it is copied.
pub(super) fn check(task: &Task, result: &Map<String, Value>) -> Result<(), Refusal> {
    check_size(result).map_err(|oversize| Refusal::TooLarge { path: task.path.clone(), oversize })
}

pub(super) fn completed(
    task: Task,
    event: Event,
    result: Map<String, Value>,
    by: &Actor,
    now: Millis,
) -> TaskOutcome {
    completed_as((TaskState::Completed, Move::Completed), task, event, result, by, now)
}

fn completed_as(
    (state, what): (TaskState, Move),
    task: Task,
    event: Event,
    result: Map<String, Value>,
    by: &Actor,
    now: Millis,
) -> TaskOutcome {
    let (told, blobs) = held(result);
    let mut result = event.told_by(task.token);
    result.extend(told);
    let event = Event {
        state: EventState::Completed,
        result: Some(result),
        error: None,
        reception: received(&task),
        ..event
    };
    let task = ended(task, state, now).moved(what, by, "", now);
    TaskOutcome { task, event: Some(event), blobs }
}

/// The end of the task, whatever retries are declared.
pub(super) fn failed(task: Task, event: Event, error: EventError, by: &Actor, now: Millis) -> TaskOutcome {
    failed_as((TaskState::Failed, Move::Failed), task, event, error, by, now)
}

/// An operator does not want it any more.
pub(super) fn canceled(task: Task, event: Event, error: EventError, by: &Actor, now: Millis) -> TaskOutcome {
    failed_as((TaskState::Canceled, Move::Canceled), task, event, error, by, now)
}

/// An operator lets the step go on without the work.
pub(super) fn ignored(task: Task, event: Event, by: &Actor, now: Millis) -> TaskOutcome {
    completed_as((TaskState::Ignored, Move::Ignored), task, event, Map::new(), by, now)
}

fn failed_as(
    (state, what): (TaskState, Move),
    task: Task,
    event: Event,
    error: EventError,
    by: &Actor,
    now: Millis,
) -> TaskOutcome {
    let task = Task {
        error: Some(error.message.clone()),
        error_kind: Some(error.kind.clone()),
        ..ended(task, state, now)
    };
    let task = task.moved(what, by, &error.message, now);
    let event = Event {
        state: EventState::Error,
        result: None,
        error: Some(error),
        reception: received(&task),
        ..event
    };
    TaskOutcome { task, event: Some(event), blobs: Vec::new() }
}

/// The end of an attempt: the declared retries decide whether it is that of the task.
pub(super) fn attempt_failed(
    task: Task,
    event: Event,
    error: EventError,
    by: &Actor,
    now: Millis,
) -> TaskOutcome {
    let task = Task { attempts: task.attempts + 1, ..task };
    // Whether it happened is for a person to find out, before it may happen again.
    let is_known = error.kind != UNCERTAIN;
    let wait = task.policy.retry.filter(|_| is_known).and_then(|retry| retry.wait_after(task.attempts));
    let Some(wait) = wait else { return failed(task, event, error, by, now) };
    let not_before = (wait > Millis(0)).then(|| now.plus(wait));
    let task = task.moved(Move::Requeued, by, &error.message, now);
    let error = Some(error.message);
    // It is asked for anew, so silent deliveries are counted anew. The lease stays as the mark of who gave it
    // back, so that telling it twice does no harm.
    let task = Task { state: TaskState::Pending, deliveries: 0, not_before, error, updated: now, ..task };
    TaskOutcome { task, event: None, blobs: Vec::new() }
}

/// The holder fell silent.
pub(super) fn silent(task: Task, event: Event, now: Millis) -> Option<TaskOutcome> {
    let lease = task.lease.as_ref()?;
    let owner = lease.owner.clone();
    let timed_out = task.policy.timeout_ms.filter(|timeout| lease.heartbeat.plus(*timeout) <= now);
    let error = |kind: &str, message: String| EventError { kind: kind.to_owned(), message };
    match (timed_out, task.policy.effect) {
        (None, _) if lease.expires > now => None,
        (_, Some(Effect::Once)) => {
            let message = format!(
                "{owner} fell silent during work that must happen at most once: find out whether it happened, \
                 then retry the step or continue it with its result"
            );
            Some(failed(task, event, error(UNCERTAIN, message), &Actor::System, now))
        }
        (Some(timeout), Some(Effect::Idempotent | Effect::Pure) | None) => {
            let message = format!("{owner} was silent for more than {} ms", timeout.0);
            Some(attempt_failed(task, event, error(TIMEOUT, message), &Actor::System, now))
        }
        (None, Some(Effect::Idempotent | Effect::Pure) | None) if task.deliveries >= MAX_DELIVERIES => {
            let message = format!("its lease ran out {} times, the last time with {owner}", task.deliveries);
            Some(failed(task, event, error(LEASE_EXHAUSTED, message), &Actor::System, now))
        }
        (None, Some(Effect::Idempotent | Effect::Pure) | None) => {
            let message = format!("{owner} fell silent");
            let task = task.moved(Move::Requeued, &Actor::System, &message, now);
            let error = Some(message);
            let task = Task { state: TaskState::Pending, lease: None, error, updated: now, ..task };
            Some(TaskOutcome { task, event: None, blobs: Vec::new() })
        }
    }
}

/// An outcome waits for the evaluator of its run; nobody waits for that of a system task.
fn received(task: &Task) -> Reception {
    match task.kind() {
        TaskKind::Event => Reception::Arrived,
        TaskKind::System => Reception::Taken,
    }
}

/// The lease stays: it tells who did the work, and knows the holder when it tells it again.
pub(super) fn ended(task: Task, state: TaskState, now: Millis) -> Task {
    Task { state, not_before: None, updated: now, ended: Some(now), ..task }
}

pub(super) fn held(result: Map<String, Value>) -> (Payload, Vec<Blob>) {
    let mut payload = BTreeMap::new();
    let mut blobs = Vec::new();
    for (name, value) in result {
        let blob = blob_of(&value);
        payload.insert(name, blob.as_ref().map_or(Held::Inline(value), Blob::held));
        blobs.extend(blob);
    }
    (payload, blobs)
}

//! A task: the piece of work that an agent claims for an event (document 000 §3).

mod moves;

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::WorkEvidence;
use crate::history::{Actor, History, TaskEvent};
use crate::id::{RunId, StepId};
use crate::policy::{Effect, Policy};
use crate::time::Millis;
use crate::timer::TimerFacet;
use crate::wire::{self, wire_enum};

pub use moves::{
    Authority, FailureSource, Move, MoveRefusal, QuestionWait, RefusalReason, Requeue, TicketStatus,
};

pub const DEFAULT_TASK_LIST: &str = "default";
pub const DEFAULT_PRIORITY: i64 = 50;
/// How often a task may be handed out again after its holder fell silent.
pub const MAX_DELIVERIES: u32 = 5;

/// How long only the desired server may claim a task, from when it may be claimed.
pub const DESIRED_FOR: Millis = Millis(30_000);

/// The kind of failure of work that may have happened and must not happen twice. A person decides.
pub const UNCERTAIN: &str = "uncertain";

/// The distance in a queue between the open tasks of a run. The hundredth stands behind the tasks that other runs
/// create in the next hundred seconds, so a run of many tasks keeps no other run waiting.
const APART: Millis = Millis(1_000);
/// No task lets others pass that were created later by more than this.
const FURTHEST: Millis = Millis(24 * 3_600_000);

/// The place of a run's next task in the queue: behind the run's last open task and never before it, so that the tasks
/// of one run keep the order of their creation.
pub fn next_turn(last_open: Option<Millis>, now: Millis) -> Millis {
    last_open.map_or(now, |last| last.plus(APART).min(now.plus(FURTHEST)).max(last).max(now))
}

/// The token of the next claim: one more than the last, and more than all from before the store's last crash.
///
/// A crash can take claims back, with their tokens, after their holders have shown the tokens to systems outside. So the
/// number of crashes stands in the high bits: each crash leaves 32 bits for claims. Up to two million crashes a token
/// is exact in a double, which is how JSON readers hold it.
pub fn next_token(last: u64, crashes: u64) -> u64 {
    last.max(crashes << 32) + 1
}

/// A task as it is stored. Its fields can be read everywhere (`task.state`) and change by a [`Move`] alone: there is
/// no `DerefMut`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Task(TaskRecord);

impl Deref for Task {
    type Target = TaskRecord;

    fn deref(&self) -> &TaskRecord {
        &self.0
    }
}

/// `TaskDefinition`. Its payload is that of its event.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TaskRecord {
    #[serde(skip, default = "StepId::root")]
    pub step_id: StepId,
    pub workflow_id: RunId,
    /// The qualified facet, or the name of a system task.
    pub name: Arc<str>,
    /// The path of its step for people.
    pub path: String,
    pub state: TaskState,
    pub task_list_name: Arc<str>,
    pub created: Millis,
    /// Its place in the queue as a time of creation, if later than `created` ([`next_turn`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Millis>,
    pub updated: Millis,
    #[serde(default, skip_serializing_if = "wire::is_default")]
    pub policy: Policy,
    /// Of the last claim ([`next_token`]).
    #[serde(default)]
    pub token: u64,
    /// Claims so far, without those that a crash of the store took back.
    #[serde(default)]
    pub claims: u64,
    /// Claims since its creation or its last retry. A finished attempt sets it back.
    #[serde(default)]
    pub deliveries: u32,
    /// Attempts that ended in a failure, or in silence or time beyond the policy's.
    #[serde(default)]
    pub attempts: u32,
    /// When a retry may be claimed, or when the timer of its facet fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Millis>,
    /// When the policy's timeout fails it, claimed or not. Its event stands among the timers with the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_out: Option<Millis>,
    /// The server that may claim it first, for [`DESIRED_FOR`]. A claim clears it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_server: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// The question whose answer it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
    /// Of the last attempt that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The kind of the failure that ended the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<String>,
    /// The knowledge about the work that failed.
    #[serde(default, skip_serializing_if = "wire::is_default")]
    pub evidence: WorkEvidence,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Millis>,
    #[serde(default, skip_serializing_if = "History::is_empty")]
    pub history: History,
}

/// The parts of a new task.
#[derive(Clone, PartialEq, Debug)]
pub struct NewTask {
    pub step_id: StepId,
    pub workflow_id: RunId,
    pub name: Arc<str>,
    pub path: String,
    pub task_list_name: Arc<str>,
    pub policy: Policy,
    /// Its place in the queue; see [`next_turn`].
    pub turn: Millis,
    /// That of the task before it under the same step, so that tokens never repeat.
    pub token: u64,
    /// Those of the task before it under the same step.
    pub claims: u64,
    /// When a timer answers it, if its facet is a [`TimerFacet`].
    pub fires: Option<Millis>,
}

/// The name of a question, which the engine does not look into.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionId(pub String);

/// The holder of a task, and the end of its right to it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lease {
    pub owner: String,
    /// Known to the holder only; every write of the holder shows it.
    pub secret: String,
    /// When it was claimed.
    pub since: Millis,
    pub expires: Millis,
    pub heartbeat: Millis,
}

wire_enum! {
    pub enum TaskState ("state of a task") {
        Pending = "pending",
        Running = "running",
        AwaitingResponse = "awaiting_response",
        Completed = "completed",
        Failed = "failed",
        Ignored = "ignored",
        Canceled = "canceled",
    }
}

impl TaskState {
    /// By its name, or by an alias of document 001.
    pub fn spelled(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.name() == name || state.aliases().contains(&name))
    }

    pub const fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::Pending => &["PENDING", "QUEUED", "CREATED"],
            Self::Running => &["RUNNING"],
            Self::AwaitingResponse => &["AWAITING_RESPONSE"],
            Self::Completed => &["COMPLETED", "COMPLETE", "complete"],
            Self::Failed => &["FAILED", "ERROR", "error"],
            Self::Ignored => &["IGNORED"],
            Self::Canceled => &["CANCELED", "CANCELLED", "cancelled"],
        }
    }

    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Running | Self::AwaitingResponse => false,
            Self::Completed | Self::Failed | Self::Ignored | Self::Canceled => true,
        }
    }
}

wire_enum! {
    /// The records that settling a task changes.
    pub enum TaskKind ("kind of a task") {
        /// The event of a step.
        Event = "event",
        /// The task alone: it belongs to no run.
        System = "system",
    }
}

impl Task {
    /// M1: a new task waits for a claim.
    pub fn pending(new: NewTask, now: Millis) -> Self {
        Self(TaskRecord {
            step_id: new.step_id,
            workflow_id: new.workflow_id,
            name: new.name,
            path: new.path,
            state: TaskState::Pending,
            task_list_name: new.task_list_name,
            created: now,
            turn: Some(new.turn).filter(|turn| *turn > now),
            updated: now,
            times_out: new.policy.timeout_ms.map(|timeout| now.plus(timeout)),
            policy: new.policy,
            token: new.token,
            claims: new.claims,
            deliveries: 0,
            attempts: 0,
            not_before: new.fires,
            desired_server: None,
            lease: None,
            question: None,
            error: None,
            error_kind: None,
            evidence: WorkEvidence::default(),
            started: None,
            ended: None,
            history: History::default(),
        })
    }

    /// A record does not repeat the step that its key names.
    #[must_use]
    pub fn of_step(mut self, step_id: StepId) -> Self {
        self.0.step_id = step_id;
        self
    }

    pub fn kind(&self) -> TaskKind {
        if self.workflow_id.is_run() { TaskKind::Event } else { TaskKind::System }
    }

    pub fn priority(&self) -> i64 {
        self.policy.priority.unwrap_or(DEFAULT_PRIORITY)
    }

    /// Its history under the names of the documents.
    pub fn events(&self) -> Vec<TaskEvent> {
        self.history.events(self.created)
    }

    /// The agent that has or had it.
    pub fn holder(&self) -> Actor {
        let owner = self.lease.as_ref().map(|lease| lease.owner.clone());
        owner.map_or(Actor::System, Actor::Agent)
    }

    /// Whether it failed and its work may have happened.
    pub fn is_uncertain(&self) -> bool {
        self.state == TaskState::Failed && self.error_kind.as_deref() == Some(UNCERTAIN)
    }

    /// Whether it failed and only a person may have its work done again.
    pub fn needs_decision(&self) -> bool {
        let is_once = self.policy.effect == Some(Effect::Once);
        self.is_uncertain()
            || (is_once && self.state == TaskState::Failed && self.evidence != WorkEvidence::NotDone)
    }

    /// When every server may claim it, if one comes first.
    pub fn free_at(&self) -> Option<Millis> {
        self.desired_server.as_ref().map(|_| self.updated.plus(DESIRED_FOR))
    }

    /// Whether only another server may claim it now.
    pub fn is_left_to_another(&self, server: Option<&str>, now: Millis) -> bool {
        self.desired_server.as_deref() != server && self.free_at().is_some_and(|free| now < free)
    }

    /// The facet whose work a timer does, if it is one.
    pub fn timer(&self) -> Option<TimerFacet> {
        self.name.parse().ok()
    }

    /// When the sweep looks at a running task: its lease has ended, it was silent for too long, or it takes too long.
    pub fn deadline(&self) -> Option<Millis> {
        let lease = self.lease.as_ref()?;
        let silent = self.policy.heartbeat_ms.map(|heartbeat| lease.heartbeat.plus(heartbeat));
        let long = self.policy.attempt_timeout_ms.map(|timeout| lease.since.plus(timeout));
        silent.into_iter().chain(long).chain([lease.expires]).min()
    }

    /// When a timer settles it, if it is open: its timeout, or the end of its wait.
    pub fn fires(&self) -> Option<Millis> {
        let wait = self.not_before.filter(|_| self.timer().is_some());
        self.times_out.into_iter().chain(wait).min().filter(|_| !self.state.is_terminal())
    }

    /// When the sweep looks at it next: when a timer fires, or at the deadline of its holder.
    pub fn next_look(&self) -> Option<Millis> {
        let deadline = match self.state {
            TaskState::Running | TaskState::AwaitingResponse => self.deadline(),
            TaskState::Pending
            | TaskState::Completed
            | TaskState::Failed
            | TaskState::Ignored
            | TaskState::Canceled => None,
        };
        self.fires().into_iter().chain(deadline).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tasks_of_a_run_stand_one_behind_the_other_and_none_further_off_than_a_day() {
        assert_eq!(next_turn(None, Millis(5)), Millis(5));
        assert_eq!(next_turn(Some(Millis(5)), Millis(5)), Millis(1_005));
        // The last one is open since long.
        assert_eq!(next_turn(Some(Millis(5)), Millis(90_000)), Millis(90_000));
        let mut last = Millis(0);
        for _ in 0..100_000 {
            let turn = next_turn(Some(last), Millis(0));
            assert!((last..=FURTHEST).contains(&turn));
            last = turn;
        }
        assert_eq!(last, FURTHEST);
        // A clock that was set back does not let a later task pass an earlier one.
        assert_eq!(next_turn(Some(last), Millis(-3_600_000)), last);
    }
}

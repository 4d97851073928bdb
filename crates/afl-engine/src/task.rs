//! A task: the piece of work that an agent claims for an event (document 000 §3, design page "agents").

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::history::{Actor, History, Move, TaskEvent};
use crate::id::{RunId, StepId};
use crate::policy::Policy;
use crate::time::Millis;
use crate::wire::wire_enum;

pub const DEFAULT_TASK_LIST: &str = "default";
pub const DEFAULT_PRIORITY: i64 = 50;
/// How often a task may be handed out again after its holder fell silent.
pub const MAX_DELIVERIES: u32 = 5;

/// How long a task is left to the server that it wants, from when it may be claimed; then anybody may take it.
pub const DESIRED_FOR: Millis = Millis(30_000);

/// The kind of failure of work that may have happened, and must not happen twice: a person finds out and decides.
pub const UNCERTAIN: &str = "uncertain";

/// How far apart the tasks that a run has open stand in a queue: the hundredth goes behind what other runs ask for in the
/// next hundred seconds, so that a run of many tasks keeps no other waiting.
const APART: Millis = Millis(1_000);
/// Nobody has to let pass what came later by more than this.
const FURTHEST: Millis = Millis(24 * 3_600_000);

/// Where the next task of a run stands in the queue, behind the last one that is open. Never before that one, so that
/// tasks of one run keep the order of their creation.
pub fn next_turn(last_open: Option<Millis>, now: Millis) -> Millis {
    last_open.map_or(now, |last| last.plus(APART).min(now.plus(FURTHEST)).max(last).max(now))
}

/// `TaskDefinition`. Its payload is that of its event.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Task {
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
    /// When it stands in the queue as if it had been created, if that is later: others of its run were open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Millis>,
    pub updated: Millis,
    #[serde(default, skip_serializing_if = "Policy::is_default")]
    pub policy: Policy,
    /// Claims so far: each one's number is its token.
    #[serde(default)]
    pub token: u64,
    /// Claims since the task was last asked for, that ended in silence.
    #[serde(default)]
    pub deliveries: u32,
    /// Attempts that ended in a failure or in silence beyond the policy's timeout.
    #[serde(default)]
    pub attempts: u32,
    /// When a retry may be claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Millis>,
    /// The name of the server that is to have it, if it is there in time. A claim forgets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_server: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// Of the last attempt that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What that failure is called, when it was the end of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Millis>,
    #[serde(default, skip_serializing_if = "History::is_empty")]
    pub history: History,
}

/// Who does the work now, and until when nobody else may.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Lease {
    pub owner: String,
    /// Known to the holder only; every write of the holder shows it.
    pub secret: String,
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
    /// By its name, or by the one that the runner of prompts uses for the same state.
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
    /// What settling a task touches (design page "agents" §2).
    pub enum TaskKind ("kind of a task") {
        /// The event of a step.
        Event = "event",
        /// Nothing but itself: it was asked of the runners, and stands beside the runs.
        System = "system",
    }
}

impl Task {
    pub fn kind(&self) -> TaskKind {
        if self.workflow_id.is_run() { TaskKind::Event } else { TaskKind::System }
    }

    pub fn priority(&self) -> i64 {
        self.policy.priority.unwrap_or(DEFAULT_PRIORITY)
    }

    /// Notes a move in the history; it is stored with what the move changes.
    #[must_use]
    pub fn moved(mut self, what: Move, by: &Actor, cause: &str, now: Millis) -> Self {
        self.note(what, by, cause, now);
        self
    }

    pub(crate) fn note(&mut self, what: Move, by: &Actor, cause: &str, now: Millis) {
        self.history.note(what, now.since(self.created), by, cause);
    }

    /// What happened to it, as the documents tell it (task events).
    pub fn events(&self) -> Vec<TaskEvent> {
        self.history.events(self.created)
    }

    /// The agent that has or had it.
    pub fn holder(&self) -> Actor {
        let owner = self.lease.as_ref().map(|lease| lease.owner.clone());
        owner.map_or(Actor::System, Actor::Agent)
    }

    /// Whether it failed without anybody knowing whether its work happened.
    pub fn is_uncertain(&self) -> bool {
        self.state == TaskState::Failed && self.error_kind.as_deref() == Some(UNCERTAIN)
    }

    /// When anybody may take it, where it is left to one server first.
    pub fn free_at(&self) -> Option<Millis> {
        self.desired_server.as_ref().map(|_| self.updated.plus(DESIRED_FOR))
    }

    /// Whether it is still left to another than this server.
    pub fn is_left_to_another(&self, server: Option<&str>, now: Millis) -> bool {
        self.desired_server.as_deref() != server && self.free_at().is_some_and(|free| now < free)
    }

    /// When a running task is to be looked at: its lease has ended, or it was silent for too long.
    pub fn deadline(&self) -> Option<Millis> {
        let lease = self.lease.as_ref()?;
        let silent = self.policy.timeout_ms.map(|timeout| lease.heartbeat.plus(timeout));
        Some(silent.map_or(lease.expires, |silent| silent.min(lease.expires)))
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

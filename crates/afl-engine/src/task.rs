//! A task: the piece of work that an agent claims for an event (document 000 §3, design page "agents").

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{RunId, StepId};
use crate::policy::Policy;
use crate::time::Millis;
use crate::wire::wire_enum;

pub const DEFAULT_TASK_LIST: &str = "default";
pub const DEFAULT_PRIORITY: i64 = 50;
/// How often a task may be handed out again after its holder fell silent.
pub const MAX_DELIVERIES: u32 = 5;

/// The kind of failure of work that may have happened, and must not happen twice: a person finds out and decides.
pub const UNCERTAIN: &str = "uncertain";

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

    /// Whether it failed without anybody knowing whether its work happened.
    pub fn is_uncertain(&self) -> bool {
        self.state == TaskState::Failed && self.error_kind.as_deref() == Some(UNCERTAIN)
    }

    /// When a running task is to be looked at: its lease has ended, or it was silent for too long.
    pub fn deadline(&self) -> Option<Millis> {
        let lease = self.lease.as_ref()?;
        let silent = self.policy.timeout_ms.map(|timeout| lease.heartbeat.plus(timeout));
        Some(silent.map_or(lease.expires, |silent| silent.min(lease.expires)))
    }
}

//! A run: one execution of a workflow, as it is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::failure::StepFailure;
use crate::id::{RunId, StepId};
use crate::time::Millis;
use crate::wire::{self, wire_enum};

/// How many entries of [`Run::iterations_per_run`] are kept: the first ones, which is where a reader looks.
pub const KEPT_RUNS: usize = 64;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Run {
    pub id: RunId,
    /// The qualified name of the workflow.
    pub workflow: Arc<str>,
    /// The hash of the program it is pinned to.
    pub workflow_version: String,
    pub status: RunStatus,
    #[serde(default)]
    pub control: Control,
    pub created: Millis,
    pub updated: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Millis>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Iterations so far, the last empty one of each run to a fixed point counted.
    pub iterations: u64,
    /// How many iterations each run to a fixed point took (document 003 §10.2).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iterations_per_run: Vec<u64>,
    /// Iterations of the run to a fixed point that is under way.
    #[serde(default)]
    pub iterations_now: u64,
    /// How many steps the next iteration begins with; none at a fixed point. [`Active`] names them.
    #[serde(default, skip_serializing_if = "wire::is_default")]
    pub active: usize,
    #[serde(default)]
    pub counts: Counts,
    /// Where the last of its tasks stands in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StepFailure>,
    /// A long evaluation that began. Each commit of an evaluation removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluating: Option<EvaluationMark>,
    /// Why it is held, when no person holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<Quarantine>,
}

/// The word of a process that it evaluates a run. A process that dies leaves it behind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EvaluationMark {
    /// An id of the process.
    pub by: String,
    /// When the process wrote it last.
    pub at: Millis,
    /// How many evaluations in a row have left a mark and no commit, this one included.
    pub count: u32,
}

/// The reason why a run is out of service until a person resumes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Quarantine {
    pub since: Millis,
    pub reason: String,
}

/// The steps that the next iteration begins with. It can be long, and is a record of its own because each claim and
/// each outcome of a task reads the run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Active(pub Vec<StepId>);

/// The numbers of a run's steps by state, so that no reader has to count them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Steps and blocks created.
    pub steps: u64,
    pub complete: u64,
    pub failed: u64,
    /// Events whose outcome has not been taken.
    pub waiting: u64,
}

impl Counts {
    /// Steps and blocks that have not ended.
    pub fn open(&self) -> u64 {
        self.steps.saturating_sub(self.complete + self.failed)
    }
}

wire_enum! {
    pub enum RunStatus ("status of a run") {
        Running = "running",
        /// At a fixed point, waiting for work from outside or for the one who holds it.
        Paused = "paused",
        Completed = "completed",
        Failed = "failed",
        Canceled = "canceled",
    }
}

wire_enum! {
    /// An operator's request to the run.
    #[derive(Default)]
    pub enum Control ("control of a run") {
        #[default]
        Go = "go",
        /// Nothing is evaluated or handed out until `resume`.
        Hold = "hold",
        Cancel = "cancel",
    }
}

impl RunStatus {
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Running | Self::Paused => false,
            Self::Completed | Self::Failed | Self::Canceled => true,
        }
    }
}

//! The outcome of a run as one object.

use afl_engine::id::RunId;
use afl_engine::run::{Run, RunStatus};
use afl_engine::value::{Map, Value};
use serde::Serialize;

use crate::error::Error;
use crate::service::Service;

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunOutcome {
    /// Nothing when there is none, or it is not known.
    pub run: Option<RunId>,
    pub status: OutcomeStatus,
    pub outputs: Map<String, Value>,
    pub error: Option<OutcomeError>,
    pub iterations_per_run: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeStatus {
    Completed,
    Failed,
    Paused,
    Canceled,
    /// Refused before anything was stored.
    Rejected,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OutcomeError {
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    #[serde(rename = "type")]
    pub kind: String,
}

impl Service {
    pub async fn outcome(&self, run: &Run) -> Result<RunOutcome, Error> {
        let status = match run.status {
            RunStatus::Running | RunStatus::Paused => OutcomeStatus::Paused,
            RunStatus::Completed => OutcomeStatus::Completed,
            RunStatus::Failed => OutcomeStatus::Failed,
            RunStatus::Canceled => OutcomeStatus::Canceled,
        };
        let is_complete = status == OutcomeStatus::Completed;
        Ok(RunOutcome {
            run: Some(run.id.clone()),
            status,
            outputs: if is_complete { self.outputs(&run.id).await? } else { Map::new() },
            error: run.error.as_ref().map(|failure| OutcomeError {
                message: failure.to_string(),
                path: Some(failure.path.clone()),
                help: None,
                kind: failure.kind.clone(),
            }),
            iterations_per_run: run.iterations_per_run.clone(),
        })
    }
}

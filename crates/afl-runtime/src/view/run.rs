//! A run as an entry of a list, and with its steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use afl_engine::failure::StepFailure;
use afl_engine::id::{RunId, StepId};
use afl_engine::run::{Control, Counts, Run, RunStatus};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use serde::Serialize;

use crate::error::Error;
use crate::query::StepList;
use crate::service::Service;
use crate::view::StepSummary;

const PAGE: usize = 1_000;

/// A run without its values and steps.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    pub run: RunId,
    pub workflow: Arc<str>,
    pub version: String,
    pub status: RunStatus,
    pub control: Control,
    pub created: Millis,
    pub ended: Option<Millis>,
    pub labels: BTreeMap<String, String>,
    pub key: Option<String>,
    pub counts: Counts,
    pub iterations: u64,
    pub iterations_per_run: Vec<u64>,
    pub error: Option<StepFailure>,
}

/// A run with its values and the first of its steps.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunDetail {
    #[serde(flatten)]
    pub entry: RunSummary,
    pub inputs: Map<String, Value>,
    pub outputs: Map<String, Value>,
    pub steps: Vec<StepSummary>,
    /// Whether there are steps behind these.
    pub more: bool,
}

/// How a run stands after an operator's request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RunControl {
    pub run: RunId,
    pub status: RunStatus,
    pub control: Control,
}

impl From<&Run> for RunSummary {
    fn from(run: &Run) -> Self {
        Self {
            run: run.id.clone(),
            workflow: Arc::clone(&run.workflow),
            version: run.workflow_version.clone(),
            status: run.status,
            control: run.control,
            created: run.created,
            ended: run.ended,
            labels: run.labels.clone(),
            key: run.idempotency_key.clone(),
            counts: run.counts,
            iterations: run.iterations,
            iterations_per_run: run.iterations_per_run.clone(),
            error: run.error.clone(),
        }
    }
}

impl Service {
    /// The first steps of a run, or those within one step; `limit` may be more than one page.
    pub async fn first_steps(
        &self,
        run: &RunId,
        within: Option<&StepId>,
        limit: usize,
    ) -> Result<StepList, Error> {
        let mut list = StepList { steps: Vec::new(), next: None };
        loop {
            let count = PAGE.min(limit - list.steps.len());
            let page = self.steps(run, within, list.next.as_ref(), count).await?;
            list.steps.extend(page.steps);
            list.next = page.next;
            if list.next.is_none() || list.steps.len() >= limit {
                return Ok(list);
            }
        }
    }

    /// A run with its values and these steps of it.
    pub async fn run_detail(&self, run: &Run, list: &StepList) -> Result<RunDetail, Error> {
        Ok(RunDetail {
            entry: run.into(),
            inputs: self.inputs(&run.id).await?,
            outputs: self.outputs(&run.id).await?,
            steps: list.steps.iter().map(StepSummary::from).collect(),
            more: list.next.is_some(),
        })
    }
}

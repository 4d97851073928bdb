//! A step with its event and task.

use std::sync::Arc;

use afl_engine::attribute::Fields;
use afl_engine::event::EventState;
use afl_engine::failure::{FailureKind, StepFailure};
use afl_engine::id::StepId;
use afl_engine::object::ObjectType;
use afl_engine::state::State;
use afl_engine::task::{Task, TaskState};
use afl_engine::time::Millis;
use afl_engine::wire_enum;
use serde::Serialize;

use crate::query::StepView;

/// A step without the records behind it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepSummary {
    pub id: StepId,
    pub path: String,
    pub object_type: ObjectType,
    pub facet: Arc<str>,
    pub state: State,
    pub params: Fields,
    pub returns: Fields,
    pub error: Option<StepFailure>,
    pub created: Millis,
    pub ended: Option<Millis>,
    pub event: Option<EventState>,
    pub task: Option<StepTask>,
}

/// The task of a step without the secret of its lease.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepTask {
    pub name: Arc<str>,
    pub list: Arc<str>,
    pub state: TaskState,
    pub attempts: u32,
    pub not_before: Option<Millis>,
    pub owner: Option<String>,
    pub error: Option<String>,
}

wire_enum! {
    /// A step at a glance.
    pub enum StepStatus ("status of a step") {
        Done = "done",
        Failed = "failed",
        /// With its run.
        Canceled = "canceled",
        /// A step within it is open.
        Open = "open",
        /// No agent has its task.
        Waiting = "waiting",
        /// An agent has its task.
        Working = "working",
        /// Its next attempt has a time.
        Retrying = "retrying",
    }
}

impl From<&StepView> for StepSummary {
    fn from(view: &StepView) -> Self {
        Self {
            id: view.id.clone(),
            path: view.path.clone(),
            object_type: view.step.object_type,
            facet: view.step.facet_name.clone(),
            state: view.step.state,
            params: view.step.attributes.params.clone(),
            returns: view.step.attributes.returns.clone(),
            error: view.step.error.clone(),
            created: view.step.created,
            ended: view.step.ended,
            event: view.event_state,
            task: view.task.as_ref().map(StepTask::from),
        }
    }
}

impl From<&Task> for StepTask {
    fn from(task: &Task) -> Self {
        Self {
            name: task.name.clone(),
            list: task.task_list_name.clone(),
            state: task.state,
            attempts: task.attempts,
            not_before: task.not_before,
            owner: task.lease.as_ref().map(|lease| lease.owner.clone()),
            error: task.error.clone(),
        }
    }
}

impl StepStatus {
    pub fn of(view: &StepView) -> Self {
        let is_canceled = |failure: &StepFailure| failure.kind == FailureKind::Canceled.name();
        match (view.step.state, &view.task) {
            (State::Complete, _) => Self::Done,
            (State::Error, _) if view.step.error.as_ref().is_some_and(is_canceled) => Self::Canceled,
            (State::Error, _) => Self::Failed,
            (_, Some(task)) => Self::of_task(task),
            (_, None) => Self::Open,
        }
    }

    fn of_task(task: &Task) -> Self {
        match (task.state, task.not_before) {
            (TaskState::Pending, Some(_)) => Self::Retrying,
            (TaskState::Pending, None) => Self::Waiting,
            (TaskState::Running | TaskState::AwaitingResponse, _) => Self::Working,
            (TaskState::Completed | TaskState::Failed | TaskState::Ignored | TaskState::Canceled, _) => {
                Self::Open
            }
        }
    }
}

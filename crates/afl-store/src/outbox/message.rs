//! A message: that a task or a run has ended, and how.

use std::sync::Arc;

use afl_engine::attribute::{Blob, BlobHash, ValueRef};
use afl_engine::event::{Event, EventError, Payload};
use afl_engine::id::{RunId, StepId};
use afl_engine::run::{Run, RunStatus};
use afl_engine::task::{Task, TaskState};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_engine::wire_enum;
use serde::{Deserialize, Serialize};

wire_enum! {
    pub enum Topic ("topic") {
        TaskCompleted = "task.completed",
        TaskFailed = "task.failed",
        TaskCanceled = "task.canceled",
        TaskIgnored = "task.ignored",
        RunCompleted = "run.completed",
        RunFailed = "run.failed",
        RunCanceled = "run.canceled",
        /// Sent to one channel by name; no channel asks for it.
        TaskDispatched = "task.dispatched",
    }
}

impl Topic {
    /// Those that a channel can ask for.
    pub(super) fn ends() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|topic| *topic != Self::TaskDispatched)
    }

    pub(super) const fn of_task(state: TaskState) -> Option<Self> {
        match state {
            TaskState::Completed => Some(Self::TaskCompleted),
            TaskState::Failed => Some(Self::TaskFailed),
            TaskState::Canceled => Some(Self::TaskCanceled),
            TaskState::Ignored => Some(Self::TaskIgnored),
            TaskState::Pending | TaskState::Running | TaskState::AwaitingResponse => None,
        }
    }

    pub(super) const fn of_run(status: RunStatus) -> Option<Self> {
        match status {
            RunStatus::Completed => Some(Self::RunCompleted),
            RunStatus::Failed => Some(Self::RunFailed),
            RunStatus::Canceled => Some(Self::RunCanceled),
            RunStatus::Running | RunStatus::Paused => None,
        }
    }
}

/// As it is stored, the same for each channel but for how its delivery goes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Message {
    pub topic: Topic,
    pub run: RunId,
    /// Whose task it was; none for a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepId>,
    /// A system task belongs to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Arc<str>>,
    /// The step or the run for people.
    pub path: String,
    /// The facet of the task, or the workflow.
    pub facet: Arc<str>,
    /// Of the last claim; zero when the task was never claimed.
    #[serde(default)]
    pub token: u64,
    pub at: Millis,
    /// When the channel was opened that it is for; another one of its name has nothing to do with it. Zero when that is
    /// not known.
    #[serde(default)]
    pub(super) opened: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<MessageData>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EventError>,
    #[serde(default)]
    pub delivery: Delivery,
}

/// The result, or the payload of a dispatch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MessageData {
    Fields(Payload),
    /// The JSON of the fields is a large value of the run: a commit that has room for it once need not have room for
    /// it once for each channel.
    Whole(ValueRef),
}

/// Fields of which this is all are repeated in each message.
const REPEATED_BYTES: usize = 64 << 10;

/// How the delivery of a message goes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Delivery {
    #[serde(default)]
    pub attempts: u32,
    /// When the first attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// It was given up, and a person decides.
    #[serde(default)]
    pub is_dead: bool,
}

impl MessageData {
    /// Returns the blob to store with it beside it.
    pub(super) fn new(fields: &Payload) -> (Self, Option<Blob>) {
        let text = serde_json::to_string(fields).expect("fields have a JSON form");
        if text.len() <= REPEATED_BYTES {
            return (Self::Fields(fields.clone()), None);
        }
        let blob = Blob { hash: BlobHash::of(&text), text };
        (Self::Whole(blob.held()), Some(blob))
    }

    /// Whether it cannot be read without the run.
    pub(super) fn refers_to_run(&self) -> bool {
        match self {
            Self::Fields(fields) => fields.values().any(|held| matches!(held, ValueRef::Blob(_))),
            Self::Whole(_) => true,
        }
    }
}

impl Message {
    /// Nothing, as long as the task has not ended.
    pub(super) fn of_end(task: &Task, event: Option<&Event>, at: Millis) -> Option<Self> {
        let error = event.and_then(|event| event.error.clone());
        Some(Self { error, ..Self::of_task(Topic::of_task(task.state)?, task, at) })
    }

    pub(super) fn of_dispatch(task: &Task, at: Millis) -> Self {
        Self::of_task(Topic::TaskDispatched, task, at)
    }

    fn of_task(topic: Topic, task: &Task, at: Millis) -> Self {
        let (step, path, token) = (Some(task.step_id.clone()), task.path.clone(), task.token);
        Self { step, path, token, ..Self::new(topic, task.workflow_id.clone(), task.name.clone(), at) }
    }

    /// `facet` is that of the task, or the workflow of the run.
    fn new(topic: Topic, run: RunId, facet: Arc<str>, at: Millis) -> Self {
        Self {
            topic,
            run,
            step: None,
            workflow: None,
            path: facet.to_string(),
            facet,
            token: 0,
            at,
            opened: Millis(0),
            data: None,
            error: None,
            delivery: Delivery::default(),
        }
    }

    /// Nothing, as long as the run has not ended.
    pub(super) fn of_run(run: &Run, at: Millis) -> Option<Self> {
        let error = run.error.as_ref();
        Some(Self {
            workflow: Some(run.workflow.clone()),
            error: error.map(|it| EventError::new(it.kind.clone(), it.to_string())),
            ..Self::new(Topic::of_run(run.status)?, run.id.clone(), run.workflow.clone(), at)
        })
    }

    /// `version` is that of the record whose write the message goes with, so that the same end has the same name
    /// from any process, and the next end another.
    pub(super) fn id(&self, version: u64) -> String {
        let Self { run, step, .. } = self;
        let part = step.as_ref().map_or(RUN_ITSELF, StepId::as_str);
        let sort = if self.topic == Topic::TaskDispatched { "d" } else { "" };
        format!("{run}/{part}/{sort}{version}")
    }
}

/// Sorts behind every step, so that a run and its last task that end in the same moment are published in this order.
const RUN_ITSELF: &str = "x";

/// A message as its receiver reads it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Envelope {
    /// The same at each delivery, so that receivers recognize a repetition.
    pub id: String,
    pub topic: Topic,
    pub at: Millis,
    pub run: RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Arc<str>>,
    pub path: String,
    pub facet: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// The payload of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<EventError>,
}

impl Envelope {
    pub(super) fn new(id: String, message: Message, data: Option<Map<String, Value>>) -> Self {
        let Message { topic, run, step, workflow, path, facet, token, at, error, .. } = message;
        // A step has one event and one task, which are known by its name.
        let work = step.map(|step| format!("{run}/{step}"));
        let token = work.as_ref().map(|_| token);
        let (payload, result) = if topic == Topic::TaskDispatched { (data, None) } else { (None, data) };
        Self {
            id,
            topic,
            at,
            run,
            workflow,
            path,
            facet,
            event_id: work.clone(),
            task_id: work,
            token,
            payload,
            result,
            error,
        }
    }
}

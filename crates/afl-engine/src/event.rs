//! An event: a step's request for work from outside, and its outcome (document 002).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::attribute::ValueRef;
use crate::id::StepId;
use crate::task::{Task, TaskState, UNCERTAIN};
use crate::time::Millis;
use crate::wire::{self, wire_enum};

/// `EventDefinition`. A step waits for one event at a time, so the step's id is the event's.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Event {
    #[serde(skip, default = "StepId::root")]
    pub step_id: StepId,
    /// `Created` until it is settled; [`Event::state_with`] gives the states in between, which are its task's.
    pub state: EventState,
    /// The qualified facet, or the name of a system task.
    pub event_type: Arc<str>,
    pub payload: Payload,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Partial>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Payload>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EventError>,
    #[serde(default)]
    pub reception: Reception,
    /// When its task [times out](crate::task::TaskRecord::times_out). While it is open, it stands among the timers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_out: Option<Millis>,
}

pub type Payload = BTreeMap<String, ValueRef>;

/// Parts of the result that one attempt reported before its end (document 000 §8.9). No other attempt has them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Partial {
    /// Of the claim.
    pub token: u64,
    pub values: Payload,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EventError {
    /// The handler's name for it; `EventError` without one.
    pub kind: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "wire::is_default")]
    pub evidence: WorkEvidence,
}

wire_enum! {
    /// The knowledge about the work of an attempt that failed. It decides whether work with `Effect(kind = "once")`
    /// may be repeated.
    #[derive(Default)]
    pub enum WorkEvidence ("evidence") {
        /// Nothing happened: the handler says so, or its first instruction was never reached.
        NotDone = "not-done",
        /// The handler reported a failure. A part of the work may have happened.
        #[default]
        Reported = "reported",
        /// The work may have happened: it began, and gave no answer or an unusable one.
        Unknown = "unknown",
    }
}

impl EventError {
    /// A failure that the handler or a person reports.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into(), evidence: WorkEvidence::default() }
    }

    #[must_use]
    pub fn with_evidence(self, evidence: WorkEvidence) -> Self {
        Self { evidence, ..self }
    }

    /// The error of work that must happen at most once and may have happened.
    pub fn uncertain(message: &str) -> Self {
        let message = format!(
            "{message}; the work must happen at most once: find out whether it happened, then retry the step or \
             continue it with its result"
        );
        Self::new(UNCERTAIN, message).with_evidence(WorkEvidence::Unknown)
    }
}

wire_enum! {
    pub enum EventState ("state of an event") {
        Created = "event.Created",
        Dispatched = "event.Dispatched",
        Processing = "event.Processing",
        Completed = "event.Completed",
        Error = "event.Error",
    }
}

wire_enum! {
    /// How far the outcome of an event is on its way into its step. This is the `StepContinue` of document
    /// 003 §12.1: an outcome that has arrived wakes the evaluator until the evaluator has taken it.
    #[derive(Default)]
    pub enum Reception ("reception") {
        #[default]
        Open = "open",
        Arrived = "arrived",
        Taken = "taken",
    }
}

impl EventState {
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Error)
    }

    /// The state after this one on the way to success; any state that is not terminal may also end in `Error`.
    pub const fn next(self) -> Option<Self> {
        match self {
            Self::Created => Some(Self::Dispatched),
            Self::Dispatched => Some(Self::Processing),
            Self::Processing => Some(Self::Completed),
            Self::Completed | Self::Error => None,
        }
    }
}

impl Event {
    /// A new request for work.
    pub fn open(step_id: StepId, event_type: Arc<str>, payload: Payload) -> Self {
        let (partial, result, error) = (None, None, None);
        let (state, reception) = (EventState::Created, Reception::Open);
        Self { step_id, state, event_type, payload, partial, result, error, reception, times_out: None }
    }

    /// The parts of the result that the attempt of this claim has reported.
    pub fn told_by(&self, token: u64) -> Payload {
        let partial = self.partial.as_ref().filter(|partial| partial.token == token);
        partial.map(|partial| partial.values.clone()).unwrap_or_default()
    }

    /// Where the event stands, which is where its task does: a task that agents can see is dispatched, one that
    /// an agent holds is being processed.
    pub fn state_with(&self, task: &Task) -> EventState {
        if self.state.is_terminal() {
            return self.state;
        }
        match task.state {
            TaskState::Pending => EventState::Dispatched,
            TaskState::Running | TaskState::AwaitingResponse => EventState::Processing,
            TaskState::Completed | TaskState::Ignored => EventState::Completed,
            TaskState::Failed | TaskState::Canceled => EventState::Error,
        }
    }
}

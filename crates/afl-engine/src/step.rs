//! A step as it is stored: where it stands and what it knows.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::attribute::Attributes;
use crate::children::Children;
use crate::failure::StepFailure;
use crate::id::StepId;
use crate::object::ObjectType;
use crate::policy::Policy;
use crate::state::State;
use crate::time::Millis;
use crate::wire::{self, wire_enum};

/// `StepDefinition` of document 003. The ids of its container, block and root are parts of its own id.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Step {
    #[serde(skip, default = "StepId::root")]
    pub id: StepId,
    pub object_type: ObjectType,
    /// The node of the program that it is an instance of.
    pub statement_id: Arc<str>,
    /// Empty for a block.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub facet_name: Arc<str>,
    pub state: State,
    #[serde(default, skip_serializing_if = "wire::is_default")]
    pub attributes: Attributes,
    #[serde(default, skip_serializing_if = "wire::is_default")]
    pub policy: Policy,
    /// How far the event is that it waits for, or waited for last.
    #[serde(default, skip_serializing_if = "wire::is_default")]
    pub event: Transmission,
    /// Of the phase it is in: mixins, blocks, or the `catch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<Children>,
    /// The case that a `when` took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<u32>,
    /// Why its state is `Error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StepFailure>,
    /// Where it was when it failed, and where it goes on when it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_in: Option<State>,
    /// The failure that started its `catch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caught: Option<StepFailure>,
    pub created: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Millis>,
    /// Where it rested, and since which iteration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rests: Vec<StepRest>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StepRest {
    pub iteration: u64,
    pub state: State,
}

wire_enum! {
    /// The progress of a step's event, as the step sees it.
    #[derive(Default)]
    pub enum Transmission ("transmission") {
        #[default]
        None = "none",
        /// Created with its task; the step waits.
        Sent = "sent",
        /// Its outcome is in the step.
        Answered = "answered",
    }
}

impl Step {
    pub(crate) fn new(
        id: StepId,
        object_type: ObjectType,
        statement_id: Arc<str>,
        facet_name: Arc<str>,
        created: Millis,
    ) -> Self {
        Self {
            id,
            object_type,
            statement_id,
            facet_name,
            state: State::Created,
            attributes: Attributes::default(),
            policy: Policy::default(),
            event: Transmission::None,
            children: None,
            case: None,
            error: None,
            failed_in: None,
            caught: None,
            created,
            ended: None,
            rests: Vec::new(),
        }
    }

    pub fn is_terminal(&self) -> bool {
        self.state.is_terminal()
    }

    /// Whether its failure began here, and not in one of its children.
    pub fn failed_itself(&self) -> bool {
        self.names_itself() && (self.failed_by_event() || !self.has_failed_children())
    }

    /// Whether what it sent out failed, or came back with what does not fit.
    pub fn failed_by_event(&self) -> bool {
        let waited_for_event = match self.failed_in {
            // A script stands in the place of a block's statements.
            Some(State::FacetScriptsBegin | State::EventTransmit | State::BlockExecutionContinue) => true,
            // The result lacks a field. A `catch` result is not the event's.
            Some(State::End) => self.caught.is_none(),
            Some(_) | None => false,
        };
        self.names_itself() && waited_for_event && self.event != Transmission::None
    }

    fn names_itself(&self) -> bool {
        self.state == State::Error && self.error.as_ref().is_some_and(|failure| failure.step == self.id)
    }

    /// A parent whose children fail in greater number than it keeps has no failure of theirs to name.
    fn has_failed_children(&self) -> bool {
        self.children.as_ref().is_some_and(|children| children.failed > 0)
    }
}

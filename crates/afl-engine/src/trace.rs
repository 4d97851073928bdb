//! The evaluator's trace records (document 003 §18). It publishes them after the fact, so no listener can change the
//! evaluation.

use serde::Serialize;

use crate::failure::StepFailure;
use crate::id::StepId;
use crate::object::ObjectType;
use crate::run::RunStatus;
use crate::state::State;
use crate::value::Value;

/// The work of a state begins with the record that leads into it ([`Created`](Trace::Created) or
/// [`Transition`](Trace::Transition)) and ends with the next one of its step; a step that waits is
/// [`Stayed`](Trace::Stayed), once for each time that it was looked at.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "trace", rename_all = "snake_case")]
pub enum Trace {
    IterationBegan {
        iteration: u64,
    },
    IterationEnded {
        iteration: u64,
        /// How many records are not as they are stored.
        changed: usize,
    },
    /// A fixed point: nothing is active, which this last iteration found out.
    Rested {
        iteration: u64,
        status: RunStatus,
    },
    Created {
        step: StepId,
        path: String,
        object_type: ObjectType,
        iteration: u64,
    },
    Transition {
        step: StepId,
        path: String,
        from: State,
        to: State,
        iteration: u64,
    },
    /// The work of a state ended without a transition.
    Stayed {
        step: StepId,
        path: String,
        state: State,
        iteration: u64,
    },
    /// The work of a state failed; the error says where that began, which may be in a step below.
    Failed {
        step: StepId,
        path: String,
        state: State,
        error: StepFailure,
        iteration: u64,
    },
    /// All that a statement or a block waited for is complete.
    Resolved {
        step: StepId,
        path: String,
        waited_for: Vec<StepId>,
        iteration: u64,
    },
    Published {
        step: StepId,
        path: String,
        event_type: String,
        iteration: u64,
    },
    /// A result held a key that its facet does not declare; it is left out.
    Undeclared {
        step: StepId,
        path: String,
        key: String,
    },
    /// `sys.log`.
    Logged {
        step: StepId,
        path: String,
        values: Value,
    },
}

/// Whether to collect [`Trace`]s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Tracing {
    /// A message of the program or its results to people.
    #[default]
    LogsOnly,
    Full,
}

impl Tracing {
    /// Whether a subscriber at this level gets the record.
    pub fn hears(self, trace: &Trace) -> bool {
        self == Self::Full || matches!(trace, Trace::Logged { .. } | Trace::Undeclared { .. })
    }
}

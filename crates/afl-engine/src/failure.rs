//! Why a step failed.

use serde::{Deserialize, Serialize};

use crate::id::StepId;
use crate::task::UNCERTAIN;
use crate::wire::wire_enum;

/// The failure of one step, kept by every block and step above it that failed because of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StepFailure {
    /// The step where it happened.
    pub step: StepId,
    /// That step for people: `Checkout.payment[3].charge`.
    pub path: String,
    /// `$.error_type` in a `catch`: the name of a [`FailureKind`], or what a handler calls its error.
    pub kind: String,
    /// `$.error` in a `catch`.
    pub message: String,
}

wire_enum! {
    pub enum FailureKind ("kind of failure") {
        /// An expression has no value.
        Evaluation = "EvaluationError",
        /// A value does not fit the type of its place.
        Type = "TypeError",
        /// `sys.assert` did not hold.
        Assertion = "AssertionError",
        /// The work of an event facet failed.
        Event = "EventError",
        /// A run grew beyond a limit.
        Limit = "LimitError",
        Canceled = "Canceled",
    }
}

impl StepFailure {
    /// Whether it is unknown if the work happened. A person decides, and no `catch`.
    pub fn is_uncertain(&self) -> bool {
        self.kind == UNCERTAIN
    }
}

impl std::fmt::Display for StepFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

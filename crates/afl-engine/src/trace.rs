//! What the evaluator tells about its work (document 003 §18). It is told after the fact, so no listener can
//! change what happens.

use serde::Serialize;

use crate::id::StepId;
use crate::state::State;
use crate::value::Value;

#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "trace", rename_all = "snake_case")]
pub enum Trace {
    IterationBegan {
        iteration: u64,
    },
    IterationEnded {
        iteration: u64,
        changed: usize,
    },
    Transition {
        step: StepId,
        from: State,
        to: State,
        iteration: u64,
    },
    /// A statement's dependencies are complete.
    Resolved {
        block: StepId,
        statement: u32,
        iteration: u64,
    },
    Published {
        step: StepId,
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

/// Whether to collect [`Trace`]s; `sys.log` is always told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tracing {
    #[default]
    LogsOnly,
    Full,
}

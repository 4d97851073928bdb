//! Why an attempt failed.

use std::fmt;

use afl_runtime::agent::WorkEvidence;
use afl_runtime::wire_enum;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Object;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HandlerFailure {
    pub kind: HandlerFailureKind,
    /// For people: what happened to which thing, and what to do.
    pub message: String,
    /// For programs: the traceback, the exit code, the status.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub details: Object,
    /// The knowledge about the work. Without a word of the host there is none.
    #[serde(default = "nothing_known")]
    pub evidence: WorkEvidence,
}

wire_enum! {
    pub enum HandlerFailureKind ("kind of failure") {
        /// The handler said so: an exception, an error, an exit code, a status.
        Error = "error",
        /// No sign of life for as long as the registration allows.
        Timeout = "timeout",
        /// The handler ended without an answer: a panic, a signal, a dead interpreter.
        Crash = "crash",
        Canceled = "canceled",
        /// The answer is no JSON object, or too large.
        InvalidResult = "invalid_result",
        /// The payload is not what the handler takes.
        InvalidInput = "invalid_input",
        /// There is no such module, program, entrypoint or built-in handler.
        NotFound = "not_found",
        /// A rule forbids it: a path outside the roots, a wrong checksum, a private address.
        Refused = "refused",
        /// The handler could not be started or reached.
        Unavailable = "unavailable",
    }
}

impl HandlerFailureKind {
    /// The evidence of the kind alone. Only the place of a failure shows that nothing happened.
    const fn evidence(self) -> WorkEvidence {
        match self {
            Self::Error | Self::InvalidInput | Self::NotFound | Self::Refused | Self::Unavailable => {
                WorkEvidence::Reported
            }
            Self::Timeout | Self::Crash | Self::Canceled | Self::InvalidResult => WorkEvidence::Unknown,
        }
    }
}

const fn nothing_known() -> WorkEvidence {
    WorkEvidence::Unknown
}

/// Where a handler's own name for its error stands in the details.
const TYPE: &str = "type";

impl HandlerFailure {
    pub fn new(kind: HandlerFailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Object::new(), evidence: kind.evidence() }
    }

    #[must_use]
    pub fn with_evidence(self, evidence: WorkEvidence) -> Self {
        Self { evidence, ..self }
    }

    /// Nothing of the work has happened, so it may be repeated.
    #[must_use]
    pub fn not_done(self) -> Self {
        self.with_evidence(WorkEvidence::NotDone)
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// The value of `$.error_type` in a `catch`: the handler's own name for it (`ValueError`), else the kind.
    pub fn error_type(&self) -> &str {
        self.details.get(TYPE).and_then(Value::as_str).unwrap_or(self.kind.name())
    }
}

/// A constructor for each kind of failure that hosts find themselves.
macro_rules! constructors {
    ($($name:ident => $kind:ident,)+) => {
        impl HandlerFailure {
            $(pub fn $name(message: impl Into<String>) -> Self {
                Self::new(HandlerFailureKind::$kind, message)
            })+
        }
    };
}

constructors! {
    error => Error,
    crash => Crash,
    invalid_result => InvalidResult,
    invalid_input => InvalidInput,
    not_found => NotFound,
    refused => Refused,
    unavailable => Unavailable,
}

impl fmt::Display for HandlerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

//! Why an attempt failed.

use std::fmt;

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
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandlerFailureKind {
    /// The handler said so: an exception, an error, an exit code, a status.
    Error,
    /// No sign of life for as long as the registration allows.
    Timeout,
    /// The handler ended without an answer: a panic, a signal, a dead interpreter.
    Crash,
    Canceled,
    /// The answer is no JSON object, or too large.
    InvalidResult,
    /// The payload is not what the handler takes.
    InvalidInput,
    /// There is no such module, program, entrypoint or built-in handler.
    NotFound,
    /// A rule forbids it: a path outside the roots, a wrong checksum, a private address.
    Refused,
    /// The handler could not be started or reached.
    Unavailable,
}

/// Where a handler's own name for its error stands in the details.
const TYPE: &str = "type";

impl HandlerFailure {
    pub fn new(kind: HandlerFailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: Object::new() }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// What a `catch` sees as `$.error_type`: the handler's own name for it (`ValueError`), else the kind.
    pub fn error_type(&self) -> &str {
        self.details.get(TYPE).and_then(Value::as_str).unwrap_or(self.kind.name())
    }
}

impl HandlerFailureKind {
    /// As stored and sent.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Crash => "crash",
            Self::Canceled => "canceled",
            Self::InvalidResult => "invalid_result",
            Self::InvalidInput => "invalid_input",
            Self::NotFound => "not_found",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for HandlerFailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for HandlerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

//! The one interface of everything that does the work of a task: a call in, an outcome out.

mod call;
mod context;
mod failure;
mod function;
mod notes;
mod perform;

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};

pub use afl_runtime::agent::{LogLevel, LogLine, LogStream, WorkEvidence};
pub use call::Call;
pub use context::{CallControl, CallStop, CancelReason, Context, Facts};
pub use failure::{HandlerFailure, HandlerFailureKind};
pub use function::{blocking, concurrent};
pub use notes::{MAX_LINE_BYTES, Notes, Progress};
pub use perform::perform;
pub(crate) use perform::{message_of, of_panic};

/// The result of a handler, and the content of an update.
pub type Object = Map<String, Value>;

/// How an attempt ended: with the handler's result, or with its failure.
pub type Outcome = Result<Object, HandlerFailure>;

/// Does the work of calls. [`perform`] runs it, so that panics, silence and cancels become outcomes.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Dropping the future ends the work, as far as it can be ended from outside.
    async fn run(&self, call: Call) -> Outcome;

    /// How long a stopped call is waited for before its future is dropped.
    fn grace(&self) -> Duration {
        Duration::ZERO
    }

    /// How long its work may go on after the stop. The holder stops a call so much before its lease ends, because another
    /// agent may begin then.
    fn kill_ladder(&self) -> Duration {
        self.grace()
    }

    /// How long a call may be silent, when its step allows `step`. Without a limit it may be silent for ever.
    fn timeout(&self, step: Option<Duration>) -> Option<Duration> {
        step
    }

    /// The version and checksum of the handler for the history of a task, as far as they are known.
    fn version(&self) -> String {
        String::new()
    }
}

/// A handler's return value, which must be an object.
pub(crate) fn object_of(value: Value) -> Outcome {
    let kind = match value {
        Value::Object(result) => return Ok(result),
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
    };
    Err(HandlerFailure::invalid_result(format!("the result is {kind}, and must be a JSON object")))
}

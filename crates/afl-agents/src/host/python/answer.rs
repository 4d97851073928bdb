//! Passes on the messages of a Python process.

use afl_runtime::read_json;
use serde::Deserialize;

use super::frame::{LinkError, PythonFrame, READY};
use crate::handler::{Context, HandlerFailure, LogLevel, LogStream, Object, Outcome, Progress, object_of};

#[derive(Deserialize)]
struct LogFrame {
    level: LogLevel,
    text: String,
}

/// The last frame of a call.
pub(super) enum PythonAnswer {
    Of(Outcome),
    /// The module did not load, so the process has nothing to offer to the next call.
    NotLoaded(HandlerFailure),
}

/// Passes a frame on, or gives the answer that it is.
pub(super) fn take(frame: &PythonFrame, context: &Context) -> Result<Option<PythonAnswer>, LinkError> {
    let body = &frame.body;
    match frame.kind {
        READY => {}
        b'H' => context.heartbeat(),
        b'L' => {
            if let Ok(logged) = serde_json::from_slice::<LogFrame>(body) {
                context.log(LogStream::System, logged.level, logged.text);
            }
        }
        b'P' => {
            if let Ok(progress) = serde_json::from_slice::<Progress>(body) {
                context.progress(progress);
            }
        }
        b'U' => {
            if let Ok(partial) = serde_json::from_slice::<Object>(body) {
                context.update(partial);
            }
        }
        b'R' => return Ok(Some(PythonAnswer::Of(result(body)))),
        b'F' => return Ok(Some(PythonAnswer::Of(Err(failure(body))))),
        b'X' => return Ok(Some(PythonAnswer::NotLoaded(failure(body)))),
        _ => return Err(LinkError::Broken("a frame of no known kind")),
    }
    Ok(None)
}

fn result(body: &[u8]) -> Outcome {
    let value = read_json(body, "result")
        .map_err(|error| HandlerFailure::invalid_result(format!("the result cannot be stored: {error}")))?;
    object_of(value)
}

fn failure(body: &[u8]) -> HandlerFailure {
    serde_json::from_slice(body).unwrap_or_else(|error| {
        HandlerFailure::crash(format!("the handler failed, and its error cannot be read: {error}"))
    })
}

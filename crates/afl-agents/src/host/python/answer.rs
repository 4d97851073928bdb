//! What a Python process says, passed on.

use serde::Deserialize;
use serde_json::Value;

use super::frame::PythonFrame;
use crate::handler::{
    Context, HandlerFailure, HandlerFailureKind, LogLevel, LogStream, Object, Outcome, Progress,
};

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
pub(super) fn take(frame: PythonFrame, context: &Context) -> Option<PythonAnswer> {
    match frame {
        PythonFrame::Ready => {}
        PythonFrame::Heartbeat => context.heartbeat(),
        PythonFrame::Log(body) => {
            if let Ok(logged) = serde_json::from_slice::<LogFrame>(&body) {
                context.log(LogStream::System, logged.level, logged.text);
            }
        }
        PythonFrame::Progress(body) => {
            if let Ok(progress) = serde_json::from_slice::<Progress>(&body) {
                context.progress(progress);
            }
        }
        PythonFrame::Update(body) => {
            if let Ok(partial) = serde_json::from_slice::<Object>(&body) {
                context.update(partial);
            }
        }
        PythonFrame::Result(body) => return Some(PythonAnswer::Of(result(&body))),
        PythonFrame::Failure(body) => return Some(PythonAnswer::Of(Outcome::Failed(failure(&body)))),
        PythonFrame::NotLoaded(body) => return Some(PythonAnswer::NotLoaded(failure(&body))),
    }
    None
}

fn result(body: &[u8]) -> Outcome {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => Outcome::of_value(value),
        Err(error) => Outcome::Failed(HandlerFailure::new(
            HandlerFailureKind::InvalidResult,
            format!("the result is no JSON that can be stored: {error}"),
        )),
    }
}

fn failure(body: &[u8]) -> HandlerFailure {
    serde_json::from_slice(body).unwrap_or_else(|error| {
        HandlerFailure::new(
            HandlerFailureKind::Crash,
            format!("the handler failed, and its error cannot be read: {error}"),
        )
    })
}

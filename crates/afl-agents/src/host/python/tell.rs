//! What a Python process says, passed on.

use serde::Deserialize;
use serde_json::Value;

use super::frame::Frame;
use crate::handler::{Context, Failure, FailureKind, Level, Object, Outcome, Progress, Stream};

#[derive(Deserialize)]
struct Logged {
    level: Level,
    text: String,
}

/// The last frame of a call.
pub(super) enum Answer {
    Of(Outcome),
    /// The module did not load, so the process has nothing to offer to the next call.
    NotLoaded(Failure),
}

/// Passes a frame on, or gives the answer that it is.
pub(super) fn take(frame: Frame, context: &Context) -> Option<Answer> {
    match frame {
        Frame::Ready => {}
        Frame::Heartbeat => context.heartbeat(),
        Frame::Log(body) => {
            if let Ok(logged) = serde_json::from_slice::<Logged>(&body) {
                context.log(Stream::System, logged.level, logged.text);
            }
        }
        Frame::Progress(body) => {
            if let Ok(progress) = serde_json::from_slice::<Progress>(&body) {
                context.progress(progress);
            }
        }
        Frame::Update(body) => {
            if let Ok(partial) = serde_json::from_slice::<Object>(&body) {
                context.update(partial);
            }
        }
        Frame::Result(body) => return Some(Answer::Of(result(&body))),
        Frame::Failure(body) => return Some(Answer::Of(Outcome::Failed(failure(&body)))),
        Frame::NotLoaded(body) => return Some(Answer::NotLoaded(failure(&body))),
    }
    None
}

fn result(body: &[u8]) -> Outcome {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => Outcome::of_value(value),
        Err(error) => Outcome::Failed(Failure::new(
            FailureKind::InvalidResult,
            format!("the result is no JSON that can be stored: {error}"),
        )),
    }
}

fn failure(body: &[u8]) -> Failure {
    serde_json::from_slice(body).unwrap_or_else(|error| {
        Failure::new(FailureKind::Crash, format!("the handler failed, and its error cannot be read: {error}"))
    })
}

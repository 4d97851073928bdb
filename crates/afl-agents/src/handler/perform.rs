//! Runs a handler so that every call yields an outcome.
//!
//! Problem: a handler may panic, hang, ignore a cancel or answer after its stop. Each must become one outcome.
//!
//! Approach: one `select!` over the handler's future, the stop request and a timeout. The timeout counts from the last
//! sign of life, so a long call that reports is no failure. While a call waits for a free process, no timeout runs. A
//! stopped call has its handler's grace to clean up. Its late answer adds details only: the stop decides the outcome.
//!
//! Rejected: a timeout in each host. The hosts would count differently, and functions of this process would have none.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time;

use super::context::LastActivity;
use super::{Call, CallStop, Context, Handler, HandlerFailure, Outcome, WorkEvidence};

/// Runs one call. `timeout` counts from the last sign of life; without one the call may take for ever.
///
/// A call that is canceled or overdue gets the request to stop, then the time of its handler's
/// [`grace`](Handler::grace); after that its future is dropped.
pub async fn perform(handler: &dyn Handler, call: Call, timeout: Option<Duration>) -> Outcome {
    let context = call.context.clone();
    if let Some(stop) = context.stop_asked() {
        return Err(stop.failure().not_done());
    }
    context.restart_timeout();
    let mut work = AssertUnwindSafe(handler.run(call)).catch_unwind();
    let (stop, late) = tokio::select! {
        biased;
        ended = &mut work => match context.stop_asked() {
            None => return ended.unwrap_or_else(|panic| Err(of_panic(panic.as_ref()))),
            Some(stop) => (stop, Some(ended)),
        },
        stop = context.stopped() => (stop, time::timeout(handler.grace(), work).await.ok()),
        () = overdue(&context, timeout) => {
            context.stop(CallStop::TimedOut);
            (CallStop::TimedOut, time::timeout(handler.grace(), work).await.ok())
        }
    };
    let mut failure = stop.failure();
    if let (CallStop::TimedOut, Some(timeout)) = (stop, timeout) {
        let path = &context.facts().path;
        failure.message = format!(
            "no sign of life from the handler of {path} for {} ms: make it faster, let it call heartbeat, or raise timeout_ms",
            timeout.as_millis()
        );
    }
    if context.is_queued() {
        failure = failure.not_done();
    }
    if let Some(Ok(Err(told))) = late {
        failure.details = told.details;
        // The error of a stopped handler is that of the stop; only its word that nothing happened counts.
        if told.evidence == WorkEvidence::NotDone {
            failure.evidence = told.evidence;
        }
    }
    Err(failure)
}

pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> HandlerFailure {
    HandlerFailure::crash(format!("the handler panicked: {}", message_of(panic)))
}

pub(crate) fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

async fn overdue(context: &Context, timeout: Option<Duration>) {
    let Some(timeout) = timeout else { return std::future::pending().await };
    let mut activities = context.activities();
    loop {
        let activity = *activities.borrow_and_update();
        match activity {
            LastActivity::Queued => activities.changed().await.expect("the context has the sender"),
            LastActivity::At(last) => {
                time::sleep_until(last + timeout).await;
                if *activities.borrow() == activity {
                    return;
                }
            }
        }
    }
}

//! Does the system task `afl:execute`.

use std::time::Duration;

use afl_runtime::Service;
use async_trait::async_trait;
use tokio::time::sleep;

use super::STORE_BACKOFF;
use crate::handler::{Call, Handler, HandlerFailure, Outcome};

pub(super) struct ExecuteHandler(pub(super) Service);

#[async_trait]
impl Handler for ExecuteHandler {
    /// Tries again while the store is away and the task is ours; it may be done any number of times.
    async fn run(&self, call: Call) -> Outcome {
        let mut failures = 0;
        loop {
            let error = match self.0.execute(call.payload.clone()).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            if !error.is_of_store() {
                return Err(HandlerFailure::error(error.to_string()));
            }
            failures += 1;
            tokio::select! {
                stop = call.context.stopped() => return Err(stop.failure()),
                () = sleep(STORE_BACKOFF.after(failures).as_duration()) => {}
            }
        }
    }

    /// A start that is under way is waited for.
    fn grace(&self) -> Duration {
        Duration::MAX
    }

    /// It may be done by any number of agents at a time.
    fn kill_ladder(&self) -> Duration {
        Duration::ZERO
    }

    fn timeout(&self, _step: Option<Duration>) -> Option<Duration> {
        None
    }
}

//! System tasks as work: `afl:execute` and `afl:resume`.

use std::time::Duration;

use afl_runtime::{Service, SystemTask};
use tokio::time::sleep;

use crate::handler::{Call, Failure, FailureKind, Outcome};

/// From one try to the next, when the store is away.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(5);

/// Tries again while the store is away and the task is ours; both tasks may be done any number of times.
pub(super) async fn run(service: &Service, task: SystemTask, call: Call) -> Outcome {
    let mut wait = RETRY_FIRST;
    loop {
        let error = match service.do_system_task(task, call.payload.clone()).await {
            Ok(result) => return Outcome::Completed { result },
            Err(error) => error,
        };
        if !error.is_of_store() {
            return Outcome::Failed(Failure::new(FailureKind::Error, error.to_string()));
        }
        tokio::select! {
            stop = call.context.stopped() => return Outcome::Failed(stop.failure()),
            () = sleep(wait) => wait = (2 * wait).min(RETRY_MOST),
        }
    }
}

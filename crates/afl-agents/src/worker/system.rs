//! Does system tasks: `afl:execute` and `afl:resume`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use afl_runtime::{Service, SystemTask};
use async_trait::async_trait;
use tokio::time::sleep;

use super::STORE_BACKOFF;
use crate::handler::{Call, Handler, HandlerFailure, Outcome};

struct SystemHandler {
    service: Service,
    task: SystemTask,
}

/// The handlers of system tasks, by the names of their tasks.
pub(super) fn system_handlers(service: &Service) -> BTreeMap<String, Arc<dyn Handler>> {
    let handler = |task: &SystemTask| -> (String, Arc<dyn Handler>) {
        (task.name().to_owned(), Arc::new(SystemHandler { service: service.clone(), task: *task }))
    };
    SystemTask::ALL.iter().map(handler).collect()
}

#[async_trait]
impl Handler for SystemHandler {
    /// Tries again while the store is away and the task is ours; both tasks may be done any number of times.
    async fn run(&self, call: Call) -> Outcome {
        let mut failures = 0;
        loop {
            let error = match self.service.do_system_task(self.task, call.payload.clone()).await {
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

    fn timeout(&self, _step: Option<Duration>) -> Option<Duration> {
        None
    }
}

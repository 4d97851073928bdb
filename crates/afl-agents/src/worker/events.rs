//! The events of a worker, for a listener that shows them to people.

use std::net::SocketAddr;
use std::time::Duration;

use afl_runtime::agent::Claim;
use afl_runtime::{Millis, RunId};

use super::Worker;
use super::attempt::AttemptEnd;
use super::directory::ShortLease;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkerEvent {
    /// It is seen by others, and claims from now on.
    Ready {
        names: Vec<String>,
        /// Where its status can be asked for.
        http: Option<SocketAddr>,
    },
    /// The handlers it has are others than before.
    Handlers {
        names: Vec<String>,
    },
    /// It does not take the work of this handler.
    Unfit(ShortLease),
    /// The store's clock was set ahead. Leases from before that last their whole length again.
    ClockAhead {
        by: Millis,
    },
    Began(AttemptInfo),
    Ended {
        work: AttemptInfo,
        ended: AttemptEnd,
        took: Duration,
    },
}

/// A task as people know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptInfo {
    pub run: RunId,
    /// Of the step.
    pub path: String,
    pub facet: String,
    /// From one.
    pub attempt: u32,
    /// How many there may be, if that is declared.
    pub of_attempts: Option<u32>,
}

impl AttemptInfo {
    pub(super) fn of(claim: &Claim) -> Self {
        Self {
            run: claim.ticket.run.clone(),
            path: claim.task.path.clone(),
            facet: claim.task.name.to_string(),
            attempt: claim.task.attempts + 1,
            of_attempts: claim.task.policy.retry.map(|retry| retry.max),
        }
    }
}

impl Worker {
    /// A listener that is slow misses something; no work waits for it.
    pub(super) fn publish(&self, event: impl FnOnce() -> WorkerEvent) {
        if let Some(listener) = &self.listener {
            drop(listener.try_send(event()));
        }
    }
}

//! Counts of a worker's finished and current work.

use std::collections::BTreeMap;

use afl_runtime::agent::Claim;
use afl_runtime::server::HandlerCounts;
use afl_runtime::{Millis, RunId};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use serde::Serialize;

use super::attempt::AttemptEnd;

/// Statistics only: nothing is decided by them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WorkerCounts {
    pub handled: BTreeMap<String, HandlerCounts>,
    /// By their idempotency keys.
    pub current: BTreeMap<String, TaskInWork>,
    /// Tasks that were handed out to this worker.
    pub claims: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TaskInWork {
    pub path: String,
    pub facet: String,
    pub run: RunId,
    /// By the store's clock.
    pub since: Millis,
}

impl WorkerCounts {
    pub(super) fn began(&mut self, claim: &Claim) {
        let current = TaskInWork {
            path: claim.task.path.clone(),
            facet: claim.task.name.to_string(),
            run: claim.ticket.run.clone(),
            since: claim.task.updated,
        };
        self.claims += 1;
        self.current.insert(claim.idempotency_key(), current);
    }

    pub(super) fn ended(&mut self, claim: &Claim, ended: &AttemptEnd) {
        self.current.remove(&claim.idempotency_key());
        let handled = self.handled.entry(claim.task.name.to_string()).or_default();
        match ended {
            AttemptEnd::Completed => handled.completed += 1,
            AttemptEnd::Failed { .. } => handled.failed += 1,
            AttemptEnd::Lost => handled.lost += 1,
            AttemptEnd::Canceled => handled.canceled += 1,
            AttemptEnd::GivenBack | AttemptEnd::Locked => {}
        }
    }

    /// The paths of the tasks in work, the oldest first.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut current: Vec<&TaskInWork> = self.current.values().collect();
        current.sort_by_key(|current| current.since.0);
        current.into_iter().map(|current| current.path.clone()).collect()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Latencies {
    /// From the claim to the end.
    pub(super) work: Histogram,
    /// From the outcome to the reply of the store.
    pub(super) settle: Histogram,
}

impl Latencies {
    pub(super) fn new() -> Self {
        Self {
            // 4 ms to 35 minutes, and half a millisecond to 16 s.
            work: Histogram::new(exponential_buckets(0.004, 3.0, 13)),
            settle: Histogram::new(exponential_buckets(0.000_5, 2.0, 16)),
        }
    }
}

//! Counters of one process's work on its file.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SqliteStats {
    /// Batches and takes that were written.
    pub commits: u64,
    pub durable_commits: u64,
    /// Those that were not, as a rule for a conflict.
    pub refused: u64,
    /// Transactions that wrote; a group of commits shares one.
    pub transactions: u64,
    /// Of these, with a sync of the log to the disk.
    pub synced_transactions: u64,
    /// Each syncs the log and the file.
    pub checkpoints: u64,
    /// Bytes of bodies written.
    pub body_bytes: u64,
    /// Looks for changes of other processes.
    pub looks: u64,
}

impl SqliteStats {
    /// Waits for the disk, the cost of a durable store.
    pub fn syncs(&self) -> u64 {
        self.synced_transactions + 2 * self.checkpoints
    }
}

/// Counted up by the writer, read by anyone.
#[derive(Debug, Default)]
pub(super) struct SqliteCounters {
    pub(super) commits: AtomicU64,
    pub(super) durable_commits: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) transactions: AtomicU64,
    pub(super) synced_transactions: AtomicU64,
    pub(super) checkpoints: AtomicU64,
    pub(super) body_bytes: AtomicU64,
    pub(super) looks: AtomicU64,
}

impl SqliteCounters {
    pub(super) fn read(&self) -> SqliteStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SqliteStats {
            commits: read(&self.commits),
            durable_commits: read(&self.durable_commits),
            refused: read(&self.refused),
            transactions: read(&self.transactions),
            synced_transactions: read(&self.synced_transactions),
            checkpoints: read(&self.checkpoints),
            body_bytes: read(&self.body_bytes),
            looks: read(&self.looks),
        }
    }
}

pub(super) fn add(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Ordering::Relaxed);
}

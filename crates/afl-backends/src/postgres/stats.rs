//! Counters of one handle's work.

use std::sync::atomic::{AtomicU64, Ordering};

use afl_store::backend::{Batch, Durability};

/// Since the handle was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PostgresStats {
    /// Batches that were committed.
    pub commits: u64,
    pub durable_commits: u64,
    /// Batches that found something else than they expected.
    pub conflicts: u64,
    /// Transactions of commits and takes; commits that share one count once.
    pub transactions: u64,
    /// Those of them that waited for the disk.
    pub durable_transactions: u64,
    pub takes: u64,
    /// Of keys and bodies that were committed.
    pub bytes: u64,
}

impl PostgresStats {
    /// How many batches one transaction of a commit carried.
    #[expect(clippy::cast_precision_loss, reason = "a rough figure for people")]
    pub fn batches_per_group(&self) -> f64 {
        let groups = self.transactions.saturating_sub(self.takes).max(1);
        self.commits as f64 / groups as f64
    }
}

#[derive(Debug, Default)]
pub(super) struct PostgresCounters {
    commits: Counter,
    durable_commits: Counter,
    pub(super) conflicts: Counter,
    transactions: Counter,
    durable_transactions: Counter,
    pub(super) takes: Counter,
    bytes: Counter,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl PostgresCounters {
    pub(super) fn transaction(&self, durability: Durability) {
        self.transactions.add(1);
        match durability {
            Durability::Durable => self.durable_transactions.add(1),
            Durability::Relaxed => {}
        }
    }

    pub(super) fn commit(&self, batch: &Batch) {
        self.commits.add(1);
        self.bytes.add(batch.bytes());
        match batch.durability {
            Durability::Durable => self.durable_commits.add(1),
            Durability::Relaxed => {}
        }
    }

    pub(super) fn stats(&self) -> PostgresStats {
        PostgresStats {
            commits: self.commits.get(),
            durable_commits: self.durable_commits.get(),
            conflicts: self.conflicts.get(),
            transactions: self.transactions.get(),
            durable_transactions: self.durable_transactions.get(),
            takes: self.takes.get(),
            bytes: self.bytes.get(),
        }
    }
}

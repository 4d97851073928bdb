//! Counts the calls of a store, and the runs that end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afl_store::Epoch;
use afl_store::Millis;
use afl_store::backend::{
    Backend, Batch, Change, ClockStatus, Durability, Head, Limits, Scan, StoreError, Take, TakeResult,
};
use afl_store::record::{Key, Record, Tenant};
use afl_store::store::RunState;
use afl_store::watch::Watch;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

#[derive(Debug)]
pub(crate) struct Counted {
    inner: Arc<dyn Backend>,
    counters: Counters,
    /// One permit more with each run that ends, so that waiting for a run costs no reads.
    ended: Semaphore,
    ends: Vec<String>,
}

#[derive(Debug, Default)]
struct Counters {
    reads: AtomicU64,
    commits: AtomicU64,
    durable_commits: AtomicU64,
    takes: AtomicU64,
}

/// The calls of a store so far.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Calls {
    pub(crate) reads: u64,
    pub(crate) commits: u64,
    pub(crate) durable_commits: u64,
    pub(crate) takes: u64,
}

impl Calls {
    pub(crate) fn all(self) -> u64 {
        self.reads + self.commits + self.takes
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            commits: self.commits - before.commits,
            durable_commits: self.durable_commits - before.durable_commits,
            takes: self.takes - before.takes,
        }
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            commits: self.commits + other.commits,
            durable_commits: self.durable_commits + other.durable_commits,
            takes: self.takes + other.takes,
        }
    }
}

impl Counted {
    pub(crate) fn new(inner: Arc<dyn Backend>) -> Self {
        let ends = [RunState::Completed, RunState::Failed, RunState::Canceled].map(RunState::bucket).into();
        Self { inner, counters: Counters::default(), ended: Semaphore::new(0), ends }
    }

    pub(crate) fn calls(&self) -> Calls {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Calls {
            reads: read(&self.counters.reads),
            commits: read(&self.counters.commits),
            durable_commits: read(&self.counters.durable_commits),
            takes: read(&self.counters.takes),
        }
    }

    /// Waits for the end of as many runs, by a commit of this process.
    pub(crate) async fn ended(&self, runs: usize) {
        let runs = u32::try_from(runs).expect("a bench has few runs");
        self.ended.acquire_many(runs).await.expect("it is never closed").forget();
    }

    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn ends_of(&self, batch: &Batch) -> usize {
        let puts = batch.writes.iter().filter_map(|write| match &write.change {
            Change::Put(content) => content.place.as_ref(),
            Change::Delete | Change::Keep => None,
        });
        puts.filter(|place| self.ends.contains(&place.bucket)).count()
    }
}

#[async_trait]
impl Backend for Counted {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn epoch(&self) -> Epoch {
        self.inner.epoch()
    }

    async fn now(&self) -> Result<Millis, StoreError> {
        self.inner.now().await
    }

    async fn clock(&self) -> Result<ClockStatus, StoreError> {
        self.inner.clock().await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        Self::count(&self.counters.reads);
        self.inner.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Vec<Record>, StoreError> {
        Self::count(&self.counters.reads);
        self.inner.scan(scan).await
    }

    async fn heads(&self, tenant: &Tenant, prefix: &str) -> Result<Vec<Head>, StoreError> {
        Self::count(&self.counters.reads);
        self.inner.heads(tenant, prefix).await
    }

    async fn scopes(&self, tenant: &Tenant, after: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        Self::count(&self.counters.reads);
        self.inner.scopes(tenant, after, limit).await
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        Self::count(&self.counters.commits);
        if batch.durability == Durability::Durable {
            Self::count(&self.counters.durable_commits);
        }
        let ends = self.ends_of(&batch);
        self.inner.commit(batch).await?;
        self.ended.add_permits(ends);
        Ok(())
    }

    async fn take(&self, take: Take) -> Result<TakeResult, StoreError> {
        Self::count(&self.counters.takes);
        self.inner.take(take).await
    }

    fn watch(&self, tenant: &Tenant, prefix: &str) -> Watch {
        self.inner.watch(tenant, prefix)
    }
}

//! A store that records reads and writes, and may hide changes from watchers.

#[expect(clippy::disallowed_types, reason = "a store has no task that could own the notes")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};

use afl_runtime::Millis;
use afl_runtime::server::ServerState;
use afl_store::Epoch;
use afl_store::backend::{
    Backend, Batch, Change, ClockStatus, Head, Limits, Scan, StoreError, Take, TakeResult,
};
use afl_store::record::{Key, Record, Tenant};
use afl_store::watch::Watch;
use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::watch;

/// Whether watchers are woken by changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hearing {
    Good,
    /// As when a notice is lost.
    None,
}

pub(crate) struct Spy {
    inner: Arc<dyn Backend>,
    hearing: Hearing,
    away: AtomicBool,
    /// Lives as long as the spy, so that no watch ends.
    silence: watch::Sender<u64>,
    #[expect(clippy::disallowed_types, reason = "held for a push or a look, never across an await")]
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    /// The scopes that were read by key.
    read: Vec<Arc<str>>,
    /// The states that servers wrote of themselves.
    states: Vec<ServerState>,
    /// A read of this record panics.
    trap: Option<String>,
}

impl Spy {
    pub(crate) fn new(inner: Arc<dyn Backend>, hearing: Hearing) -> Self {
        let (silence, _) = watch::channel(0);
        Self { inner, hearing, away: AtomicBool::new(false), silence, notes: Notes::default().into() }
    }

    /// How often something of this scope was read by key.
    pub(crate) fn reads_of(&self, scope: &str) -> usize {
        self.notes().read.iter().filter(|read| &***read == scope).count()
    }

    /// The states that servers reported, in order.
    pub(crate) fn told_states(&self) -> Vec<ServerState> {
        self.notes().states.clone()
    }

    /// The next one who reads the record of this name panics.
    pub(crate) fn panic_once(&self, id: &str) {
        self.notes().trap = Some(id.to_owned());
    }

    /// Nothing of it can be reached from now on.
    pub(crate) fn go_away(&self) {
        self.away.store(true, Ordering::SeqCst);
    }

    /// The same store for another process.
    pub(crate) fn inner(&self) -> Arc<dyn Backend> {
        self.inner.clone()
    }

    fn reach(&self) -> Result<(), StoreError> {
        let unavailable =
            || StoreError::Unavailable { name: "the store".into(), reason: "it is away".into() };
        if self.away.load(Ordering::SeqCst) { Err(unavailable()) } else { Ok(()) }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }
}

#[async_trait]
impl Backend for Spy {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn epoch(&self) -> Epoch {
        self.inner.epoch()
    }

    async fn now(&self) -> Result<Millis, StoreError> {
        self.reach()?;
        self.inner.now().await
    }

    async fn clock(&self) -> Result<ClockStatus, StoreError> {
        self.reach()?;
        self.inner.clock().await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.reach()?;
        self.notes().read.extend(keys.iter().map(|key| key.scope.clone()));
        let trap = self.notes().trap.take_if(|trap| keys.iter().any(|key| key.id == *trap));
        assert!(trap.is_none(), "the test asked for it");
        self.inner.get(keys).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Vec<Record>, StoreError> {
        self.reach()?;
        self.inner.scan(scan).await
    }

    async fn heads(&self, tenant: &Tenant, prefix: &str) -> Result<Vec<Head>, StoreError> {
        self.reach()?;
        self.inner.heads(tenant, prefix).await
    }

    async fn scopes(&self, tenant: &Tenant, after: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        self.reach()?;
        self.inner.scopes(tenant, after, limit).await
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        self.reach()?;
        for write in batch.writes.iter().filter(|write| &*write.key.scope == "@servers") {
            if let Change::Put(content) = &write.change {
                let server: Value = serde_json::from_slice(&content.body).unwrap();
                // Nothing is said with the mark of a removal.
                self.notes()
                    .states
                    .extend(server["state"].as_str().map(|state| state.parse::<ServerState>().unwrap()));
            }
        }
        self.inner.commit(batch).await
    }

    async fn take(&self, take: Take) -> Result<TakeResult, StoreError> {
        self.reach()?;
        self.inner.take(take).await
    }

    fn watch(&self, tenant: &Tenant, prefix: &str) -> Watch {
        match self.hearing {
            Hearing::Good => self.inner.watch(tenant, prefix),
            Hearing::None => Watch::new(self.silence.subscribe()),
        }
    }
}

impl std::fmt::Debug for Spy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Spy")
    }
}

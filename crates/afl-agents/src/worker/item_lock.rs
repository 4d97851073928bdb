//! The named lock of a work item (document 000 §7.4): while one runner has it, no other works on the same item.

use std::time::Duration;

use afl_runtime::Millis;
use afl_runtime::agent::Claim;
use afl_runtime::lock::{Hold, Locks};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::config::Profile;
use super::{Worker, WorkerError};

/// Before the keys of these locks.
pub(super) const ITEMS: &str = "task/";

pub(super) struct ItemLock {
    locks: Locks,
    hold: Hold,
    duration: Duration,
    extend_every: Duration,
}

/// The result of a request for the lock.
pub(super) enum ItemLockResult {
    /// The profile has no locks: the claim alone keeps others away.
    NotNeeded,
    Ours(ItemLock),
    /// Another runner has it, at least until this time as far as we know.
    Elsewhere {
        until: Millis,
    },
}

impl Worker {
    pub(super) async fn lock_item(&self, claim: &Claim) -> Result<ItemLockResult, WorkerError> {
        match self.config.profile {
            Profile::Service => {}
            Profile::Registry | Profile::Poller => return Ok(ItemLockResult::NotNeeded),
        }
        let (locks, duration) = (self.service.locks(), self.config.lease());
        let key = format!("{ITEMS}{}", claim.idempotency_key());
        let meta = json!({"path": claim.task.path, "server": self.config.server_name});
        let held = locks.acquire(&key, &self.server_id, duration.into(), meta).await;
        if let Some(hold) = held.map_err(afl_runtime::Error::from)? {
            let extend_every = self.config.lock_extend_every();
            return Ok(ItemLockResult::Ours(ItemLock { locks, hold, duration, extend_every }));
        }
        // It is looked for again after a poll, or when its time is over.
        let now = self.service.now().await?;
        let poll = now.plus(Millis(i64::try_from(self.config.poll_interval_ms).unwrap_or(i64::MAX)));
        let other = locks.get(&key).await.map_err(afl_runtime::Error::from)?;
        Ok(ItemLockResult::Elsewhere { until: other.map_or(now, |other| other.expires.min(poll)) })
    }
}

impl ItemLockResult {
    /// Returns when the lock is lost; never, where there is none.
    pub(super) async fn lost(&self) {
        match self {
            Self::Ours(lock) => lock.keep().await,
            Self::NotNeeded | Self::Elsewhere { .. } => std::future::pending().await,
        }
    }

    pub(super) async fn release(self) {
        if let Self::Ours(lock) = self {
            // A lock that is not released ends by itself.
            drop(lock.locks.forget(&lock.hold).await);
        }
    }
}

impl ItemLock {
    async fn keep(&self) {
        let mut ours_until = Instant::now() + self.duration;
        loop {
            sleep(self.extend_every).await;
            let asked = Instant::now();
            match self.locks.extend(&self.hold, self.duration.into()).await {
                Ok(true) => ours_until = asked + self.duration,
                // The store is away; there are more tries before the lock ends.
                Err(_) if asked < ours_until => {}
                Ok(false) | Err(_) => return,
            }
        }
    }
}

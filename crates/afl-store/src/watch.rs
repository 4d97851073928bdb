//! Waiting for a bucket to change without asking over and over.

use std::collections::BTreeMap;
#[expect(
    clippy::disallowed_types,
    reason = "a wake must reach its watchers without a task that carries it"
)]
use std::sync::Mutex;
use std::sync::{MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::record::{Place, Tenant};

/// Wakes after something came into the buckets it was made for. What came before it was made does not count, and
/// several changes may wake it once; so make it first, then look, then wait.
#[derive(Clone, Debug)]
pub struct Watch {
    changes: watch::Receiver<u64>,
}

impl Watch {
    pub fn new(changes: watch::Receiver<u64>) -> Self {
        Self { changes }
    }

    /// Returns after the next change; never, when the store is gone.
    pub async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Those who wait on one store in this process. Every backend wakes them through this.
#[derive(Debug, Default)]
pub struct Watchers {
    /// The lock is held for a look-up in memory, never across an await.
    #[expect(
        clippy::disallowed_types,
        reason = "a wake must reach its watchers without a task that carries it"
    )]
    prefixes: Mutex<Prefixes>,
}

type Prefixes = BTreeMap<Tenant, BTreeMap<String, watch::Sender<u64>>>;

impl Watchers {
    pub fn watch(&self, tenant: &Tenant, prefix: &str) -> Watch {
        let mut prefixes = self.lock();
        // Here and not with the last watch dropped: a store that nobody watches any more has few entries left.
        for senders in prefixes.values_mut() {
            senders.retain(|_, sender| sender.receiver_count() > 0);
        }
        let senders = prefixes.entry(tenant.clone()).or_default();
        let sender = senders.entry(prefix.to_owned()).or_insert_with(|| watch::Sender::new(0));
        Watch::new(sender.subscribe())
    }

    /// Wakes those who watch the bucket of this place.
    pub fn wake(&self, tenant: &Tenant, place: &Place) {
        let prefixes = self.lock();
        let Some(senders) = prefixes.get(tenant) else { return };
        let ends = (0..=place.bucket.len()).filter(|end| place.bucket.is_char_boundary(*end));
        for sender in ends.filter_map(|end| senders.get(&place.bucket[..end])) {
            count_up(sender);
        }
    }

    /// Wakes all, because what came where is not known.
    pub fn wake_all(&self) {
        self.lock().values().flat_map(BTreeMap::values).for_each(count_up);
    }

    pub fn is_empty(&self) -> bool {
        self.lock().values().flat_map(BTreeMap::values).all(|sender| sender.receiver_count() == 0)
    }

    fn lock(&self) -> MutexGuard<'_, Prefixes> {
        // Nothing that is done under the lock can leave the map half changed.
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count_up(sender: &watch::Sender<u64>) {
    sender.send_modify(|changes| *changes += 1);
}

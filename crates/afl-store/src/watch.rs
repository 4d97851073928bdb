//! Waiting for a bucket to change without asking over and over.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::record::{QueuePosition, Tenant};

/// Wakes after a record arrived in its buckets. Arrivals from before the watch was made do not count, and several
/// arrivals may wake it once; so make it first, then read, then wait.
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

    /// Whether there was a change since it was made, for who does not wait for one.
    pub fn has_changed(&self) -> bool {
        self.changes.has_changed().unwrap_or(true)
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
    prefixes: std::sync::Mutex<Prefixes>,
}

#[derive(Debug, Default)]
struct Prefixes {
    tenants: BTreeMap<Tenant, BTreeMap<String, watch::Sender<u64>>>,
    /// How many watches may be made before unused ones are swept out.
    until_sweep: usize,
}

impl Prefixes {
    /// As often as the map may have doubled, so that a watch costs no more with many others.
    fn sweep(&mut self) {
        for senders in self.tenants.values_mut() {
            senders.retain(|_, sender| sender.receiver_count() > 0);
        }
        self.until_sweep = SWEEP_MIN.max(self.senders().count());
    }

    fn senders(&self) -> impl Iterator<Item = &watch::Sender<u64>> {
        self.tenants.values().flat_map(BTreeMap::values)
    }
}

const SWEEP_MIN: usize = 64;

impl Watchers {
    pub fn watch(&self, tenant: &Tenant, prefix: &str) -> Watch {
        let mut prefixes = self.lock();
        match prefixes.until_sweep.checked_sub(1) {
            Some(left) => prefixes.until_sweep = left,
            None => prefixes.sweep(),
        }
        let senders = prefixes.tenants.entry(tenant.clone()).or_default();
        let sender = senders.entry(prefix.to_owned()).or_insert_with(|| watch::Sender::new(0));
        Watch::new(sender.subscribe())
    }

    /// Wakes those who watch the bucket of this place.
    pub fn wake(&self, tenant: &Tenant, place: &QueuePosition) {
        let prefixes = self.lock();
        let Some(senders) = prefixes.tenants.get(tenant) else { return };
        let ends = (0..=place.bucket.len()).filter(|end| place.bucket.is_char_boundary(*end));
        for sender in ends.filter_map(|end| senders.get(&place.bucket[..end])) {
            count_up(sender);
        }
    }

    /// Wakes those who watch buckets of this family, which is their name up to the first `/`: another process wrote there.
    pub fn wake_family(&self, family: &str) {
        let is_of = |prefix: &str| match prefix.split_once('/') {
            Some((of, _)) => of == family,
            None => family.starts_with(prefix),
        };
        let prefixes = self.lock();
        let senders = prefixes.tenants.values().flatten();
        senders.filter(|(prefix, _)| is_of(prefix)).for_each(|(_, sender)| count_up(sender));
    }

    /// Wakes all watches, because the bucket of a change is unknown.
    pub fn wake_all(&self) {
        self.lock().senders().for_each(count_up);
    }

    pub fn is_empty(&self) -> bool {
        self.lock().senders().all(|sender| sender.receiver_count() == 0)
    }

    fn lock(&self) -> MutexGuard<'_, Prefixes> {
        // Nothing that is done under the lock can leave the map half changed.
        self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count_up(sender: &watch::Sender<u64>) {
    sender.send_modify(|changes| *changes += 1);
}

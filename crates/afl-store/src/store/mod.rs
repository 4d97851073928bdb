//! The typed store: runs and what belongs to them as records of a backend, each read checked before it is believed.

mod blob;
mod commit;
mod delete;
mod entity;
mod error;
mod inspect;
mod piece;
mod place;
mod query;
mod read;
mod scope;
mod seal;

use afl_engine::version::Epoch;
use std::sync::Arc;

use afl_engine::time::Millis;

use crate::backend::{Backend, Batch, Durability, Limits, StoreError, Write};
use crate::outbox::ChannelCache;
use crate::record::Tenant;
use crate::watch::Watch;

pub use afl_engine::evaluation::Stored;
pub use blob::blob_record;
pub use commit::{Reservation, Terms};
pub(crate) use entity::{LOGS, decode, encode, event_beside, task_record};
pub use entity::{run_record, step_record};
pub use error::{Defect, Error};
pub use inspect::{Misplacement, Placement, RecordInspection, RecordKind, step_of_record};
pub use place::{RunState, TaskBucket, bucket};
pub(crate) use place::{last_as_urgent, of_task as place_of, urgency};
pub use query::{RunPage, StepPage, TaskPage};
pub use read::{ByStep, RunParts};
pub(crate) use scope::run_of;
pub use scope::{DiscardResult, ProgramRecord, SHARED};
pub use seal::{RUNTIME_VERSION, SCHEMA_VERSION};
pub(crate) use seal::{opened, sealed};

/// One tenant's part of a store. Clones share the backend.
#[derive(Clone, Debug)]
pub struct Store {
    backend: Arc<dyn Backend>,
    tenant: Tenant,
    channel_cache: ChannelCache,
}

impl Store {
    pub fn new(backend: Arc<dyn Backend>, tenant: Tenant) -> Self {
        Self { backend, tenant, channel_cache: ChannelCache::default() }
    }

    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    pub(crate) fn channel_cache(&self) -> &ChannelCache {
        &self.channel_cache
    }

    pub fn limits(&self) -> Limits {
        self.backend.limits()
    }

    /// The clock by which leases and timers are judged.
    pub async fn now(&self) -> Result<Millis, Error> {
        Ok(self.backend.now().await?)
    }

    /// Wakes after something came into a bucket with this prefix.
    pub fn watch(&self, prefix: &str) -> Watch {
        self.backend.watch(&self.tenant, prefix)
    }

    /// The current epoch.
    pub fn epoch(&self) -> Epoch {
        self.backend.epoch()
    }

    pub(crate) async fn write(&self, writes: Vec<Write>, durability: Durability) -> Result<(), StoreError> {
        self.backend.commit(Batch::new(writes, durability)).await
    }
}

#[cfg(test)]
mod tests;

//! The typed store: runs and their parts as records of a backend, each read checked before it is believed.

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

use std::slice;
use std::sync::Arc;

use afl_engine::time::Millis;
use afl_engine::version::Epoch;

use crate::backend::{
    Backend, Batch, BucketCursor, ClockStatus, Durability, Limits, Ranks, Scan, ScanOrder, StoreError, Write,
};
use crate::outbox::ChannelCache;
use crate::record::{Key, Record, Tenant};
use crate::watch::Watch;

pub use afl_engine::evaluation::StoredRecord;
pub use blob::blob_record;
pub use commit::{Reservation, Terms};
pub(crate) use entity::{LOGS, decode, encode, event_beside, task_record};
pub use entity::{run_record, step_record};
pub use error::{Defect, Error};
pub use inspect::{Misplacement, Placement, RecordInspection, RecordKind, step_of_record};
pub use place::{RunState, TaskBucket, bucket};
pub(crate) use place::{last_as_urgent, of_task as place_of, urgency};
pub use query::{BucketPage, StepPage};
pub use read::{ByStep, RunParts};
pub(crate) use scope::run_of;
pub use scope::{DiscardResult, ProgramRecord, SHARED};
pub use seal::{RUNTIME_VERSION, SCHEMA_VERSION};
pub(crate) use seal::{opened_json, sealed_json};

/// One tenant's part of a store. Clones share the backend.
#[derive(Clone, Debug)]
pub struct Store {
    backend: Arc<dyn Backend>,
    tenant: Tenant,
    pub(crate) channel_cache: ChannelCache,
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

    pub fn limits(&self) -> Limits {
        self.backend.limits()
    }

    /// The clock by which leases and timers are judged.
    pub async fn now(&self) -> Result<Millis, Error> {
        Ok(self.backend.now().await?)
    }

    /// The same clock beside the wall clock, for moments that people name.
    pub async fn clock(&self) -> Result<ClockStatus, Error> {
        Ok(self.backend.clock().await?)
    }

    /// Wakes after something came into a bucket with this prefix.
    pub fn watch(&self, prefix: &str) -> Watch {
        self.backend.watch(&self.tenant, prefix)
    }

    /// The current epoch.
    pub fn epoch(&self) -> Epoch {
        self.backend.epoch()
    }

    pub(crate) async fn record(&self, key: &Key) -> Result<Option<Record>, Error> {
        Ok(self.backend.get(slice::from_ref(key)).await?.pop().flatten())
    }

    /// A page of the records of a scope whose ids begin with `prefix`, in order of id.
    pub(crate) async fn scan_scope(
        &self,
        scope: impl Into<Arc<str>>,
        prefix: &str,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        let (tenant, scope, prefix) = (self.tenant.clone(), scope.into(), prefix.to_owned());
        Ok(self.backend.scan(&Scan::Scope { tenant, scope, prefix, after, limit }).await?)
    }

    /// A page of the records of a bucket, the lowest rank first.
    pub(crate) async fn scan_bucket(
        &self,
        bucket: impl Into<String>,
        ranks: Ranks,
        after: Option<&BucketCursor>,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        let (tenant, bucket, order) = (self.tenant.clone(), bucket.into(), ScanOrder::Ascending);
        let after = after.cloned();
        Ok(self.backend.scan(&Scan::Bucket { tenant, bucket, ranks, order, after, limit }).await?)
    }

    /// A page of the records of a bucket, the highest rank first.
    pub(crate) async fn scan_newest(
        &self,
        bucket: impl Into<String>,
        after: Option<&BucketCursor>,
        limit: usize,
    ) -> Result<Vec<Record>, Error> {
        let (tenant, bucket, order) = (self.tenant.clone(), bucket.into(), ScanOrder::Descending);
        let (ranks, after) = (Ranks::All, after.cloned());
        Ok(self.backend.scan(&Scan::Bucket { tenant, bucket, ranks, order, after, limit }).await?)
    }

    pub(crate) async fn write(&self, writes: Vec<Write>, durability: Durability) -> Result<(), StoreError> {
        self.backend.commit(Batch::new(writes, durability)).await
    }
}

#[cfg(test)]
mod tests;

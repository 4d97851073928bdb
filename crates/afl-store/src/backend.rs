//! The narrow trait of a store: it keeps records and knows no workflow.

use std::any::Any;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use afl_engine::time::Millis;
use afl_engine::version::{Epoch, Version};
use async_trait::async_trait;

use crate::record::{Content, Key, Record, Tenant};
use crate::watch::Watch;

/// One way to keep records. The contract is the list in `afl_store::conformance`.
///
/// It is [`Any`] so that a measurement of an opened store can read the figures that only one backend has.
#[async_trait]
pub trait Backend: Any + Send + Sync + fmt::Debug {
    fn limits(&self) -> Limits;

    /// The current epoch. Reads stamp the versions of their records with the epoch in which they began.
    fn epoch(&self) -> Epoch;

    /// The store's clock, by which leases and timers are judged.
    async fn now(&self) -> Result<Millis, StoreError>;

    /// The same clock beside the wall clock.
    async fn clock(&self) -> Result<ClockStatus, StoreError>;

    /// The records of these keys, in their order, from one snapshot.
    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError>;

    /// One page of records, from one snapshot.
    async fn scan(&self, scan: &Scan) -> Result<Vec<Record>, StoreError>;

    /// The buckets with this prefix that hold records, in order of their names, from one snapshot.
    async fn heads(&self, tenant: &Tenant, prefix: &str) -> Result<Vec<Head>, StoreError>;

    /// The scopes behind this one that hold records, in order of their names, from one snapshot.
    async fn scopes(&self, tenant: &Tenant, after: &str, limit: usize) -> Result<Vec<String>, StoreError>;

    /// All writes or none. After `Ok` with [`Durability::Durable`] this batch and all before it outlive a power cut.
    async fn commit(&self, batch: Batch) -> Result<(), StoreError>;

    /// Moves records of a bucket, in one atomic step with choosing them, and returns them as they are then. The
    /// mover may be called again for the same record and must not call the store.
    async fn take(&self, take: Take) -> Result<TakeResult, StoreError>;

    /// Wakes after records arrived in a bucket with this prefix. It may wake without a reason.
    fn watch(&self, tenant: &Tenant, prefix: &str) -> Watch;

    /// Defects in how the store keeps its records, such as an index that lacks one, as far as the store can detect them:
    /// each with its repair.
    async fn check_integrity(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

/// The store's clock at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockStatus {
    pub now: Millis,
    /// The wall clock, which an operator may set at any time: that of the server where the store has one.
    pub wall: Millis,
    /// The wall clock of this machine.
    pub machine: Millis,
    /// The last step ahead that this process has seen the store's clock make.
    pub jump: Option<ClockJump>,
}

impl ClockStatus {
    /// The time by which a deadline is judged that counts from `since`. A time before the last jump says nothing about how
    /// much time has passed, so it counts from the jump: the holder of a lease gets its whole length again.
    pub fn judging(&self, since: Millis) -> Millis {
        match self.jump {
            Some(jump) if since < jump.at => since.plus(self.now.since(jump.at)).min(self.now),
            Some(_) | None => self.now,
        }
    }

    /// The store's clock less the wall clock of this machine.
    pub fn drift(&self) -> Millis {
        self.now.since(self.machine)
    }
}

/// A step of the store's clock ahead of the time that passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockJump {
    /// When this process saw it, by the clock after the step.
    pub at: Millis,
    pub by: Millis,
}

/// How much a batch may hold. A caller keeps to it; a backend refuses more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    pub batch_writes: usize,
    pub batch_bytes: usize,
    pub body_bytes: usize,
}

impl Limits {
    /// Whether a backend with these limits takes the batch.
    pub fn check(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut keys = HashSet::with_capacity(batch.writes.len());
        for write in &batch.writes {
            assert!(keys.insert(&write.key), "a batch writes {:?} twice", write.key);
            if let Change::Put(content) = &write.change {
                self.check_body(content)?;
            }
        }
        fits("the number of writes of a batch", batch.writes.len(), self.batch_writes)?;
        fits("the size of a batch", batch.bytes(), self.batch_bytes)
    }

    pub fn check_body(&self, content: &Content) -> Result<(), StoreError> {
        fits("the body of a record", content.body.len(), self.body_bytes)
    }
}

fn fits(what: &'static str, size: usize, limit: usize) -> Result<(), StoreError> {
    if size <= limit { Ok(()) } else { Err(StoreError::TooLarge { what, size, limit }) }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scan {
    /// The records of a scope whose ids begin with `prefix` and come after `after`, in order of id.
    Scope { tenant: Tenant, scope: Arc<str>, prefix: String, after: Option<String>, limit: usize },
    /// The records of a bucket after `after`, in the given order of rank, scope and id.
    Bucket {
        tenant: Tenant,
        bucket: String,
        ranks: Ranks,
        order: ScanOrder,
        after: Option<BucketCursor>,
        limit: usize,
    },
}

/// Which ranks a scan or a take admits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ranks {
    All,
    /// This one and lower ones.
    UpTo(i64),
}

impl Ranks {
    pub fn highest(self) -> i64 {
        match self {
            Self::All => i64::MAX,
            Self::UpTo(rank) => rank,
        }
    }
}

/// A bucket that holds records, and the lowest of their ranks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Head {
    pub bucket: String,
    pub rank: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScanOrder {
    Ascending,
    Descending,
}

/// Where a record stands in its bucket.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BucketCursor {
    pub rank: i64,
    pub scope: Arc<str>,
    pub id: String,
}

impl BucketCursor {
    /// Before all records of this rank.
    pub fn before(rank: i64) -> Self {
        Self { rank, scope: "".into(), id: String::new() }
    }

    /// Of a record that is in a bucket.
    pub fn of(record: &Record) -> Self {
        let rank = record.content.place.as_ref().map_or(0, |place| place.rank);
        Self { rank, scope: record.key.scope.clone(), id: record.key.id.clone() }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    /// At most one for each key.
    pub writes: Vec<Write>,
    pub durability: Durability,
    /// The epoch in which it relies on more than the versions that it expects; in a later one it is refused.
    pub since: Option<Epoch>,
}

impl Batch {
    /// One that relies on nothing but what its writes expect.
    pub fn new(writes: Vec<Write>, durability: Durability) -> Self {
        Self { writes, durability, since: None }
    }

    /// Whether it relies on reads from before this epoch.
    pub fn is_outdated(&self, epoch: Epoch) -> bool {
        let is_before = |since: Epoch| since < epoch;
        self.since.is_some_and(is_before)
            || self.writes.iter().any(|write| write.expect.version().is_some_and(|it| is_before(it.epoch)))
    }

    /// The bytes that count against [`Limits::batch_bytes`].
    pub fn bytes(&self) -> usize {
        self.writes.iter().map(Write::bytes).sum()
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Write {
    pub key: Key,
    pub expect: Expect,
    pub change: Change,
}

impl Write {
    pub fn put(key: Key, expect: impl Into<Expect>, content: Content) -> Self {
        Self { key, expect: expect.into(), change: Change::Put(content) }
    }

    pub fn delete(key: Key, version: Version) -> Self {
        Self { key, expect: Expect::Version(version), change: Change::Delete }
    }

    /// Deletes a record as it was read.
    pub fn delete_of(record: &Record) -> Self {
        Self::delete(record.key.clone(), record.version)
    }

    /// Writes nothing, but the batch fails unless the record is still this version.
    pub fn keep(key: Key, version: Version) -> Self {
        Self { key, expect: Expect::Version(version), change: Change::Keep }
    }

    /// The sizes of the key and of the new body.
    pub fn bytes(&self) -> usize {
        let key = self.key.tenant.as_str().len() + self.key.scope.len() + self.key.id.len();
        match &self.change {
            Change::Put(content) => key + content.body.len(),
            Change::Delete | Change::Keep => key,
        }
    }
}

/// The expected state before a write; otherwise the whole batch is a conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    Absent,
    /// With the same number, in the epoch in which it was read.
    Version(Version),
}

impl From<Version> for Expect {
    fn from(version: Version) -> Self {
        Self::Version(version)
    }
}

/// The version that was read; none where no record was found.
impl From<Option<Version>> for Expect {
    fn from(found: Option<Version>) -> Self {
        found.map_or(Self::Absent, Self::Version)
    }
}

impl Expect {
    /// `None` where there must be no record.
    pub fn version(self) -> Option<Version> {
        match self {
            Self::Absent => None,
            Self::Version(version) => Some(version),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    Put(Content),
    Delete,
    /// Nothing but the expectation.
    Keep,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Durability {
    /// Atomic and in order, but a power cut may take it back.
    Relaxed,
    Durable,
}

/// A request to take records from a bucket, lowest rank first.
#[derive(Clone)]
pub struct Take {
    pub tenant: Tenant,
    pub bucket: String,
    pub ranks: Ranks,
    /// Only records behind it are looked at.
    pub after: Option<BucketCursor>,
    pub limit: usize,
    pub max_in_bucket: Option<MaxInBucket>,
    pub durability: Durability,
    /// Decides about each record.
    pub decide: Decide,
    /// The records to read in the same call.
    pub also_read: Option<KeysToRead>,
}

pub type Decide = Arc<dyn Fn(&Record, TakeMoment) -> Decision + Send + Sync>;

/// When a take decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TakeMoment {
    /// By the store's clock.
    pub now: Millis,
    /// How often the store may have lost relaxed commits. The count is durable, and all processes see the same.
    pub crashes: u64,
}

/// The decision about one record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    Move(Content),
    /// It stays as it is, and the next one is looked at.
    Leave,
    /// It stays as it is, and so do all behind it.
    Stop,
}

impl From<Option<Content>> for Decision {
    fn from(content: Option<Content>) -> Self {
        content.map_or(Self::Leave, Self::Move)
    }
}

/// The keys of records that are wanted together with those that were moved.
pub type KeysToRead = Arc<dyn Fn(&[Record]) -> Vec<Key> + Send + Sync>;

impl Take {
    /// For the records that it moved.
    pub fn keys_to_read(&self, moved: &[Record]) -> Vec<Key> {
        match &self.also_read {
            Some(keys) if !moved.is_empty() => keys(moved),
            Some(_) | None => Vec::new(),
        }
    }
}

/// The records that a take moved, and the records that were also read, in the order of their keys.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TakeResult {
    pub moved: Vec<Record>,
    pub also_read: Vec<Option<Record>>,
    /// The last record that was looked at, when the take gave up: another take may go on behind it.
    pub gave_up_at: Option<BucketCursor>,
}

/// No more is taken than the bucket lacks to `max` records, even with many takers at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MaxInBucket {
    pub bucket: String,
    pub max: usize,
}

/// How many records a take looks at before it gives up.
pub const TAKE_LOOKS: usize = 1_000;

impl fmt::Debug for Take {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Take")
            .field("bucket", &self.bucket)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// Why a call on a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A write found something else than it expected; nothing was written. Read again and decide anew.
    #[error("another writer changed `{}` of `{}` first", .key.id, .key.scope)]
    Conflict { key: Key },
    /// Nothing was written. Read again and decide anew.
    #[error("the store was restarted: earlier reads must be repeated")]
    Restarted,
    #[error("{what} is {size}, more than the limit of {limit}")]
    TooLarge { what: &'static str, size: usize, limit: usize },
    /// Nothing was written.
    #[error("the disk of the store is full: free space, then repeat the command")]
    Full,
    /// Another process keeps the store locked. Nothing was written.
    #[error("cannot use {name}: {reason}")]
    Locked { name: String, reason: String },
    /// The store cannot be reached or does not answer. A commit may have happened all the same.
    #[error("cannot reach {name}: {reason}")]
    Unavailable { name: String, reason: String },
    /// The store is there, but this program must not use it.
    #[error("{0}")]
    Refused(String),
}

//! The store in one SQLite file: for one machine, with as many processes as it has.
//!
//! One thread of each process writes, and gives all waiting jobs one transaction. Reads, and small writes while no other
//! job waits, use the file directly, since a change of threads costs as much.

mod apply;
mod busy;
mod clock;
mod core;
mod failure;
mod file;
mod group;
mod lock_holder;
mod read;
mod row;
mod schema;
mod wake_files;
mod wake_listener;
mod wal;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use afl_store::Epoch;
use afl_store::Millis;
use afl_store::backend::{Backend, Batch, ClockStatus, Head, Limits, Scan, StoreError, Take, TakeResult};
use afl_store::clock::Clock;
use afl_store::record::{Key, Record, Tenant};
use afl_store::watch::{Watch, Watchers};
use async_trait::async_trait;

use self::core::Core;
use crate::kind::{StoreKind, WaitObserver};
use crate::stats::stats;
use busy::BusyWait;
use clock::SqliteClock;
use group::JobWork;
use read::Readers;
use wake_files::WakeFolder;
use wake_listener::WakeListener;
use writer::SqliteWriter;

/// A body is a value of SQLite, which it copies a few times; a batch is one transaction in the write-ahead log.
pub const LIMITS: Limits = Limits { batch_writes: 10_000, batch_bytes: 64 << 20, body_bytes: 16 << 20 };

pub(crate) const KIND: StoreKind = StoreKind {
    schemes: &["sqlite"],
    form: "sqlite:PATH",
    advice: "",
    is_kept: true,
    is_file: true,
    #[cfg(feature = "testing")]
    test_server: None,
    accepts: |_| true,
    open: |address, on_wait| {
        Box::pin(async move {
            let path = Path::new(address.file().unwrap_or_default());
            let store = Sqlite::open(path, Options { on_wait, ..Options::default() })?;
            Ok(Arc::new(store) as Arc<dyn Backend>)
        })
    },
};

stats! {
    pub struct SqliteStats counted by SqliteCounters {
        /// Batches and takes that were written.
        commits,
        /// Those that were not, as a rule for a conflict.
        refused,
        /// Transactions that wrote; a group of commits shares one.
        transactions,
        /// Of these, with a sync of the log to the disk.
        synced_transactions,
        /// Each syncs the log and the file.
        checkpoints,
        /// Looks for changes of other processes.
        looks,
    }
}

impl SqliteStats {
    /// Waits for the disk, the cost of a durable store.
    pub fn syncs(&self) -> u64 {
        self.synced_transactions + 2 * self.checkpoints
    }
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub clock: Clock,
    /// Beyond this size of the file the disk counts as full.
    pub max_bytes: Option<u64>,
    /// Called when a write waits long for another process.
    pub on_wait: WaitObserver,
}

#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    clock: SqliteClock,
    wait: Arc<BusyWait>,
    watchers: Arc<Watchers>,
    readers: Readers,
    wake_listener: WakeListener,
    writer: SqliteWriter,
}

impl Sqlite {
    /// Opens the file, or makes it in a folder that is there.
    pub fn open(path: &Path, options: Options) -> Result<Self, StoreError> {
        let wait = BusyWait::new(path, options.on_wait.clone());
        let mut connection = file::open_writer(path, &options, &wait)?;
        let clock = SqliteClock::open(&mut connection, path, options.clock)?;
        let readers = Readers::open(path, &wait)?;
        let watchers = Arc::new(Watchers::default());
        let wake_folder = WakeFolder::new(path);
        let core =
            Core::new(connection, path, wait.clone(), clock.clone(), watchers.clone(), wake_folder.clone())?;
        let writer = SqliteWriter::start(core)?;
        let wake_listener = WakeListener::new(wake_folder, watchers.clone());
        Ok(Self { path: path.to_owned(), clock, wait, watchers, readers, wake_listener, writer })
    }

    /// The work of this process on the file since it opened it.
    pub fn stats(&self) -> SqliteStats {
        self.writer.counters.read()
    }
}

#[async_trait]
impl Backend for Sqlite {
    fn limits(&self) -> Limits {
        LIMITS
    }

    /// Only the end of the whole machine can take commits back, and with it this process ends.
    fn epoch(&self) -> Epoch {
        row::EPOCH
    }

    async fn now(&self) -> Result<Millis, StoreError> {
        Ok(self.clock.now())
    }

    async fn clock(&self) -> Result<ClockStatus, StoreError> {
        Ok(self.clock.status())
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.readers.get(keys)
    }

    async fn scan(&self, scan: &Scan) -> Result<Vec<Record>, StoreError> {
        self.readers.scan(scan)
    }

    async fn heads(&self, tenant: &Tenant, prefix: &str) -> Result<Vec<Head>, StoreError> {
        self.readers.heads(tenant, prefix)
    }

    async fn scopes(&self, tenant: &Tenant, after: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        self.readers.scopes(tenant, after, limit)
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        LIMITS.check(&batch)?;
        self.writer.ask(JobWork::Commit(batch)).await.map(drop)
    }

    async fn take(&self, take: Take) -> Result<TakeResult, StoreError> {
        // A take that finds nothing must not delay writes.
        if take.limit == 0 || self.readers.is_empty(&take)? {
            return Ok(TakeResult::default());
        }
        self.writer.ask(JobWork::Take(take.into())).await
    }

    fn watch(&self, tenant: &Tenant, prefix: &str) -> Watch {
        self.wake_listener.listen(prefix);
        self.watchers.watch(tenant, prefix)
    }

    async fn check_integrity(&self) -> Result<Vec<String>, StoreError> {
        file::check_integrity(&self.path, &self.wait)
    }
}

//! Where a bench keeps its runs: a fresh store of each kind, opened by one process or several.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use afl_backends::postgres::Postgres;
use afl_backends::sqlite::Sqlite;
use afl_backends::{KINDS, StoreAddress, StoreKind};
use afl_runtime::Service;
use afl_store::backend::Backend;
use afl_store::record::Tenant;
use serde::{Deserialize, Serialize, Serializer};

use crate::counted::{Calls, Counted};
use crate::usage;

/// A kind of store from the list of the backends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BenchStoreKind(&'static StoreKind);

/// A store that has figures of its own; a bench measures others by their calls and times alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KnownStore {
    Sqlite,
    Postgres,
}

impl BenchStoreKind {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|kind| Self(kind))
    }

    pub(crate) fn of(url: &str) -> Self {
        Self(StoreAddress::parse(url).expect("the address of a store").kind)
    }

    pub(crate) fn name(self) -> &'static str {
        self.0.name()
    }

    /// Whether other processes can open the store.
    pub(crate) fn is_kept(self) -> bool {
        self.0.is_kept
    }

    pub(crate) fn known(self) -> Option<KnownStore> {
        match self.name() {
            "sqlite" => Some(KnownStore::Sqlite),
            "postgres" => Some(KnownStore::Postgres),
            _ => None,
        }
    }

    /// The address of a store in this folder, or on the server of the tests.
    pub(crate) fn url(self, folder: &Path) -> String {
        self.0.test_url(folder)
    }
}

impl PartialEq for BenchStoreKind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Display for BenchStoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for BenchStoreKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A store in use by this process.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) service: Service,
    pub(crate) counted: Arc<Counted>,
    store: Arc<dyn Backend>,
}

impl Opened {
    pub(crate) async fn at(url: &str) -> Self {
        let store = afl_backends::open(url).await.expect("the store opens");
        let counted = Arc::new(Counted::new(store.clone()));
        let tenant = Tenant::new(Tenant::LOCAL).expect("a good name");
        Self { service: Service::new(counted.clone(), tenant), counted, store }
    }

    /// The resources that this process has spent so far.
    pub(crate) fn spent(&self) -> Spent {
        // Waits for the disk and transactions are figures of one kind of store, so the trait has no method for them.
        let store: &dyn Any = &*self.store;
        let (syncs, transactions, looks) = if let Some(sqlite) = store.downcast_ref::<Sqlite>() {
            let stats = sqlite.stats();
            (stats.syncs(), stats.transactions, stats.looks)
        } else if let Some(postgres) = store.downcast_ref::<Postgres>() {
            let stats = postgres.stats();
            (stats.durable_transactions, stats.transactions, 0)
        } else {
            (0, 0, 0)
        };
        Spent {
            cpu: usage::cpu(),
            calls: self.counted.calls(),
            syncs,
            transactions,
            looks,
            written_bytes: usage::written_bytes(),
        }
    }
}

/// The resources that work took of one or several processes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Spent {
    pub(crate) cpu: Duration,
    pub(crate) calls: Calls,
    /// Waits for the disk.
    pub(crate) syncs: u64,
    pub(crate) transactions: u64,
    /// Of a process at a file, for the writes of others.
    pub(crate) looks: u64,
    pub(crate) written_bytes: u64,
}

impl Spent {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            calls: self.calls.since(before.calls),
            syncs: self.syncs - before.syncs,
            transactions: self.transactions - before.transactions,
            looks: self.looks - before.looks,
            written_bytes: self.written_bytes - before.written_bytes,
        }
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            cpu: self.cpu + other.cpu,
            calls: self.calls.with(other.calls),
            syncs: self.syncs + other.syncs,
            transactions: self.transactions + other.transactions,
            looks: self.looks + other.looks,
            written_bytes: self.written_bytes + other.written_bytes,
        }
    }
}

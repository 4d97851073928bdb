//! Where a bench keeps its runs: a fresh store of each kind, opened by one process or several.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use afl_backends::postgres::{CONNECTIONS, Postgres};
use afl_backends::sqlite::{Options, Sqlite};
use afl_runtime::Service;
use afl_store::clock::Clock;
use afl_store::memory::Memory;
use afl_store::record::Tenant;
use serde::{Deserialize, Serialize};

use crate::counted::{Calls, Counted};
use crate::usage;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Memory,
    Sqlite,
    Postgres,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Sqlite, Self::Postgres];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// As one process tells it to another.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    Memory,
    Sqlite(PathBuf),
    Postgres(String),
}

impl Address {
    pub(crate) fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some(("sqlite", path)) => Self::Sqlite(path.into()),
            Some(("postgres", _)) => Self::Postgres(text.to_owned()),
            Some(_) | None => Self::Memory,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => f.write_str(url),
        }
    }
}

/// A store in use by this process.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) service: Service,
    pub(crate) counted: Arc<Counted>,
    handle: Handle,
}

#[derive(Clone, Debug)]
enum Handle {
    Memory,
    Sqlite(Arc<Sqlite>),
    Postgres(Arc<Postgres>),
}

impl Opened {
    pub(crate) async fn at(address: &Address) -> Self {
        let (handle, counted) = match address {
            Address::Memory => (Handle::Memory, Counted::new(Arc::new(Memory::new(Clock::System)))),
            Address::Sqlite(path) => {
                let sqlite = Arc::new(Sqlite::open(path, Options::default()).expect("the file opens"));
                (Handle::Sqlite(sqlite.clone()), Counted::new(sqlite))
            }
            Address::Postgres(url) => {
                let postgres = Postgres::connect(url, CONNECTIONS).await.expect("the server answers");
                let postgres = Arc::new(postgres);
                (Handle::Postgres(postgres.clone()), Counted::new(postgres))
            }
        };
        let counted = Arc::new(counted);
        let tenant = Tenant::new(Tenant::LOCAL).expect("a good name");
        Self { service: Service::new(counted.clone(), tenant), counted, handle }
    }

    /// What this process has spent so far.
    pub(crate) fn spent(&self) -> Spent {
        let (syncs, transactions, looks) = match &self.handle {
            Handle::Memory => (0, 0, 0),
            Handle::Sqlite(store) => {
                let stats = store.stats();
                (stats.syncs(), stats.transactions, stats.looks)
            }
            Handle::Postgres(store) => {
                let stats = store.stats();
                (stats.durable_transactions, stats.transactions, 0)
            }
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

/// What work took of one or several processes.
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

//! A store of each kind, and services over it as different processes have them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afl_backends::postgres::Postgres;
use afl_backends::sqlite::{Options, Sqlite};
use afl_runtime::Service;
use afl_store::backend::Backend;
use afl_store::clock::Clock;
use afl_store::memory::Memory;
use afl_store::record::Tenant;
use tempfile::TempDir;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Memory,
    Sqlite,
    Postgres,
}

/// Where one test has its runs: all to itself, since tests share a server by tenants.
pub(crate) struct Site {
    pub(crate) kind: Kind,
    pub(crate) tenant: Tenant,
    folder: TempDir,
    memory: Arc<Memory>,
}

/// Few, because many tests share the server.
const CONNECTIONS: usize = 4;

impl Site {
    pub(crate) fn new(kind: Kind) -> Self {
        static SITES: AtomicU64 = AtomicU64::new(0);
        let name = format!("site-{}-{}", std::process::id(), SITES.fetch_add(1, Ordering::Relaxed));
        Self {
            kind,
            tenant: Tenant::new(&name).unwrap(),
            folder: folder(),
            memory: Arc::new(Memory::new(Clock::System)),
        }
    }

    pub(crate) fn all() -> [Self; 3] {
        [Kind::Memory, Kind::Sqlite, Kind::Postgres].map(Self::new)
    }

    /// Of the SQLite store.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    /// A handle of its own each time, as each process has one.
    pub(crate) async fn backend(&self) -> Arc<dyn Backend> {
        match self.kind {
            Kind::Memory => self.memory.clone(),
            Kind::Sqlite => Arc::new(Sqlite::open(&self.file(), Options::default()).unwrap()),
            Kind::Postgres => {
                let url = afl_testbed::postgres::shared_url();
                Arc::new(Postgres::connect(&url, CONNECTIONS).await.unwrap())
            }
        }
    }

    pub(crate) async fn service(&self) -> Service {
        Service::new(self.backend().await, self.tenant.clone())
    }
}

/// In memory where there is such a place: no test here cuts the power, so no disk is needed.
pub(crate) fn folder() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

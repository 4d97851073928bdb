//! A store of each kind, and services over it as different processes have them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afl_backends::{KINDS, StoreKind};
use afl_runtime::Service;
use afl_store::backend::Backend;
use afl_store::record::Tenant;
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// Where one test has its runs: all to itself, since tests share a server by tenants.
pub(crate) struct Site {
    pub(crate) kind: &'static StoreKind,
    pub(crate) tenant: Tenant,
    folder: TempDir,
    /// The one handle of a store that ends with its handle.
    only: OnceCell<Arc<dyn Backend>>,
}

impl Site {
    /// A store of this scheme.
    pub(crate) fn of(scheme: &str) -> Self {
        Self::new(KINDS.iter().find(|kind| kind.name() == scheme).unwrap())
    }

    fn new(kind: &'static StoreKind) -> Self {
        static SITES: AtomicU64 = AtomicU64::new(0);
        let name = format!("site-{}-{}", std::process::id(), SITES.fetch_add(1, Ordering::Relaxed));
        Self { kind, tenant: Tenant::new(&name).unwrap(), folder: folder(), only: OnceCell::new() }
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|kind| Self::new(kind))
    }

    /// Of the SQLite store.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("store.db")
    }

    /// A handle of its own each time, as each process has one.
    pub(crate) async fn backend(&self) -> Arc<dyn Backend> {
        let url = self.kind.test_url(self.folder.path());
        let open = async || afl_backends::open(&url).await.unwrap();
        if self.kind.is_kept { open().await } else { self.only.get_or_init(open).await.clone() }
    }

    pub(crate) async fn service(&self) -> Service {
        Service::new(self.backend().await, self.tenant.clone())
    }
}

/// In memory where there is such a place: no test here cuts the power, so no disk is needed.
pub(crate) fn folder() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

//! SQLite against the contract of all backends, and what only a file can suffer.

#![cfg(feature = "sqlite")]

mod clock;
mod damage;
mod file;
mod processes;

use std::path::PathBuf;
use std::sync::Arc;

use afl_backends::sqlite::{Options, Sqlite};
use afl_store::backend::{
    Backend, Batch, Change, Decision, Durability, Expect, Ranks, Scan, StoreError, Take, Write,
};
use afl_store::conformance::Fixture;
use afl_store::record::{Content, Key, QueuePosition, Record, Seal, Tenant};
use async_trait::async_trait;
use tempfile::TempDir;

afl_store::conformance!(sqlite, Folder::new());

/// A folder with a store in it; every handle opens the file anew.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("there is a place for temporary files"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("store.db")
    }

    fn open(&self) -> Sqlite {
        Sqlite::open(&self.path(), Options::default()).expect("the file can be opened")
    }

    /// Why the file is not opened.
    fn refusal(&self) -> String {
        let error = Sqlite::open(&self.path(), Options::default()).expect_err("the file is not ours");
        assert!(matches!(error, StoreError::Refused(_)), "{error:?}");
        error.to_string().replace(&*self.path().to_string_lossy(), "store.db")
    }
}

#[async_trait]
impl Fixture for Folder {
    async fn open(&self) -> Arc<dyn Backend> {
        Arc::new(Self::open(self))
    }
}

fn key(id: &str) -> Key {
    Key { tenant: Tenant::new(Tenant::LOCAL).expect("a good name"), scope: "run".into(), id: id.to_owned() }
}

fn insert(id: &str, body: impl Into<Vec<u8>>) -> Write {
    let place = Some(QueuePosition { bucket: "queue".to_owned(), rank: 0 });
    let content = Content { place, body: body.into(), seal: Seal::default() };
    Write { key: key(id), expect: Expect::Absent, change: Change::Put(content) }
}

async fn commit(store: &Sqlite, durability: Durability, write: Write) -> Result<(), StoreError> {
    store.commit(Batch::new(vec![write], durability)).await
}

fn take(limit: usize) -> Take {
    Take {
        tenant: key("").tenant,
        bucket: "queue".to_owned(),
        ranks: Ranks::All,
        after: None,
        limit,
        max_in_bucket: None,
        durability: Durability::Relaxed,
        decide: Arc::new(|record, _| Decision::Move(Content { place: None, ..record.content.clone() })),
        also_read: None,
    }
}

async fn all(store: &Sqlite) -> Result<Vec<Record>, StoreError> {
    let Key { tenant, scope, .. } = key("");
    store.scan(&Scan::Scope { tenant, scope, prefix: String::new(), after: None, limit: 100_000 }).await
}

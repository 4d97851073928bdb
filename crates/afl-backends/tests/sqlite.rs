//! SQLite against the contract of all backends.

#![cfg(feature = "sqlite")]

use std::path::PathBuf;
use std::sync::Arc;

use afl_backends::sqlite::{Options, Sqlite};
use afl_store::backend::Backend;
use afl_store::conformance::Fixture;
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
}

#[async_trait]
impl Fixture for Folder {
    async fn open(&self) -> Arc<dyn Backend> {
        Arc::new(Sqlite::open(&self.path(), Options::default()).expect("the file can be opened"))
    }
}

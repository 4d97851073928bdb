//! Fresh stores for the cases: a directory for files, and a PostgreSQL server of our own.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use afl_testbed::postgres::PostgresServer;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use crate::place::{BenchStoreKind, KnownStore};
use crate::raw::{self, Limits};
use crate::usage;

/// As the manual of PostgreSQL advises for a machine of 4 GB. The server of the tests has less than the large cases write,
/// so it would measure the eviction of pages.
const SERVER_SETTINGS: &str = "shared_buffers = 1GB";

pub(crate) struct Ground {
    directory: TempDir,
    server: Option<PostgresServer>,
    made: Cell<u32>,
}

/// The resources that the server of a store has spent, besides the processes that use it.
#[derive(Clone, Copy, Default)]
pub(crate) struct ServerSpent {
    pub(crate) cpu: Duration,
    /// Of its write-ahead log.
    pub(crate) written_bytes: u64,
}

impl Ground {
    pub(crate) fn new(kinds: &[BenchStoreKind]) -> Self {
        let directory = tempfile::tempdir().expect("a directory for files");
        let server = kinds
            .iter()
            .any(|kind| kind.known() == Some(KnownStore::Postgres))
            .then(|| PostgresServer::start_with(SERVER_SETTINGS).expect("PostgreSQL starts"));
        Self { directory, server, made: Cell::new(0) }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The address of a new store.
    pub(crate) async fn fresh(&self, kind: BenchStoreKind) -> String {
        let number = self.made.get();
        self.made.set(number + 1);
        if kind.known() == Some(KnownStore::Postgres) {
            let name = format!("bench{number}");
            let client = connect(&self.url()).await;
            client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a new database");
            let url = self.url();
            let (server, _) = url.rsplit_once('/').expect("the URL names a database");
            return format!("{server}/{name}");
        }
        let folder = self.path().join(number.to_string());
        fs::create_dir(&folder).expect("a folder for the store");
        kind.url(&folder)
    }

    fn url(&self) -> String {
        self.server.as_ref().expect("started for this kind").url()
    }

    /// The speed of the disk and of the bare database now.
    pub(crate) async fn limits(&self, kind: BenchStoreKind) -> Limits {
        match kind.known() {
            Some(KnownStore::Sqlite) => raw::sqlite(self.path()),
            Some(KnownStore::Postgres) => raw::postgres(&self.url(), self.path()).await,
            None => Limits::default(),
        }
    }

    pub(crate) async fn server_spent(&self, kind: BenchStoreKind) -> ServerSpent {
        match kind.known() {
            Some(KnownStore::Sqlite) | None => ServerSpent::default(),
            Some(KnownStore::Postgres) => {
                let client = connect(&self.url()).await;
                let sql = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8";
                let bytes: f64 = client.query_one(sql, &[]).await.expect("the server answers").get(0);
                ServerSpent { cpu: usage::cpu_of_server(&self.pid_file()), written_bytes: bytes as u64 }
            }
        }
    }

    /// Drops a database with the server's remaining work for it, so that no later case pays for that work.
    pub(crate) async fn forget(&self, url: &str) {
        if BenchStoreKind::of(url).known() != Some(KnownStore::Postgres) {
            return;
        }
        let (_, name) = url.rsplit_once('/').expect("the URL names a database");
        let sql = format!("DROP DATABASE {name} WITH (FORCE)");
        let client = connect(&self.url()).await;
        client.batch_execute(&sql).await.expect("the database is ours");
        client.batch_execute("CHECKPOINT").await.expect("the server answers");
    }

    /// How many transactions the database of a store has ended so far.
    pub(crate) async fn transactions(&self, url: &str) -> Option<u64> {
        if BenchStoreKind::of(url).known() != Some(KnownStore::Postgres) {
            return None;
        }
        let (_, name) = url.rsplit_once('/')?;
        let client = connect(&self.url()).await;
        let sql = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1";
        let count: i64 = client.query_one(sql, &[&name]).await.expect("the server answers").get(0);
        u64::try_from(count).ok()
    }

    fn pid_file(&self) -> PathBuf {
        let server = self.server.as_ref().expect("started for this kind");
        server.directory().join("data/postmaster.pid")
    }
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server answers");
    tokio::spawn(async move { drop(connection.await) });
    client
}

impl ServerSpent {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            written_bytes: self.written_bytes - before.written_bytes,
        }
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self { cpu: self.cpu + other.cpu, written_bytes: self.written_bytes + other.written_bytes }
    }
}

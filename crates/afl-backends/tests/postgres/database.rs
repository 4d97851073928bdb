//! A database of its own for each test, and what tests put into it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::SystemTime;

use afl_backends::postgres::Postgres;
use afl_store::backend::{Backend, Batch, Change, Durability, Expect, Write};
use afl_store::conformance::Fixture;
use afl_store::record::{Content, Key, QueuePosition, Record, Seal, Tenant};
use async_trait::async_trait;
use tokio_postgres::{Client, NoTls};

/// Few, because many tests share the server.
const CONNECTIONS: usize = 4;

/// Dropped from the server when the test ends.
pub(crate) struct Database {
    server: String,
    name: String,
}

impl Database {
    /// On the server that all tests share.
    pub(crate) async fn new() -> Self {
        Self::on(&afl_testbed::postgres::shared_url()).await
    }

    pub(crate) async fn on(server: &str) -> Self {
        Self::with(server, "").await
    }

    pub(crate) async fn with(server: &str, options: &str) -> Self {
        static DATABASES: AtomicU64 = AtomicU64::new(0);
        let nth = DATABASES.fetch_add(1, Ordering::Relaxed);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let name = format!("afl_{}_{}_{nth}", std::process::id(), since.as_nanos());
        let create = format!("CREATE DATABASE {name} TEMPLATE template0 {options}");
        client(server).await.batch_execute(&create).await.unwrap();
        Self { server: server.to_owned(), name }
    }

    pub(crate) fn url(&self) -> String {
        let (address, _) = self.server.rsplit_once('/').unwrap();
        format!("{address}/{}", self.name)
    }

    pub(crate) async fn connect(&self) -> Postgres {
        Postgres::connect(&self.url(), CONNECTIONS).await.unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        client(&self.url()).await
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        let dropping = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let drop_it = format!("DROP DATABASE {name} WITH (FORCE)");
                client(&server).await.batch_execute(&drop_it).await.unwrap();
            });
        });
        // A test may have stopped its server, with all that is in it.
        drop(dropping.join());
    }
}

#[async_trait]
impl Fixture for Database {
    async fn open(&self) -> Arc<dyn Backend> {
        Arc::new(self.connect().await)
    }
}

pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

pub(crate) fn tenant() -> Tenant {
    Tenant::new("acme").unwrap()
}

pub(crate) fn key(id: &str) -> Key {
    Key { tenant: tenant(), scope: "run".into(), id: id.to_owned() }
}

pub(crate) fn content(body: &str) -> Content {
    Content { place: None, body: body.as_bytes().to_vec(), seal: Seal::default() }
}

pub(crate) fn placed(bucket: &str) -> Content {
    Content { place: Some(QueuePosition { bucket: bucket.to_owned(), rank: 0 }), ..content("{}") }
}

pub(crate) fn put(id: &str, expect: Expect, content: Content) -> Write {
    Write { key: key(id), expect, change: Change::Put(content) }
}

pub(crate) fn durable(writes: impl IntoIterator<Item = Write>) -> Batch {
    Batch::new(writes.into_iter().collect(), Durability::Durable)
}

pub(crate) fn relaxed(writes: impl IntoIterator<Item = Write>) -> Batch {
    Batch { durability: Durability::Relaxed, ..durable(writes) }
}

pub(crate) async fn read(store: &Postgres, id: &str) -> Option<Record> {
    store.get(&[key(id)]).await.unwrap().remove(0)
}

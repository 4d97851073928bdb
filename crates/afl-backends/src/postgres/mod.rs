//! The store of many machines: records in PostgreSQL.

mod clock;
mod commit_queues;
mod epochs;
mod failure;
mod gets;
mod group;
mod listen;
mod migrate;
mod plan;
mod read;
mod rows;
mod server;
mod take;
mod tls;
mod write;

use std::sync::{Arc, OnceLock};

use afl_store::Epoch;
use afl_store::Millis;
use afl_store::backend::{
    Backend, Batch, ClockStatus, Durability, Head, Limits, Scan, StoreError, Take, TakeResult,
};
use afl_store::record::{Key, Record, Tenant};
use afl_store::watch::{Watch, Watchers};
use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::kind::StoreKind;
use crate::stats::stats;

use self::clock::ServerClock;
use self::commit_queues::{CommitQueues, CommitRequest};
use self::epochs::Epochs;
use self::failure::PostgresFailure;
use self::gets::Gets;
use self::group::GroupWriter;
use self::listen::{NoticeOrigin, NotifyListener};
use self::server::{Connections, ServerAddress, apart};
use self::take::Taker;

/// How many connections a process opens for reads and takes; two more write, and one listens if it watches.
pub const CONNECTIONS: usize = 8;

pub(crate) const KIND: StoreKind = StoreKind {
    schemes: &["postgres", "postgresql"],
    form: "postgres://USER:PASSWORD@HOST/DATABASE",
    advice: " (an `@` in a password as %40)",
    is_kept: true,
    is_file: false,
    #[cfg(feature = "testing")]
    test_server: Some("AFL_TEST_POSTGRES"),
    // The driver ends a login at its first `@`, and would take the rest of a password for the host.
    accepts: |rest| rest.starts_with("//") && rest.matches('@').count() < 2,
    open: |address, _| {
        Box::pin(async move {
            let store = Postgres::connect(address.url(), CONNECTIONS).await?;
            Ok(Arc::new(store) as Arc<dyn Backend>)
        })
    },
};

const LIMITS: Limits = Limits { batch_writes: 10_000, batch_bytes: 64 << 20, body_bytes: 16 << 20 };

stats! {
    pub struct PostgresStats counted by PostgresCounters {
        commits,
        durable_commits,
        /// Batches that found something else than they expected.
        conflicts,
        /// Transactions of commits and takes; commits that share one count once.
        transactions,
        /// Those of them that waited for the disk.
        durable_transactions,
        /// Of keys and bodies that were committed.
        bytes,
    }
}

impl PostgresCounters {
    fn transaction(&self, durability: Durability) {
        self.transactions.add(1);
        self.durable_transactions.add(usize::from(durability == Durability::Durable));
    }
}

/// One process's handle on the store. Its tasks end with it.
#[derive(Debug)]
pub struct Postgres {
    connections: Arc<Connections>,
    gets: Gets,
    clock: ServerClock,
    requests: mpsc::Sender<CommitRequest>,
    runtime: Handle,
    /// Started with the first watch: a process that never waits needs no connection for it.
    listener: OnceLock<JoinHandle<()>>,
}

impl Postgres {
    /// Connects to `postgres://USER:PASSWORD@HOST:PORT/DATABASE` and brings its schema `afl` up to date. `connections`
    /// is how many it may open for reads and takes, usually [`CONNECTIONS`].
    pub async fn connect(url: &str, connections: usize) -> Result<Self, StoreError> {
        let server = ServerAddress::new(url)?;
        let mut client = server.connect().await?;
        migrate::migrate(&server, &mut client).await?;
        drop(client);

        let connections = Arc::new(Connections {
            pool: server.pool(connections),
            server,
            epochs: Epochs::default(),
            origin: NoticeOrigin::new(),
            watchers: Watchers::default(),
            counters: PostgresCounters::default(),
        });
        let (requests, received) = mpsc::channel(commit_queues::QUEUE);
        let writer = || GroupWriter::connect(connections.clone());
        tokio::spawn(CommitQueues::new(writer().await?, writer().await?).run(received));
        Ok(Self {
            gets: Gets::new(connections.clone()),
            connections,
            clock: ServerClock::default(),
            requests,
            runtime: Handle::current(),
            listener: OnceLock::new(),
        })
    }

    pub fn stats(&self) -> PostgresStats {
        self.connections.counters.read()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.get() {
            listener.abort();
        }
    }
}

#[async_trait]
impl Backend for Postgres {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn epoch(&self) -> Epoch {
        self.connections.epochs.now()
    }

    async fn now(&self) -> Result<Millis, StoreError> {
        Ok(self.clock.now(&self.connections).await?)
    }

    async fn clock(&self) -> Result<ClockStatus, StoreError> {
        Ok(self.clock.status(&self.connections).await?)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        Ok(self.gets.get(keys).await?)
    }

    async fn scan(&self, scan: &Scan) -> Result<Vec<Record>, StoreError> {
        let (connections, scan) = (self.connections.clone(), scan.clone());
        Ok(apart(async move { read::scan(&connections, &scan).await }).await?)
    }

    async fn heads(&self, tenant: &Tenant, prefix: &str) -> Result<Vec<Head>, StoreError> {
        let (connections, tenant, prefix) = (self.connections.clone(), tenant.clone(), prefix.to_owned());
        Ok(apart(async move { read::heads(&connections, &tenant, &prefix).await }).await?)
    }

    async fn scopes(&self, tenant: &Tenant, after: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let (connections, tenant, after) = (self.connections.clone(), tenant.clone(), after.to_owned());
        Ok(apart(async move { read::scopes(&connections, &tenant, &after, limit).await }).await?)
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        LIMITS.check(&batch)?;
        let gone =
            || PostgresFailure::unavailable(&self.connections.server, "the writer of this process has ended");
        let (reply, result) = oneshot::channel();
        self.requests.send(CommitRequest { batch, reply }).await.map_err(|_| gone())?;
        result.await.map_err(|_| gone())?
    }

    async fn take(&self, take: Take) -> Result<TakeResult, StoreError> {
        if take.limit == 0 {
            return Ok(TakeResult::default());
        }
        let (connections, now) = (self.connections.clone(), self.now().await?);
        apart(async move { Taker { connections: &connections, now }.take(&take).await }).await
    }

    fn watch(&self, tenant: &Tenant, prefix: &str) -> Watch {
        let watch = self.connections.watchers.watch(tenant, prefix);
        let listen = || self.runtime.spawn(NotifyListener(self.connections.clone()).run());
        self.listener.get_or_init(listen);
        watch
    }
}

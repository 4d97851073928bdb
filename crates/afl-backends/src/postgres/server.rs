//! The address of a server, and connections to it that all behave the same whatever its settings.

use std::future::pending;
use std::panic::resume_unwind;
use std::str::FromStr;
use std::time::Duration;

use afl_store::watch::Watchers;
use afl_store::{Backoff, Millis};
use deadpool_postgres::{
    ClientWrapper, Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime, Timeouts,
};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Connection, Error, Row, Socket};

use super::PostgresCounters;
use super::epochs::Epochs;
use super::failure::{Outlook, PostgresFailure, outlook};
use super::listen::NoticeOrigin;
use super::tls::{self, Tls, TlsStream};

/// How often a call is tried that certainly had no effect. The pauses between the tries are 3 s together: a server that
/// restarts is back by then.
pub(super) const ATTEMPTS: u32 = 7;
pub(super) const PAUSES: Backoff = Backoff::doubling(Millis(50), Millis(2_000));

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that is silent for longer is given up; its own limit for a statement is shorter.
pub(super) const ANSWER: Duration = Duration::from_secs(75);
pub(super) const SILENT: &str = "it does not answer";
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);
/// After this a silent peer counts as gone.
const SILENCE: Duration = Duration::from_secs(15);

/// Every statement goes by an index and its plan is kept, so the planner must not be misled by the statistics of a
/// table that was empty a minute ago. A process that hangs must not keep its locks. A durable commit asks for its sync.
const SESSION: &str = "-c default_transaction_isolation=read\\ committed -c plan_cache_mode=force_generic_plan \
     -c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off \
     -c jit=off -c synchronous_commit=off -c idle_in_transaction_session_timeout=15s -c lock_timeout=3s -c statement_timeout=60s";

#[derive(Clone, Debug)]
pub(super) struct ServerAddress {
    config: Config,
    /// For messages; without the password.
    pub(super) name: String,
    tls: Tls,
}

impl ServerAddress {
    pub(super) fn new(url: &str) -> Result<Self, PostgresFailure> {
        let refused = |cause: String| {
            PostgresFailure::Refused(format!("the address of the PostgreSQL store cannot be used: {cause}"))
        };
        let (url, protection) = tls::split(url).map_err(refused)?;
        let mut config = Config::from_str(&url).map_err(|error| {
            let cause = error.into_source().map_or_else(String::new, |cause| format!(" ({cause})"));
            PostgresFailure::Refused(format!(
                "the address of the PostgreSQL store cannot be read{cause}: write it as \
                 postgres://USER:PASSWORD@HOST:PORT/DATABASE"
            ))
        })?;
        let name = name(&config);
        let tls = protection.connector().map_err(refused)?;
        if let Some(mode) = protection.mode {
            config.ssl_mode(mode);
        }
        if config.get_hosts().iter().all(is_local) {
            // A local socket cannot be intercepted, and has no host name to verify.
            config.ssl_mode(SslMode::Disable);
        }
        let options = format!("{} {SESSION}", config.get_options().unwrap_or_default());
        config
            .options(options)
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .keepalives_idle(SILENCE)
            .keepalives_interval(SILENCE / 3)
            .tcp_user_timeout(SILENCE);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("agentflow");
        }
        Ok(Self { config, name, tls })
    }

    pub(super) fn user(&self) -> &str {
        self.config.get_user().unwrap_or_default()
    }

    /// A connection beside the pool, tried again while the server is away.
    pub(super) async fn connect(&self) -> Result<ClientWrapper, PostgresFailure> {
        let mut tries = Tries::default();
        loop {
            let error = match timeout(CONNECT_TIMEOUT, self.open()).await {
                Ok(Ok((client, connection))) => {
                    // It ends with an error when the connection is lost; calls of the client then fail too.
                    let task = tokio::spawn(async move { drop(connection.await) });
                    return Ok(ClientWrapper::new(client, task));
                }
                Ok(Err(error)) => error,
                Err(_) => return Err(PostgresFailure::unavailable(self, SILENT)),
            };
            if outlook(&error) != Outlook::Passing || !tries.again().await {
                return Err(PostgresFailure::of(self, &error));
            }
        }
    }

    /// One try of a connection that the caller drives.
    pub(super) async fn open(&self) -> Result<(Client, Connection<Socket, TlsStream>), Error> {
        self.config.connect(self.tls.0.clone()).await
    }

    pub(super) fn pool(&self, connections: usize) -> Pool {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.config.clone(), self.tls.0.clone(), recycling);
        let timeouts = Timeouts {
            wait: Some(WAIT_TIMEOUT),
            create: Some(CONNECT_TIMEOUT),
            recycle: Some(CONNECT_TIMEOUT),
        };
        let builder = Pool::builder(manager)
            .max_size(connections)
            .timeouts(timeouts)
            // The server has a process for each connection; the one used last has everything at hand.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1);
        builder.build().expect("a runtime is given, which is all that can be missing")
    }
}

/// Whether it is a socket of this machine, in a folder.
fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(_) => false,
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn name(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("the PostgreSQL database `{database}` at {host}:{port}")
}

/// Counts the tries of one call and pauses between them.
#[derive(Debug, Default)]
pub(super) struct Tries {
    failed: u32,
}

impl Tries {
    /// Pauses before the next try; false when there is none.
    pub(super) async fn again(&mut self) -> bool {
        self.failed += 1;
        if self.failed >= ATTEMPTS {
            return false;
        }
        sleep(PAUSES.after(self.failed).as_duration()).await;
        true
    }
}

/// Does a call in a task of its own, which ends with the call. A caller may begin a call and then wait for another before it
/// polls the first again: a call within its caller would keep its connection all that time, and so could all of them.
pub(super) async fn apart<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> T {
    let mut task = JoinSet::new();
    task.spawn(call);
    match task.join_next().await.expect("it was spawned").map_err(JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => resume_unwind(panic),
        // The runtime ends, and with it the caller.
        Err(Err(_)) => pending().await,
    }
}

/// Connections for reads and takes, and all that the writers and the listener of one handle share with them.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) server: ServerAddress,
    pub(super) pool: Pool,
    pub(super) epochs: Epochs,
    pub(super) origin: NoticeOrigin,
    pub(super) watchers: Watchers,
    pub(super) counters: PostgresCounters,
}

impl Connections {
    /// One read, tried again while the server is away.
    pub(super) async fn query(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, PostgresFailure> {
        let mut tries = Tries::default();
        loop {
            let client = self.get().await?;
            let rows = async { client.query(&client.prepare_cached(sql).await?, params).await };
            match timeout(ANSWER, rows).await {
                Ok(Ok(rows)) => return Ok(rows),
                Err(_) => {
                    drop(Object::take(client));
                    return Err(PostgresFailure::unavailable(&self.server, SILENT));
                }
                Ok(Err(error)) => {
                    // Whatever is wrong with it, a fresh one is better.
                    drop(Object::take(client));
                    if outlook(&error) != Outlook::Passing || !tries.again().await {
                        return Err(PostgresFailure::of(&self.server, &error));
                    }
                }
            }
        }
    }

    pub(super) async fn get(&self) -> Result<Object, PostgresFailure> {
        let mut tries = Tries::default();
        loop {
            let error = match self.pool.get().await {
                Ok(client) => return Ok(client),
                Err(error) => error,
            };
            let passing = match &error {
                deadpool_postgres::PoolError::Backend(error) => outlook(error) == Outlook::Passing,
                _ => false,
            };
            if !passing || !tries.again().await {
                return Err(PostgresFailure::of_pool(&self.server, &error));
            }
        }
    }
}

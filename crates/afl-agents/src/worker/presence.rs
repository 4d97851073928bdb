//! What others know of a worker: its record in the registry of servers, and the handlers it has heard of.

use std::time::Duration;

use afl_runtime::Durability;
use afl_runtime::server::{Server, ServerState};
use tokio::time::sleep;

use super::{Told, Worker, WorkerError};

/// How long to wait for the store at the end: the record then says by its age that nobody is there.
const FAREWELL: Duration = Duration::from_secs(2);

impl Worker {
    /// The record as `startup`, then as `running`.
    pub(super) async fn appear(&self) -> Result<(), WorkerError> {
        self.tell(ServerState::Startup).await?;
        self.tell(ServerState::Running).await
    }

    pub(super) async fn keep_presence(&self, until: impl Future<Output = ()>) {
        let every = Duration::from_millis(self.config.heartbeat_interval_ms);
        let mut until = std::pin::pin!(until);
        loop {
            tokio::select! {
                () = &mut until => return,
                () = sleep(every) => {}
            }
            // A heartbeat that fails is followed by the next; meanwhile the record grows old, which is true.
            drop(self.tell(ServerState::Running).await);
        }
    }

    pub(super) async fn disappear(&self) {
        drop(tokio::time::timeout(FAREWELL, self.tell(ServerState::Shutdown)).await);
    }

    /// Reads the registrations again when they changed, and now and then.
    pub(super) async fn keep_fresh(&self, until: impl Future<Output = ()>) {
        let every = Duration::from_millis(self.config.registry_refresh_interval_ms);
        let mut changes = self.registry.watch();
        let mut until = std::pin::pin!(until);
        loop {
            tokio::select! {
                () = &mut until => return,
                () = changes.changed() => {}
                () = sleep(every) => {}
            }
            let before = self.registered_names();
            // What cannot be read now is read the next time; the handlers stay as they were.
            drop(self.refresh().await);
            let names = self.registered_names();
            if names != before {
                self.tell_of(|| Told::Handlers { names });
                // Others look there for who can do their work.
                drop(self.tell(ServerState::Running).await);
            }
        }
    }

    async fn tell(&self, state: ServerState) -> Result<(), WorkerError> {
        let servers = self.service.collection::<Server>();
        let known = servers.get(&self.server_id).await.map_err(afl_runtime::Error::from)?;
        let now = servers.store().now().await.map_err(afl_runtime::Error::from)?;
        let counts = self.counts();
        let config = self.config();
        let server = Server {
            uuid: self.server_id.to_string(),
            server_group: config.server_group.clone(),
            service_name: config.service_name.clone(),
            server_name: config.server_name.clone(),
            server_ips: Vec::new(),
            start_time: known.as_ref().map_or(now, |known| known.item.start_time),
            ping_time: now,
            topics: config.topics.clone(),
            capabilities: config.capabilities.clone(),
            handlers: self.registered_names(),
            handled: counts.handled,
            state,
            manager: String::new(),
            error: None,
            current: counts.current.into_values().collect(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let version = known.map(|known| known.version);
        let put = servers.put(&self.server_id, &server, version, Durability::Relaxed).await;
        put.map(drop).map_err(|error| afl_runtime::Error::from(error).into())
    }
}

//! A worker's record in the registry of servers, and its refresh of the registrations.

use std::time::Duration;

use afl_runtime::Millis;
use afl_runtime::server::{PURGED_AFTER, Server, ServerState};
use serde::Serialize;
use tokio::time::sleep;

use super::http::reachable;
use super::item_lock::ITEMS;
use super::{Profile, Worker, WorkerError, WorkerEvent};

/// How long to wait for the store at the end: the record then shows by its age that the worker is gone.
const FAREWELL: Duration = Duration::from_secs(2);

/// `ServerState`, and within `shutdown` how far the end is: work is finished, then stopped and given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerPhase {
    /// It has never been started.
    Idle,
    Startup,
    Running,
    /// It claims nothing more, and finishes what it has begun.
    Draining,
    /// The time for that is over: handlers are stopped, and their tasks given back.
    Stopping,
    Ended,
    /// It cannot go on.
    Broken,
}

impl WorkerPhase {
    pub const fn state(self) -> ServerState {
        match self {
            Self::Idle | Self::Startup => ServerState::Startup,
            Self::Running => ServerState::Running,
            Self::Draining | Self::Stopping | Self::Ended => ServerState::Shutdown,
            Self::Broken => ServerState::Error,
        }
    }
}

impl Worker {
    /// The record as `startup`, then as `running`.
    pub(super) async fn appear(&self) -> Result<(), WorkerError> {
        self.phase.send_replace(WorkerPhase::Startup);
        self.write_record(None).await?;
        self.phase.send_replace(WorkerPhase::Running);
        self.write_record(None).await
    }

    pub(super) async fn keep_presence(&self, until: impl Future<Output = ()>) {
        let every = Duration::from_millis(self.config.heartbeat_interval_ms);
        let mut phase = self.phase.subscribe();
        let mut until = std::pin::pin!(until);
        let mut known = None;
        loop {
            tokio::select! {
                () = &mut until => return,
                Ok(()) = phase.changed() => {}
                () = sleep(every) => {}
            }
            if let Ok(Some(jump)) = self.service.clock_jump().await
                && known.replace(jump) != Some(jump)
            {
                self.publish(|| WorkerEvent::ClockAhead { by: jump.by });
            }
            // A heartbeat that fails is followed by the next; meanwhile the record grows old, which is true.
            drop(self.write_record(None).await);
            drop(self.forget_old_locks().await);
        }
    }

    /// The last word: that it ended, or why it cannot go on.
    pub(super) async fn disappear(&self, worked: &Result<(), WorkerError>) {
        let error = worked.as_ref().err().map(ToString::to_string);
        self.phase.send_replace(if error.is_none() { WorkerPhase::Ended } else { WorkerPhase::Broken });
        drop(tokio::time::timeout(FAREWELL, self.write_record(error)).await);
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
            // The next refresh reads the records that this one cannot read; until then the handlers stay.
            drop(self.refresh().await);
            let names = self.registered_names();
            if names != before {
                self.publish(|| WorkerEvent::Handlers { names });
                // Others look there for who can do their work.
                drop(self.write_record(None).await);
            }
        }
    }

    async fn write_record(&self, error: Option<String>) -> Result<(), WorkerError> {
        let counts = self.counts();
        let config = self.config();
        let server = Server {
            uuid: self.server_id.to_string(),
            server_group: config.server_group.clone(),
            service_name: config.service_name.clone(),
            server_name: config.server_name.clone(),
            server_ips: Vec::new(),
            // The heartbeat sets both times by the clock of the store.
            start_time: Millis(0),
            ping_time: Millis(0),
            topics: config.topics.clone(),
            task_lists: config.task_lists.clone(),
            capabilities: config.capabilities.clone(),
            handlers: self.directory.borrow().all_names(),
            current: counts.paths(),
            handled: counts.handled,
            state: self.phase().state(),
            manager: String::new(),
            error,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            http: self.http_address().map(reachable),
        };
        Ok(self.service.heartbeat(server).await?)
    }

    /// Deletes locks of items that no worker has touched for as long as it takes to purge a server.
    async fn forget_old_locks(&self) -> Result<(), WorkerError> {
        if self.config.profile == Profile::Service {
            let now = self.service.now().await?;
            let before = Millis(now.0.saturating_sub(PURGED_AFTER.0));
            self.service.locks().sweep(ITEMS, before).await.map_err(afl_runtime::Error::from)?;
        }
        Ok(())
    }
}

//! The worker: claims tasks, does them with its handlers, settles them, and drives the runs that it wakes.
//!
//! ```no_run
//! use afl_agents::handler::concurrent;
//! use afl_agents::worker::{Config, Profile, Worker};
//! # async fn example(
//! #     service: afl_runtime::Service,
//! #     shutdown: impl Future<Output = ()> + Send,
//! # ) -> Result<(), afl_agents::worker::WorkerError> {
//! let worker = Worker::new(service, Config::of(Profile::Poller))?;
//! worker.register("billing.Charge", concurrent(|call| async move { Ok(call.payload) }));
//! worker.start(shutdown).await
//! # }
//! ```

mod attempt;
mod config;
mod counts;
mod directory;
mod events;
mod http;
mod item_lock;
mod metrics;
mod one_run;
mod presence;
mod push;
mod relay;
mod rounds;
mod system;

use std::fmt;
use std::net::SocketAddr;
#[expect(clippy::disallowed_types, reason = "sync code on any thread changes and shows the facts")]
use std::sync::Mutex;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use afl_runtime::{Backoff, Millis, Program, Service};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::handler::{Call, Context, Facts, Handler, HandlerFailure, Object, Outcome, perform};
use crate::host::Hosts;
pub use crate::host::SCRIPT_TASK;
use crate::registration::{BadTopic, NoHandler, Registration, Topics};
use crate::registry::Registry;

pub use attempt::AttemptEnd;
pub use config::{Config, Profile};
use counts::Latencies;
pub use counts::{TaskInWork, WorkerCounts};
use directory::Directory;
pub use directory::ShortLease;
pub use events::{AttemptInfo, WorkerEvent};
pub use http::{StatusServerError, reachable};
pub use one_run::StopReason;
pub use presence::WorkerPhase;
use system::ExecuteHandler;

/// Between the tries of a call, while the store is unavailable.
const STORE_BACKOFF: Backoff = Backoff::doubling(Millis(100), Millis(5_000));

/// One process's worker. Clones are the same worker.
#[derive(Clone)]
pub struct Worker {
    service: Service,
    config: Arc<Config>,
    server_id: Arc<str>,
    directory: watch::Sender<Directory>,
    registry: Registry,
    phase: watch::Sender<WorkerPhase>,
    #[expect(clippy::disallowed_types, reason = "protects the facts alone; held for a look or a change")]
    live: Arc<Mutex<LiveFacts>>,
    latencies: Latencies,
    listener: Option<mpsc::Sender<WorkerEvent>>,
}

/// What the status of a worker shows.
#[derive(Default)]
struct LiveFacts {
    is_running: bool,
    /// When it was started the last time.
    started: Option<Instant>,
    /// Where its status can be asked for.
    http: Option<SocketAddr>,
    counts: WorkerCounts,
}

#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error(transparent)]
    Topic(#[from] BadTopic),
    #[error(transparent)]
    Store(#[from] afl_runtime::Error),
    #[error("a poller has no topics: it does what it has a function for")]
    TopicsOfPoller,
    #[error("a worker without a task list would never get work")]
    NoTaskList,
    #[error(transparent)]
    Lease(#[from] ShortLease),
    #[error(transparent)]
    Http(#[from] StatusServerError),
    #[error("this worker runs already")]
    Running,
    /// A bug, in the worker or in the future that ends it.
    #[error("the worker broke off: {0}")]
    Panicked(String),
}

impl Worker {
    pub fn new(service: Service, mut config: Config) -> Result<Self, WorkerError> {
        config.task_lists.sort();
        config.task_lists.dedup();
        if config.task_lists.is_empty() {
            return Err(WorkerError::NoTaskList);
        }
        if config.profile == Profile::Poller && !config.topics.is_empty() {
            return Err(WorkerError::TopicsOfPoller);
        }
        let topics = Topics::new(config.topics.iter().map(String::as_str))?;
        let execute: Option<Arc<dyn Handler>> = match config.profile {
            Profile::Service => Some(Arc::new(ExecuteHandler(service.clone()))),
            Profile::Registry | Profile::Poller => None,
        };
        Ok(Self {
            registry: Registry::new(&service),
            server_id: service.fresh_id().into(),
            service,
            directory: watch::Sender::new(Directory::new(topics, execute, config.lease())),
            config: Arc::new(config),
            phase: watch::Sender::new(WorkerPhase::Idle),
            live: Arc::default(),
            latencies: Latencies::new(),
            listener: None,
        })
    }

    /// Registers a function of this process under a qualified or a short name.
    pub fn register(&self, facet: &str, handler: impl Handler + 'static) {
        self.directory.send_modify(|directory| {
            directory.functions.insert(facet.to_owned(), Arc::new(handler));
        });
    }

    /// Lets a function answer for every agent that could do a facet: whatever a task needs, and whichever server it wants.
    pub fn stand_in(&self, facet: &str, handler: impl Handler + 'static) {
        self.directory.send_modify(|directory| {
            directory.stand_ins.insert(facet.to_owned(), Arc::new(handler));
        });
    }

    /// Does every task that nothing else does.
    pub fn register_default(&self, handler: impl Handler + 'static) {
        self.directory.send_modify(|directory| directory.default = Some(Arc::new(handler)));
    }

    /// Lets the worker run the store's registrations, and scripts.
    #[must_use]
    pub fn with_hosts(self, hosts: Arc<Hosts>) -> Self {
        self.directory.send_modify(|directory| directory.set_hosts(hosts));
        self
    }

    /// Registrations of this process alone. They go before those that the store has of the same facets.
    #[must_use]
    pub fn with_registrations(self, own: Vec<Registration>) -> Self {
        self.directory.send_modify(|directory| {
            directory.own.clone_from(&own);
            directory.set_registrations(own);
        });
        self
    }

    /// Keeps a program at hand, so that driving a run of it needs no look-up in the store. A run is pinned to its
    /// program by the hash, so this serves every run of it.
    pub fn cache_workflow_ast(&self, ast: &Program) {
        self.service.cache_program(ast);
    }

    /// Sends the worker's events to a listener.
    #[must_use]
    pub fn with_listener(self, listener: mpsc::Sender<WorkerEvent>) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// Whether it has a handler for tasks of this name.
    pub fn can_do(&self, name: &str) -> Result<(), NoHandler> {
        self.directory.borrow().find(name).map(drop)
    }

    /// `LocalEventHandler.handle` of document 002: does the work of an event in this process, without a task. Nothing
    /// when no handler is registered for its type.
    pub async fn handle(&self, event_type: &str, payload: Object) -> Option<Outcome> {
        let found = self.directory.borrow().find(event_type);
        let handler = match found {
            Ok(handler) => handler,
            Err(NoHandler::Unknown { .. }) => return None,
            Err(ambiguous @ NoHandler::Ambiguous { .. }) => {
                return Some(Err(HandlerFailure::refused(ambiguous.to_string())));
            }
        };
        let (context, _) = Context::new(Facts { path: event_type.to_owned(), ..Facts::default() });
        let call = Call::new(event_type, payload, context);
        Some(perform(&*handler, call, handler.timeout(None)).await)
    }

    /// All names it has handlers for.
    pub fn registered_names(&self) -> Vec<String> {
        self.directory.borrow().names()
    }

    pub fn server_id(&self) -> &str {
        &self.server_id
    }

    pub fn is_running(&self) -> bool {
        self.live().is_running
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn counts(&self) -> WorkerCounts {
        self.live().counts.clone()
    }

    pub fn phase(&self) -> WorkerPhase {
        *self.phase.borrow()
    }

    /// The address of its status server, while it runs and if it has one.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.live().http
    }

    fn uptime(&self) -> Duration {
        self.live().started.map(|started| started.elapsed()).unwrap_or_default()
    }

    fn live(&self) -> MutexGuard<'_, LiveFacts> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the registrations of the store again, in the profile that has handlers from there. Refuses leases that are too
    /// short for this process's own handlers.
    pub async fn refresh(&self) -> Result<(), WorkerError> {
        self.directory.borrow().check_own()?;
        let unfit = self.directory.borrow().unfit();
        self.read_registrations().await?;
        for short in self.directory.borrow().unfit() {
            if !unfit.contains(&short) {
                self.publish(|| WorkerEvent::Unfit(short));
            }
        }
        Ok(())
    }

    async fn read_registrations(&self) -> Result<(), WorkerError> {
        if self.config.profile != Profile::Registry || self.directory.borrow().hosts.is_none() {
            return Ok(());
        }
        let stored = self.registry.all().await?;
        self.directory.send_if_modified(|directory| {
            let is_own =
                |stored: &Registration| directory.own.iter().any(|own| own.facet_name == stored.facet_name);
            let others = stored.into_iter().filter(|stored| !is_own(stored));
            let registrations = directory.own.iter().cloned().chain(others).collect();
            directory.set_registrations(registrations)
        });
        Ok(())
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("server_id", &self.server_id)
            .field("names", &self.registered_names())
            .finish_non_exhaustive()
    }
}

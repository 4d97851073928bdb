//! The worker: claims tasks, does them with its handlers, settles them, and drives the runs that it wakes.
//!
//! ```no_run
//! use afl_agents::handler::concurrent;
//! use afl_agents::worker::{Config, Profile, Worker};
//! # async fn example(service: afl_runtime::Service) -> Result<(), afl_agents::worker::WorkerError> {
//! let mut worker = Worker::new(service, Config::of(Profile::Poller))?;
//! worker.register("billing.Charge", concurrent(|call| async move { Ok(call.payload) }));
//! worker.start(async { tokio::signal::ctrl_c().await.unwrap_or_default() }).await
//! # }
//! ```

mod attempt;
mod config;
mod directory;
mod presence;
mod rounds;
mod told;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afl_runtime::Service;
use afl_runtime::server::Handled;
use tokio::sync::{mpsc, watch};

use crate::handler::Handler;
use crate::hosts::Hosts;
use crate::registration::{BadTopic, NoHandler, Registration, Topics};
use crate::registry::{Registry, RegistryError};

pub use attempt::Ended;
pub use config::{Config, Profile};
use directory::Directory;
pub use directory::SCRIPT_TASK;
pub use told::{Told, Work};

/// One process's worker. Clones are the same worker.
#[derive(Clone)]
pub struct Worker {
    service: Service,
    config: Arc<Config>,
    server_id: Arc<str>,
    directory: watch::Sender<Directory>,
    registry: Registry,
    running: Arc<AtomicBool>,
    counts: watch::Sender<Counts>,
    listener: Option<mpsc::Sender<Told>>,
}

/// What the worker did and does.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Counts {
    pub handled: BTreeMap<String, Handled>,
    /// The paths of the steps in work, and when they were begun, by their idempotency keys.
    pub current: BTreeMap<String, String>,
}

#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error(transparent)]
    Topic(#[from] BadTopic),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Store(#[from] afl_runtime::Error),
    #[error("this worker runs already")]
    Running,
}

impl Worker {
    pub fn new(service: Service, config: Config) -> Result<Self, WorkerError> {
        let topics = match &config.topics[..] {
            [] => None,
            patterns => Some(Topics::new(patterns.iter().map(String::as_str))?),
        };
        let directory = Directory { topics, ..Directory::default() };
        Ok(Self {
            registry: Registry::new(&service),
            server_id: service.fresh_id().into(),
            service,
            config: Arc::new(config),
            directory: watch::Sender::new(directory),
            running: Arc::default(),
            counts: watch::Sender::default(),
            listener: None,
        })
    }

    /// Registers a function of this process under a qualified or a short name.
    pub fn register(&self, facet: &str, handler: impl Handler + 'static) {
        self.directory.send_modify(|directory| {
            directory.functions.insert(facet.to_owned(), Arc::new(handler));
        });
    }

    /// Does every task that nothing else does.
    pub fn register_default(&self, handler: impl Handler + 'static) {
        self.directory.send_modify(|directory| directory.default = Some(Arc::new(handler)));
    }

    /// Lets the worker do what is registered in the store, and scripts.
    #[must_use]
    pub fn with_hosts(self, hosts: Arc<Hosts>) -> Self {
        self.directory.send_modify(|directory| directory.hosts = Some(hosts));
        self
    }

    /// Registrations of this process alone. They go before those that the store has of the same facets.
    #[must_use]
    pub fn with_registrations(self, own: Vec<Registration>) -> Self {
        self.directory.send_modify(|directory| {
            directory.registrations.clone_from(&own);
            directory.own = own;
        });
        self
    }

    /// Tells a listener what the worker does.
    #[must_use]
    pub fn telling(self, listener: mpsc::Sender<Told>) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// Whether it has a handler for tasks of this name.
    pub fn can_do(&self, name: &str) -> Result<(), NoHandler> {
        self.directory.borrow().find(name).map(drop)
    }

    /// All names it has handlers for.
    pub fn registered_names(&self) -> Vec<String> {
        self.directory.borrow().names()
    }

    pub fn server_id(&self) -> &str {
        &self.server_id
    }

    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::SeqCst)
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn counts(&self) -> Counts {
        self.counts.borrow().clone()
    }

    /// Reads the registrations of the store again; a poller has none from there.
    pub async fn refresh(&self) -> Result<(), WorkerError> {
        if self.config.profile == Profile::Poller || self.directory.borrow().hosts.is_none() {
            return Ok(());
        }
        let stored = self.registry.all().await?;
        self.directory.send_if_modified(|directory| {
            let is_own =
                |stored: &Registration| directory.own.iter().any(|own| own.facet_name == stored.facet_name);
            let others = stored.into_iter().filter(|stored| !is_own(stored));
            let registrations: Vec<Registration> = directory.own.iter().cloned().chain(others).collect();
            let changed = directory.registrations != registrations;
            directory.registrations = registrations;
            changed
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

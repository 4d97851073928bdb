//! The façade that every surface uses: the command line, the servers, the agents and programs that embed it.

use std::sync::Arc;
#[expect(clippy::disallowed_types, reason = "a wake comes from any thread and must not wait")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use afl_engine::evaluation::{Budget, Options};
use afl_engine::history::Actor;
use afl_engine::task::Task;
use afl_engine::time::Millis;
use afl_engine::trace::Tracing;
use afl_store::backend::Backend;
use afl_store::backend::ClockJump;
use afl_store::collection::{Collection, CollectionItem};
use afl_store::entropy::Entropy;
use afl_store::lock::Locks;
use afl_store::queue::Queue;
use afl_store::record::Tenant;
use afl_store::store::Store;
use afl_store::watch::Watch;
use tokio::sync::mpsc;

use crate::error::Error;
use crate::plans::Plans;
use crate::quarantine::Watchdog;
use crate::serve::Waker;
use crate::subscribe::TraceSubscriber;

/// A kind of records that belongs to the crate that implements this. Rust allows no other crate to implement it for the
/// kinds of the store, so only the methods of [`Service`] write servers, channels, locks and notifications.
pub trait ExtensionItem: CollectionItem {}

/// One tenant's runs in one store. Clones share everything.
///
/// A write that a method acknowledges is durable. Runs advance while a process [drives](Service::serve) the store;
/// without one, [`Service::turn`] does one round.
#[derive(Clone, Debug)]
pub struct Service {
    pub(crate) store: Store,
    pub(crate) queue: Queue,
    pub(crate) entropy: Entropy,
    pub(crate) plans: Arc<Plans>,
    pub(crate) options: Options,
    pub(crate) listeners: Vec<TraceSubscriber>,
    /// The actor of decisions about tasks through it.
    pub(crate) actor: Actor,
    /// Set while this process drives runs. The lock protects this slot alone and is held to look at it or to fill it.
    #[expect(clippy::disallowed_types, reason = "a wake comes from any thread and must not wait")]
    pub(crate) waker: Arc<Mutex<Option<Waker>>>,
    /// Receives the tasks that evaluations create; only the driver of one run sets it.
    pub(crate) created: Option<mpsc::UnboundedSender<Arc<Task>>>,
    /// How often runs were driven in this process.
    pub(crate) driven: Arc<AtomicU64>,
    /// Distinguishes this process from all others in the marks of runs.
    pub(crate) process: Arc<str>,
    pub(crate) watchdog: Arc<Watchdog>,
    /// Whether starts return with their first commit; otherwise they evaluate up to the fixed point.
    is_starting_only: bool,
}

impl Service {
    pub fn new(backend: Arc<dyn Backend>, tenant: Tenant) -> Self {
        Self::with_entropy(backend, tenant, Entropy::System)
    }

    /// For simulations, which want the same ids and secrets each time.
    pub fn with_entropy(backend: Arc<dyn Backend>, tenant: Tenant, entropy: Entropy) -> Self {
        let store = Store::new(backend, tenant);
        let limits = store.limits();
        // An iteration is committed whole even if it is over the budget, so half is left for the last one.
        let budget = Budget { writes: limits.batch_writes / 2, bytes: limits.batch_bytes / 4 };
        Self {
            queue: Queue::new(store.clone(), entropy.clone()),
            store,
            entropy,
            plans: Arc::default(),
            options: Options { budget, tracing: Tracing::LogsOnly },
            listeners: Vec::new(),
            actor: Actor::System,
            waker: Arc::default(),
            created: None,
            driven: Arc::default(),
            process: Entropy::System.secret().into(),
            watchdog: Arc::default(),
            is_starting_only: false,
        }
    }

    /// Its starts return with their first commit, so that the id of a run is known before a long evaluation. The
    /// caller drives the run further.
    #[must_use]
    pub fn starting_only(self) -> Self {
        Self { is_starting_only: true, ..self }
    }

    /// Sends the tasks that evaluations create to the driver of one run.
    pub(crate) fn creating(self, created: mpsc::UnboundedSender<Arc<Task>>) -> Self {
        Self { created: Some(created), ..self }
    }

    /// Whether this process drives a run after its first commit.
    pub(crate) fn is_driven_after_start(&self) -> bool {
        self.is_driven() || self.is_starting_only
    }

    /// The same service for one actor. The history of a task names the actor of each decision.
    #[must_use]
    pub fn acting_as(self, actor: Actor) -> Self {
        Self { actor, ..self }
    }

    /// The time by the store's clock, which judges leases, timers and the silence of servers.
    pub async fn now(&self) -> Result<Millis, Error> {
        Ok(self.store.now().await?)
    }

    /// The last step of that clock ahead of the time that passed, as far as this process has seen one.
    pub async fn clock_jump(&self) -> Result<Option<ClockJump>, Error> {
        Ok(self.store.clock().await?.jump)
    }

    pub(crate) fn collection<T: CollectionItem>(&self) -> Collection<T> {
        Collection::new(self.store.clone())
    }

    /// The records of one kind that a crate above this one stores beside the runs.
    pub fn extension<T: ExtensionItem>(&self) -> Collection<T> {
        self.collection()
    }

    pub fn locks(&self) -> Locks {
        Locks::new(self.store.clone())
    }

    /// An id that no other process has.
    pub fn fresh_id(&self) -> String {
        self.entropy.secret()
    }

    /// How often this process has driven a run to a fixed point.
    pub fn runs_driven(&self) -> u64 {
        self.driven.load(Ordering::Relaxed)
    }

    /// Wakes after a task of this list may be claimed.
    pub fn watch_tasks(&self, list: &str) -> Watch {
        self.store.watch(&afl_store::store::bucket::tasks(list, ""))
    }

    /// Wakes after a task may have made room for another of its facet: it has ended, or its next attempt is later.
    pub fn watch_room(&self) -> [Watch; 2] {
        use afl_store::store::bucket::{ARRIVED, TIMERS};
        [ARRIVED, TIMERS].map(|bucket| self.store.watch(bucket))
    }

    /// Wakes after a run changed its status.
    pub fn watch_runs(&self) -> Watch {
        self.store.watch(afl_store::store::bucket::RUNS)
    }
}

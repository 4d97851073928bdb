//! A service in memory, its runs, and workers for it.

use std::sync::Arc;
use std::time::Duration;

use afl_agents::worker::{Config, Profile, Worker};
use afl_runtime::server::Server;
use afl_runtime::{Millis, Service, StartRequest, compile};
use afl_store::backend::Backend;
use afl_store::clock::{Clock, SimClock};
use afl_store::collection::{Collection, CollectionItem};
use afl_store::memory::Memory;
use afl_store::record::Tenant;
use afl_store::store::Store;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::spy::{Hearing, Spy};

/// The example of document 000 §8.10.
pub(crate) const BILLING: &str = r#"
namespace billing {
    event facet ProcessPayment(amount: Double, currency: String) => (transaction_id: String, status: String)

    workflow Checkout(total: Double) => (receipt: String) andThen {
        payment = ProcessPayment(amount = $.total, currency = "USD")
        yield Checkout(receipt = payment.transaction_id)
    }
}
"#;

pub(crate) struct World {
    pub(crate) service: Service,
    pub(crate) clock: SimClock,
    pub(crate) spy: Arc<Spy>,
}

/// A worker at work; dropping `stop` ends it.
pub(crate) struct Working {
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) done: JoinHandle<()>,
}

impl Working {
    pub(crate) async fn stop(self) {
        drop(self.stop);
        self.done.await.unwrap();
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::over(Arc::new(Memory::new(Clock::System)))
    }

    pub(crate) fn over(store: Arc<dyn Backend>) -> Self {
        Self::spied(store, SimClock::new(Millis(0)), Hearing::Good)
    }

    /// The test advances its clock.
    pub(crate) fn simulated(hearing: Hearing) -> Self {
        let clock = SimClock::new(Millis(1_800_000_000_000));
        Self::spied(Arc::new(Memory::new(Clock::Simulated(clock.clone()))), clock, hearing)
    }

    fn spied(memory: Arc<dyn Backend>, clock: SimClock, hearing: Hearing) -> Self {
        let spy = Arc::new(Spy::new(memory, hearing));
        let service = Service::new(spy.clone(), Tenant::new(Tenant::LOCAL).unwrap());
        Self { service, clock, spy }
    }

    /// Below the service: the records themselves.
    pub(crate) fn store(&self) -> Store {
        Store::new(self.spy.clone(), Tenant::new(Tenant::LOCAL).unwrap())
    }

    pub(crate) fn collection<T: CollectionItem>(&self) -> Collection<T> {
        Collection::new(self.store())
    }

    /// Another process on the same store.
    pub(crate) fn restarted(&self) -> Self {
        let service = Service::new(self.spy.clone(), Tenant::new(Tenant::LOCAL).unwrap());
        Self { service, clock: self.clock.clone(), spy: self.spy.clone() }
    }

    /// Time passes for the store and for all that waits.
    pub(crate) async fn pass(&self, span_ms: u64) {
        self.clock.advance(Millis(i64::try_from(span_ms).unwrap()));
        tokio::time::advance(Duration::from_millis(span_ms)).await;
    }

    pub(crate) async fn start(&self, program: &str, inputs: Value) -> afl_runtime::RunId {
        let hash = self.service.publish(&compile("test.afl", program).unwrap()).await.unwrap();
        let inputs = inputs.as_object().unwrap().clone();
        self.service.start(StartRequest { inputs, ..StartRequest::new(hash) }).await.unwrap().run
    }

    pub(crate) async fn checkout(&self) -> afl_runtime::RunId {
        self.start(BILLING, json!({"total": 12.5})).await
    }

    pub(crate) fn worker(&self, profile: Profile) -> Worker {
        self.worker_with(profile, |_| {})
    }

    pub(crate) fn worker_with(&self, profile: Profile, configure: impl FnOnce(&mut Config)) -> Worker {
        let mut config = Config::of(profile);
        configure(&mut config);
        Worker::new(self.service.clone(), config).unwrap()
    }

    pub(crate) async fn receipt(&self, run: &afl_runtime::RunId) -> Value {
        self.service.ended(run).await.unwrap();
        self.service.outputs(run).await.unwrap()["receipt"].clone()
    }

    pub(crate) async fn servers(&self) -> Vec<Server> {
        let all = self.collection::<Server>().all().await.unwrap();
        all.into_iter().map(|(_, stored)| stored.item).collect()
    }

    pub(crate) async fn error(&self, run: &afl_runtime::RunId) -> String {
        let failure = self.service.ended(run).await.unwrap().error.expect("the run failed");
        format!("{}: {}", failure.path, failure.message)
    }
}

pub(crate) fn work(worker: &Worker) -> Working {
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = worker.clone();
    let done = tokio::spawn(async move {
        worker.start(async { stopped.await.unwrap_or_default() }).await.unwrap();
    });
    Working { stop, done }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else { panic!("{value} is no object") };
    object
}

pub(crate) fn paid() -> Map<String, Value> {
    object(json!({"transaction_id": "txn-12345", "status": "approved"}))
}

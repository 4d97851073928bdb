//! A small world for tests: memory, a clock that tests set, and agents that answer by name.

use std::sync::Arc;

use afl_engine::event::EventError;
use afl_engine::id::{RunId, StepId};
use afl_engine::run::{Run, RunStatus};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_runtime::agent::{Claim, ClaimRequest, FacetFilter};
use afl_runtime::doctor::Remedy;
use afl_runtime::{Service, StartRequest, compile};
use afl_store::backend::{Backend, Batch, Change, Durability, Expect, Write};
use afl_store::clock::{Clock, SimClock};
use afl_store::collection::{Collection, CollectionItem};
use afl_store::entropy::Entropy;
use afl_store::fault::{BackendCall, Fault, Faulty};
use afl_store::memory::Memory;
use afl_store::outbox::Outbox;
use afl_store::record::{Content, Key, Record, Tenant};
use afl_store::store::Store;
use serde_json::json;

/// Event facets that add, fail or are slow, and workflows of every shape over them.
pub(crate) const PROGRAM: &str = r#"
namespace t {
    event facet Inc(n: Long) => (n: Long)
    event facet Bad(n: Long) => (n: Long)
    event facet Tell(n: Long)
    facet Value(v: Long)

    workflow One(n: Long) => (n: Long)
        andThen {
            a = Inc(n = $.n)
            yield One(n = a.n)
        }

    workflow Two(n: Long) => (n: Long)
        andThen {
            a = Inc(n = $.n)
            b = Inc(n = a.n)
            yield Two(n = b.n)
        }

    workflow Fan(items: [Long]) => (sum: [Long])
        andThen foreach item in $.items {
            a = Inc(n = $.item)
            yield Fan(sum = [a.n])
        }

    workflow Pairs(items: [Long]) => (sum: [Long])
        andThen foreach item in $.items {
            a = Inc(n = $.item)
            b = Inc(n = a.n)
            yield Pairs(sum = [b.n])
        }

    workflow Risky(n: Long) => (n: Long)
        andThen {
            a = Inc(n = $.n)
            b = Bad(n = a.n)
            c = Inc(n = b.n)
            yield Risky(n = c.n)
        }

    workflow Retried(n: Long) => (n: Long)
        andThen {
            a = Bad(n = $.n) with Retry(max = 3)
            yield Retried(n = a.n)
        }

    event facet Pay(n: Long) => (n: Long) with Effect(kind = "once")

    workflow Once(n: Long) => (n: Long)
        andThen {
            a = Pay(n = $.n)
            yield Once(n = a.n)
        }

    workflow Timed(n: Long) => (n: Long)
        andThen {
            a = Inc(n = $.n) with Timeout(seconds = 10)
            yield Timed(n = a.n)
        }

    facet Guarded(n: Long) => (n: Long, error: String)
        andThen {
            a = Pay(n = $.n) with Timeout(seconds = 10)
            yield Guarded(n = a.n, error = "")
        } catch {
            yield Guarded(n = 0, error = $.error_type)
        }

    workflow OnceTimed(n: Long) => (n: Long, error: String)
        andThen {
            a = Guarded(n = $.n)
            yield OnceTimed(n = a.n, error = a.error)
        }

    workflow Later() => (at: String)
        andThen {
            a = afl.time.Wait(days = 3)
            yield Later(at = a.at)
        }

    workflow Dated(at: String) => (at: String)
        andThen {
            a = afl.time.Until(at = $.at)
            yield Dated(at = a.at)
        }

    workflow Told(n: Long) => (n: Long)
        andThen {
            a = Tell(n = $.n)
            b = Inc(n = $.n)
            yield Told(n = b.n)
        }

    workflow Pure(n: Long) => (n: Long)
        andThen {
            a = Value(v = $.n + 1)
            b = Value(v = a.v + 1)
            yield Pure(n = b.v)
        }
}
"#;

pub(crate) struct World {
    pub(crate) clock: SimClock,
    pub(crate) memory: Arc<Memory>,
    pub(crate) faulty: Arc<Faulty>,
    pub(crate) service: Service,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_faults(|_| Fault::None)
    }

    /// A world whose store fails as `faults` decides; [`World::restarted`] gives a sound one over the same memory.
    pub(crate) fn with_faults(faults: impl FnMut(BackendCall) -> Fault + Send + 'static) -> Self {
        let clock = SimClock::new(Millis(1_800_000_000_000));
        let memory = Arc::new(Memory::new(Clock::Simulated(clock.clone())));
        Self::over(clock, memory, faults)
    }

    /// A world whose memory knows what a power cut would take.
    pub(crate) fn with_power_cuts() -> Self {
        let clock = SimClock::new(Millis(1_800_000_000_000));
        let memory = Arc::new(Memory::new(Clock::Simulated(clock.clone())).with_power_cuts());
        Self::over(clock, memory, |_| Fault::None)
    }

    /// A new process over the same store.
    pub(crate) fn restarted(&self) -> Self {
        Self::over(self.clock.clone(), self.memory.clone(), |_| Fault::None)
    }

    fn over(
        clock: SimClock,
        memory: Arc<Memory>,
        plan: impl FnMut(BackendCall) -> Fault + Send + 'static,
    ) -> Self {
        let inner: Arc<dyn Backend> = memory.clone();
        let faulty = Arc::new(Faulty::new(inner, plan));
        let backend: Arc<dyn Backend> = faulty.clone();
        let service = Service::with_entropy(backend, Tenant::new(Tenant::LOCAL).unwrap(), Entropy::System);
        Self { clock, memory, faulty, service }
    }

    pub(crate) fn collection<T: CollectionItem>(&self) -> Collection<T> {
        Collection::new(self.store())
    }

    pub(crate) fn outbox(&self) -> Outbox {
        Outbox::new(self.store())
    }

    /// Below the service: the records themselves.
    pub(crate) fn store(&self) -> Store {
        Store::new(self.faulty.clone(), Tenant::new(Tenant::LOCAL).unwrap())
    }

    pub(crate) async fn request(&self, workflow: &str, inputs: Value) -> StartRequest {
        let hash = self.service.publish(&compile("t.afl", PROGRAM).unwrap()).await.unwrap();
        let inputs = inputs.as_object().unwrap().clone();
        StartRequest { workflow: Some(workflow.to_owned()), inputs, ..StartRequest::new(hash) }
    }

    pub(crate) async fn start(&self, workflow: &str, inputs: Value) -> RunId {
        let request = self.request(workflow, inputs).await;
        self.service.start(request).await.unwrap().run
    }

    pub(crate) async fn claim(&self, max: usize) -> Vec<Claim> {
        let request = ClaimRequest { max, ..ClaimRequest::new(FacetFilter::All, "agent") };
        self.service.claim(&request).await.unwrap()
    }

    /// Answers tasks and drives until no work is left. `t.Bad` fails.
    pub(crate) async fn finish(&self) {
        loop {
            let claims = self.claim(100).await;
            for claim in &claims {
                answer(&self.service, claim).await;
            }
            let driven = self.service.turn().await.unwrap();
            self.examine().await;
            if claims.is_empty() && driven == 0 {
                break;
            }
        }
    }

    /// Flips a bit of a stored record.
    pub(crate) async fn damage(&self, scope: &str, id: &str) {
        self.rewrite(scope, id, |content| content.body[20] ^= 1).await;
    }

    /// Changes a stored record without any process noticing.
    pub(crate) async fn rewrite(&self, scope: &str, id: &str, change: impl FnOnce(&mut Content)) {
        let key = Key { tenant: Tenant::new(Tenant::LOCAL).unwrap(), scope: scope.into(), id: id.to_owned() };
        let Record { key, version, mut content } = self.memory.get(&[key]).await.unwrap().remove(0).unwrap();
        change(&mut content);
        let write = Write { key, expect: Expect::Version(version), change: Change::Put(content) };
        let batch = Batch::new(vec![write], Durability::Durable);
        self.memory.commit(batch).await.unwrap();
    }

    /// Changes what a stored record says under a seal that fits, as after a mistake of the engine.
    pub(crate) async fn falsify(&self, scope: &str, id: &str, change: impl FnOnce(&mut Value)) {
        self.rewrite(scope, id, |content| {
            let mut body: Value = serde_json::from_slice(&content.body).unwrap();
            change(&mut body);
            content.body = serde_json::to_vec(&body).unwrap();
            content.seal.checksum = checksum(&[Tenant::LOCAL, scope, id], &content.body);
        })
        .await;
    }

    /// Deletes a stored record without any process noticing.
    pub(crate) async fn lose(&self, scope: &str, id: &str) {
        let key = Key { tenant: Tenant::new(Tenant::LOCAL).unwrap(), scope: scope.into(), id: id.to_owned() };
        let version = self.memory.get(std::slice::from_ref(&key)).await.unwrap()[0].as_ref().unwrap().version;
        let write = Write { key, expect: Expect::Version(version), change: Change::Delete };
        let batch = Batch::new(vec![write], Durability::Durable);
        self.memory.commit(batch).await.unwrap();
    }

    /// Every promise about stored data holds.
    pub(crate) async fn examine(&self) {
        let report = self.service.doctor(Remedy::Tell).await.unwrap();
        assert_eq!(report.findings, [], "the doctor finds nothing");
    }

    pub(crate) async fn run(&self, run: &RunId) -> Run {
        self.service.run(run).await.unwrap()
    }

    pub(crate) async fn status(&self, run: &RunId) -> RunStatus {
        self.run(run).await.status
    }

    pub(crate) async fn outputs(&self, run: &RunId) -> Value {
        Value::Object(self.service.outputs(run).await.unwrap())
    }

    pub(crate) async fn step(&self, run: &RunId, path: &str) -> StepId {
        self.service.find_step(run, path).await.unwrap()
    }
}

/// As a store seals its records.
fn checksum(key: &[&str], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in key {
        hasher.update(part.as_bytes());
        hasher.update(&[0xff]);
    }
    hasher.update(body);
    hasher.finalize()
}

pub(crate) fn inc(claim: &Claim) -> Map<String, Value> {
    let n = claim.payload["n"].as_i64().unwrap();
    json!({ "n": n + 1 }).as_object().unwrap().clone()
}

pub(crate) fn broken() -> EventError {
    EventError::new("Broken", "it broke")
}

pub(crate) async fn answer(service: &Service, claim: &Claim) {
    if claim.task.name.ends_with("Bad") {
        service.fail(&claim.ticket, &broken()).await.unwrap();
    } else {
        service.complete(&claim.ticket, &inc(claim)).await.unwrap();
    }
}

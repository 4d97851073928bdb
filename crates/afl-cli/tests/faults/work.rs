//! The program that the tests run, and an agent that does its work.

use std::time::Duration;

use afl_engine::event::EventError;
use afl_engine::id::RunId;
use afl_engine::run::RunStatus;
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_runtime::agent::{Claim, ClaimRequest, FacetFilter, Refusal, SettleResult};
use afl_runtime::doctor::Remedy;
use afl_runtime::{Error, Service, StartRequest, compile};
use serde_json::json;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

pub(crate) const PROGRAM: &str = r"
namespace t {
    event facet Inc(n: Long) => (n: Long)
    event facet Bad(n: Long) => (n: Long)
    event facet Echo(text: String) => (text: String)

    workflow Two(n: Long) => (n: Long)
        andThen {
            a = Inc(n = $.n)
            b = Inc(n = a.n)
            yield Two(n = b.n)
        }

    workflow Fan(items: [Long]) => (all: [Long])
        andThen foreach item in $.items {
            a = Inc(n = $.item)
            yield Fan(all = [a.n])
        }

    workflow Risky(n: Long) => (n: Long)
        andThen {
            a = Inc(n = $.n)
            b = Bad(n = a.n)
            yield Risky(n = b.n)
        }

    workflow Long(text: String) => (text: String)
        andThen {
            a = Echo(text = $.text)
            b = Echo(text = a.text)
            yield Long(text = b.text)
        }
}
";

/// Longer than anything takes, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A claim whose answer was lost comes back after it.
const LEASE: Millis = Millis(5_000);

pub(crate) async fn request(service: &Service, workflow: &str, inputs: Value) -> StartRequest {
    let hash = service.publish(&compile("t.afl", PROGRAM).unwrap()).await.unwrap();
    let inputs = inputs.as_object().unwrap().clone();
    StartRequest { workflow: Some(workflow.to_owned()), inputs, ..StartRequest::new(hash) }
}

pub(crate) async fn start(service: &Service, workflow: &str, inputs: Value) -> RunId {
    let request = request(service, workflow, inputs).await;
    service.start(request).await.unwrap().run
}

pub(crate) async fn claim(service: &Service, max: usize) -> Vec<Claim> {
    service.claim(&ClaimRequest { max, ..ClaimRequest::new(FacetFilter::All, "agent") }).await.unwrap()
}

pub(crate) fn result(claim: &Claim) -> Map<String, Value> {
    let result = match claim.payload.get("n") {
        Some(n) => json!({ "n": n.as_i64().unwrap() + 1 }),
        None => json!({ "text": claim.payload["text"] }),
    };
    result.as_object().unwrap().clone()
}

pub(crate) fn broken() -> EventError {
    EventError::new("Broken", "it broke")
}

pub(crate) async fn settle(service: &Service, claim: &Claim) -> Result<SettleResult, Refusal> {
    if claim.task.name.ends_with("Bad") {
        service.fail(&claim.ticket, &broken()).await
    } else {
        service.complete(&claim.ticket, &result(claim)).await
    }
}

/// Answers tasks and drives, until there is nothing to do.
pub(crate) async fn finish(service: &Service) {
    loop {
        let claims = claim(service, 100).await;
        for claim in &claims {
            settle(service, claim).await.unwrap();
        }
        if service.turn().await.unwrap() == 0 && claims.is_empty() {
            return;
        }
    }
}

/// A driver and an agent, until they are stopped; both live with a store that is away or full now and then.
pub(crate) struct Process {
    pub(crate) service: Service,
    /// How often the store failed the agent.
    troubles: watch::Receiver<usize>,
    stop: oneshot::Sender<()>,
    driver: JoinHandle<Result<(), Error>>,
    agent: JoinHandle<()>,
}

impl Process {
    pub(crate) fn new(service: Service) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (driving, working) = (service.clone(), service.clone());
        let driver = tokio::spawn(async move {
            let until = async { drop(stopped.await) };
            driving.serve(until).await
        });
        let (trouble, troubles) = watch::channel(0);
        let agent = Agent { service: working, trouble };
        Self { service, troubles, stop, driver, agent: tokio::spawn(agent.live()) }
    }

    /// Until the store has failed the agent.
    pub(crate) async fn troubled(&self) {
        let mut troubles = self.troubles.clone();
        let failing = troubles.wait_for(|troubles| *troubles > 0);
        tokio::time::timeout(PATIENCE, failing).await.expect("the store fails").unwrap();
    }

    pub(crate) async fn stop(self) {
        self.agent.abort();
        // It holds the store until it has ended.
        drop(self.agent.await);
        self.stop.send(()).expect("the driver runs until it is told");
        self.driver.await.unwrap().unwrap();
    }
}

struct Agent {
    service: Service,
    trouble: watch::Sender<usize>,
}

impl Agent {
    async fn live(self) {
        let mut tasks = self.service.watch_tasks("default");
        loop {
            let request =
                ClaimRequest { max: 64, lease: LEASE, ..ClaimRequest::new(FacetFilter::All, "agent") };
            match self.service.claim(&request).await {
                Ok(claims) if claims.is_empty() => {
                    drop(tokio::time::timeout(PATIENCE / 60, tasks.changed()).await);
                }
                Ok(claims) => {
                    for claim in claims {
                        self.tell(&claim).await;
                    }
                }
                Err(error) => self.bear(error).await,
            }
        }
    }

    /// Repeats the report until the store acknowledges it.
    async fn tell(&self, claim: &Claim) {
        loop {
            match settle(&self.service, claim).await {
                Ok(_) | Err(Refusal::LeaseLost { .. } | Refusal::Canceled { .. }) => return,
                Err(Refusal::Store(error)) => self.bear(error.into()).await,
                Err(refusal) => panic!("{refusal}"),
            }
        }
    }

    async fn bear(&self, error: Error) {
        use afl_store::backend::StoreError;
        let is_passing = matches!(
            error,
            Error::Unavailable(StoreError::Full | StoreError::Locked { .. } | StoreError::Unavailable { .. })
        );
        assert!(is_passing, "{error}");
        self.trouble.send_modify(|troubles| *troubles += 1);
        // Others run on this thread too.
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn ended(service: &Service, run: &RunId) -> RunStatus {
    let mut runs = service.watch_runs();
    let wait = async {
        loop {
            match service.run(run).await {
                Ok(record) if record.status.is_terminal() => return record.status,
                Ok(_) => drop(tokio::time::timeout(PATIENCE / 60, runs.changed()).await),
                Err(error) => assert!(error.is_uncertain(), "{error}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("the run ends")
}

pub(crate) async fn output(service: &Service, run: &RunId) -> Value {
    Value::Object(service.outputs(run).await.unwrap())
}

/// No promise is broken.
pub(crate) async fn examine(service: &Service) {
    let report = service.doctor(Remedy::Tell).await.unwrap();
    assert_eq!((report.findings, report.busy), (Vec::new(), Vec::new()));
}

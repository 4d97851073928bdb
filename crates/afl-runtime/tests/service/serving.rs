//! The driver's loops under tokio: wake-ups come, none is lost, it picks up what another left.

use std::sync::Arc;
use std::time::Duration;

use crate::world::{PROGRAM, World, answer};
use afl_engine::id::RunId;
use afl_engine::run::RunStatus;
use afl_engine::time::Millis;
use afl_runtime::agent::{ClaimRequest, FacetFilter};
use afl_runtime::{Error, Service, StateRefusal, compile};
use afl_store::backend::Backend;
use afl_store::clock::{Clock, SimClock};
use afl_store::fault::{BackendCall, BackendVerb, Fault, FaultMoment, Faulty};
use afl_store::memory::Memory;
use afl_store::record::Tenant;
use serde_json::json;
use tokio::sync::{Notify, Semaphore, oneshot};

/// A process over the store: a driver, until it is dropped.
struct Process {
    service: Service,
    stop: Option<oneshot::Sender<()>>,
    driver: tokio::task::JoinHandle<Result<(), Error>>,
}

impl Process {
    fn new(backend: &Arc<dyn Backend>) -> Self {
        let service = Service::new(Arc::clone(backend), Tenant::new(Tenant::LOCAL).unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let own = service.clone();
        let driver = tokio::spawn(async move {
            own.serve(async {
                drop(stopped.await);
            })
            .await
        });
        Self { service, stop: Some(stop), driver }
    }

    async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.driver.await.unwrap().unwrap();
    }
}

fn memory() -> Arc<dyn Backend> {
    Arc::new(Memory::new(Clock::System))
}

/// Answers tasks as they come.
async fn agent(service: Service) {
    let mut tasks = service.watch_tasks("default");
    loop {
        let request = ClaimRequest { max: 16, ..ClaimRequest::new(FacetFilter::All, "agent") };
        let claims = service.claim(&request).await.unwrap();
        if claims.is_empty() {
            tasks.changed().await;
        }
        for claim in claims {
            answer(&service, &claim).await;
        }
    }
}

async fn ended(service: &Service, run: &RunId) -> RunStatus {
    let ended = tokio::time::timeout(Duration::from_secs(20), service.ended(run)).await;
    ended.expect("the run ends").unwrap().status
}

async fn start(service: &Service, workflow: &str, inputs: serde_json::Value) -> RunId {
    let hash = service.publish(&compile("t.afl", PROGRAM).unwrap()).await.unwrap();
    let inputs = inputs.as_object().unwrap().clone();
    let request = afl_runtime::StartRequest {
        workflow: Some(workflow.to_owned()),
        inputs,
        ..afl_runtime::StartRequest::new(hash)
    };
    service.start(request).await.unwrap().run
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_runs_are_driven_to_their_end_at_once() {
    let process = Process::new(&memory());
    let working = tokio::spawn(agent(process.service.clone()));
    let mut runs = Vec::new();
    for n in 0..50 {
        runs.push(start(&process.service, "Two", json!({"n": n})).await);
    }
    runs.push(start(&process.service, "Fan", json!({"items": (0..200).collect::<Vec<i64>>()})).await);
    for run in &runs {
        assert_eq!(ended(&process.service, run).await, RunStatus::Completed);
    }
    assert_eq!(process.service.health().unwrap(), afl_runtime::Health::default());
    working.abort();
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_result_that_another_process_accepted_is_picked_up() {
    let store = memory();
    let driving = Process::new(&store);
    let other = Service::new(Arc::clone(&store), Tenant::new(Tenant::LOCAL).unwrap());
    let working = tokio::spawn(agent(other.clone()));
    let run = start(&other, "Two", json!({"n": 1})).await;
    assert_eq!(ended(&driving.service, &run).await, RunStatus::Completed);
    working.abort();
    driving.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn work_of_a_dead_process_is_picked_up_at_the_start() {
    let store = memory();
    let dead = Service::new(Arc::clone(&store), Tenant::new(Tenant::LOCAL).unwrap());
    let run = start(&dead, "One", json!({"n": 1})).await;
    let claims = dead.claim(&ClaimRequest::new(FacetFilter::All, "agent")).await.unwrap();
    answer(&dead, &claims[0]).await;
    drop(dead);
    let next = Process::new(&store);
    assert_eq!(ended(&next.service, &run).await, RunStatus::Completed);
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_drivers_of_one_store_do_not_harm_each_other() {
    let store = memory();
    let (one, two) = (Process::new(&store), Process::new(&store));
    let working = [tokio::spawn(agent(one.service.clone())), tokio::spawn(agent(two.service.clone()))];
    let mut runs = Vec::new();
    for n in 0..20 {
        let service = if n % 2 == 0 { &one.service } else { &two.service };
        runs.push(start(service, "Fan", json!({"items": [n, n + 1, n + 2]})).await);
    }
    for run in &runs {
        assert_eq!(ended(&one.service, run).await, RunStatus::Completed);
    }
    let report = one.service.doctor(afl_runtime::doctor::Remedy::Tell).await.unwrap();
    assert_eq!(report.findings, []);
    working.iter().for_each(tokio::task::JoinHandle::abort);
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn one_service_is_driven_once() {
    let process = Process::new(&memory());
    tokio::task::yield_now().await;
    let error = process.service.serve(async {}).await.unwrap_err();
    assert!(matches!(error, Error::Refused(StateRefusal::DrivenAlready)), "{error}");
    process.stop().await;
    World::new().finish().await;
}

#[tokio::test]
async fn a_service_can_be_driven_stopped_and_driven_again() {
    let service = Service::new(memory(), Tenant::new(Tenant::LOCAL).unwrap());
    for n in 0..3 {
        assert_eq!(service.health(), None, "nobody drives it");
        let (stop, stopped) = oneshot::channel::<()>();
        let own = service.clone();
        let driver = tokio::spawn(async move { own.serve(async { drop(stopped.await) }).await });
        let working = tokio::spawn(agent(service.clone()));
        let run = start(&service, "Two", json!({"n": n})).await;
        assert_eq!(ended(&service, &run).await, RunStatus::Completed);
        working.abort();
        drop(stop);
        driver.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_driver_that_was_dropped_at_work_leaves_room_for_the_next() {
    let process = Process::new(&memory());
    tokio::task::yield_now().await;
    assert!(process.service.health().is_some());
    process.driver.abort();
    process.driver.await.unwrap_err();
    process.service.serve(async {}).await.unwrap();
}

/// The driver's evaluation of one run takes so long that scans no longer reach back to the arrivals meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn work_that_arrives_during_a_long_evaluation_is_found_after_it() {
    let clock = SimClock::new(Millis(1_800_000_000_000));
    let memory: Arc<dyn Backend> = Arc::new(Memory::new(Clock::Simulated(clock.clone())));
    let (gate, closed) = (Arc::new(Semaphore::new(0)), Arc::new(Notify::new()));
    let slow = Arc::new({
        let (gate, closed) = (gate.clone(), closed.clone());
        Faulty::new(memory.clone(), |_| Fault::None).pausing(Arc::new(move || {
            let (gate, closed) = (gate.clone(), closed.clone());
            Box::pin(async move {
                closed.notify_one();
                gate.acquire().await.unwrap().forget();
            })
        }))
    });
    let other = Service::new(memory, Tenant::new(Tenant::LOCAL).unwrap());
    let backend: Arc<dyn Backend> = slow.clone();
    let driving = Process::new(&backend);
    let request = ClaimRequest { max: 2, ..ClaimRequest::new(FacetFilter::All, "agent") };
    let before = start(&other, "One", json!({"n": 1})).await;
    answer(&other, &other.claim(&request).await.unwrap()[0]).await;
    assert_eq!(ended(&driving.service, &before).await, RunStatus::Completed);

    let run = start(&other, "Fan", json!({"items": [1, 2]})).await;
    let claims = other.claim(&request).await.unwrap();
    let mut is_first = true;
    slow.plan(move |call: BackendCall| match call.verb {
        BackendVerb::Commit if std::mem::take(&mut is_first) => Fault::Delay(FaultMoment::Before),
        _ => Fault::None,
    });
    answer(&other, &claims[0]).await;
    closed.notified().await;
    answer(&other, &claims[1]).await;
    clock.advance(Millis(5_000));
    let later = start(&other, "One", json!({"n": 1})).await;
    answer(&other, &other.claim(&request).await.unwrap()[0]).await;
    assert_eq!(ended(&driving.service, &later).await, RunStatus::Completed);
    gate.add_permits(1);
    assert_eq!(ended(&driving.service, &run).await, RunStatus::Completed);
    driving.stop().await;
}

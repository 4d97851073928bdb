//! A worker's status over HTTP (document 000 §7.5).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afl_agents::handler::{Call, concurrent};
use afl_agents::worker::{
    Config, Profile, StatusServerError, Worker, WorkerError, WorkerEvent, WorkerPhase, reachable,
};
use afl_runtime::server::{Server, ServerState};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use crate::world::{Working, World, paid, work};

struct Answer {
    code: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

async fn ask(address: SocketAddr, method: &str, path: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: worker\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { code, head: head.to_lowercase(), body: body.to_owned() }
}

/// Does payments when it is let go on.
struct Slow {
    worker: Worker,
    told: mpsc::Receiver<WorkerEvent>,
    go: Arc<Notify>,
}

fn slow(world: &World, configure: impl FnOnce(&mut Config)) -> Slow {
    let (tell, told) = mpsc::channel(100);
    let worker = world.worker_with(Profile::Service, |config| {
        config.http_port = Some(0);
        configure(config);
    });
    let worker = worker.with_listener(tell);
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    worker.register(
        "billing.ProcessPayment",
        concurrent(move |call: Call| {
            let wait = wait.clone();
            async move {
                tokio::select! {
                    () = wait.notified() => Ok(paid()),
                    _ = call.context.stopped() => Ok(paid()),
                }
            }
        }),
    );
    Slow { worker, told, go }
}

impl Slow {
    async fn start(&mut self) -> (Working, SocketAddr) {
        let working = work(&self.worker);
        loop {
            match self.told.recv().await.expect("it runs") {
                WorkerEvent::Ready { http, .. } => return (working, http.expect("it has a port")),
                WorkerEvent::Began(_)
                | WorkerEvent::Ended { .. }
                | WorkerEvent::Handlers { .. }
                | WorkerEvent::Unfit(_)
                | WorkerEvent::ClockAhead { .. } => {}
            }
        }
    }

    async fn until(&mut self, is_it: impl Fn(&WorkerEvent) -> bool) {
        while !is_it(&self.told.recv().await.expect("it runs")) {}
    }
}

async fn recorded(world: &World, is_it: impl Fn(&Server) -> bool) -> Server {
    let mut changes = world.collection::<Server>().watch();
    loop {
        if let Some(server) = world.servers().await.into_iter().find(&is_it) {
            return server;
        }
        changes.changed().await;
    }
}

// covers: SDK-7.5-a, SDK-7.5-b
#[tokio::test]
async fn a_worker_reports_its_health_its_current_work_and_its_past_work() {
    let world = World::new();
    let mut slow = slow(&world, |_| {});
    let (working, address) = slow.start().await;
    let health = ask(address, "GET", "/health").await;
    assert_eq!((health.code, health.json()["state"].as_str()), (200, Some("running")));
    assert_eq!(recorded(&world, |_| true).await.http, Some(format!("http://{address}")));

    let run = world.checkout().await;
    slow.until(|told| matches!(told, WorkerEvent::Began(_))).await;
    let status = ask(address, "GET", "/status").await.json();
    assert_eq!(status["server_id"], slow.worker.server_id());
    assert_eq!((&status["state"], &status["phase"]), (&json!("running"), &json!("running")));
    assert_eq!(status["handlers"], json!(["billing.ProcessPayment"]));
    assert_eq!(status["max_concurrent"], 5);
    let current = &status["current"][0];
    assert_eq!((&current["path"], &current["run"]), (&json!("Checkout.payment"), &json!(run.to_string())));
    assert!(current["since"].as_i64().unwrap() > 0 && status["uptime_ms"].is_u64(), "{status}");

    slow.go.notify_one();
    slow.until(|told| matches!(told, WorkerEvent::Ended { .. })).await;
    assert_eq!(world.receipt(&run).await, "txn-12345");
    let statistics = &ask(address, "GET", "/status").await.json()["statistics"];
    assert_eq!(
        statistics["handled"]["billing.ProcessPayment"],
        json!({"completed": 1, "failed": 0, "lost": 0, "canceled": 0})
    );
    assert_eq!(statistics["claims"], 1);
    assert!(statistics["runs_driven"].as_u64().unwrap() >= 1);
    working.stop().await;
    assert!(TcpStream::connect(address).await.is_err(), "it ends with its worker");
}

#[tokio::test]
async fn metrics_count_finished_work_and_are_read_by_prometheus() {
    let world = World::new();
    let mut slow = slow(&world, |_| {});
    let (working, address) = slow.start().await;
    let run = world.checkout().await;
    slow.go.notify_one();
    slow.until(|told| matches!(told, WorkerEvent::Ended { .. })).await;
    assert_eq!(world.receipt(&run).await, "txn-12345");
    let metrics = ask(address, "GET", "/metrics").await;
    assert!(metrics.head.contains("application/openmetrics-text; version=1.0.0"), "{}", metrics.head);
    for line in [
        r#"afl_tasks_total{facet="billing.ProcessPayment",outcome="completed"} 1"#,
        r#"afl_tasks_total{facet="billing.ProcessPayment",outcome="lost"} 0"#,
        "afl_claims_total 1",
        "afl_tasks_in_work 0",
        "afl_slots 5",
        "afl_task_seconds_count 1",
        "afl_settle_seconds_count 1",
        r#"afl_settle_seconds_bucket{le="+Inf"} 1"#,
        "afl_evaluation_lag_seconds 0.0",
    ] {
        assert!(metrics.body.lines().any(|found| found == line), "no `{line}` in\n{}", metrics.body);
    }
    let value = |name: &str| -> f64 {
        let line = metrics.body.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(value("afl_runs_driven_total") >= 1.0);
    assert!(value("process_resident_memory_bytes") > 1e6);
    assert!(value("process_cpu_seconds_total") > 0.0);
    assert!(metrics.body.ends_with("# EOF\n"));
    working.stop().await;
}

#[tokio::test]
async fn other_paths_and_methods_are_refused() {
    let world = World::new();
    let mut slow = slow(&world, |_| {});
    let (working, address) = slow.start().await;
    assert_eq!(ask(address, "GET", "/").await.code, 404);
    assert_eq!(ask(address, "GET", "/health/x").await.code, 404);
    let head = ask(address, "HEAD", "/health").await;
    assert_eq!((head.code, head.body.as_str()), (200, ""));
    let post = ask(address, "POST", "/status").await;
    assert_eq!(post.code, 405);
    assert!(post.head.contains("allow: get,head"), "{}", post.head);
    working.stop().await;
}

#[tokio::test]
async fn the_status_shows_each_phase_of_a_shutdown_while_it_lasts() {
    let world = World::new();
    let mut slow = slow(&world, |_| {});
    let (working, address) = slow.start().await;
    let run = world.checkout().await;
    slow.until(|told| matches!(told, WorkerEvent::Began(_))).await;
    drop(working.stop);
    recorded(&world, |server| server.state == ServerState::Shutdown).await;
    let health = ask(address, "GET", "/health").await;
    assert_eq!((health.code, health.json()["phase"].as_str()), (503, Some("draining")));
    let status = ask(address, "GET", "/status").await.json();
    assert_eq!(
        (&status["state"], &status["current"][0]["path"]),
        (&json!("shutdown"), &json!("Checkout.payment"))
    );
    slow.go.notify_one();
    working.done.await.unwrap();
    assert_eq!(slow.worker.phase(), WorkerPhase::Ended);
    world.service.turn().await.unwrap();
    assert_eq!(world.receipt(&run).await, "txn-12345", "what was begun is finished");
}

// covers: SDK-7.5-c
#[tokio::test]
async fn a_port_that_is_taken_is_passed_over_and_only_so_many_are_tried() {
    let world = World::new();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut next = slow(&world, |config| config.http_port = Some(port));
    let (working, address) = next.start().await;
    assert!((port + 1..port + 20).contains(&address.port()), "{port} {address}");
    let one_try = slow(&world, |config| {
        config.http_port = Some(port);
        config.http_max_port_attempts = 1;
    });
    let refused = one_try.worker.start(async {}).await.unwrap_err();
    assert!(
        matches!(refused, WorkerError::Http(StatusServerError::NoPort { first, last, .. }) if first == port && last == port),
        "{refused}"
    );
    assert_eq!(world.servers().await.len(), 1, "a worker that cannot begin is no server");
    working.stop().await;
}

#[tokio::test]
async fn only_the_service_serves_its_status_by_default() {
    let world = World::new();
    for profile in [Profile::Registry, Profile::Poller] {
        let (tell, mut told) = mpsc::channel(10);
        let worker = world.worker(profile).with_listener(tell);
        let working = work(&worker);
        assert!(matches!(told.recv().await, Some(WorkerEvent::Ready { http: None, .. })));
        assert_eq!(worker.http_address(), None);
        working.stop().await;
    }
}

/// The clock of the runtime advances when all tasks wait.
#[tokio::test(start_paused = true)]
async fn clients_with_partial_requests_are_disconnected_and_block_others_only_briefly() {
    let world = World::new();
    let mut slow = slow(&world, |_| {});
    let (working, address) = slow.start().await;
    let mut halves = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: wor").await.unwrap();
        halves.push(stream);
    }
    let health = timeout(Duration::from_mins(1), ask(address, "GET", "/health")).await.unwrap();
    assert_eq!(health.code, 200);
    let mut rest = Vec::new();
    let closed = timeout(Duration::from_mins(1), halves[0].read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "it was hung up on");
    working.stop().await;
}

#[test]
fn a_worker_that_listens_on_all_addresses_is_found_by_the_name_of_its_machine() {
    let machine = Config::of(Profile::Service).server_name;
    for (bound, told) in [
        ("127.0.0.1:8080", "http://127.0.0.1:8080".to_owned()),
        ("[::1]:8080", "http://[::1]:8080".to_owned()),
        ("0.0.0.0:8080", format!("http://{machine}:8080")),
        ("[::]:8080", format!("http://{machine}:8080")),
    ] {
        assert_eq!(reachable(bound.parse().unwrap()), told);
    }
}

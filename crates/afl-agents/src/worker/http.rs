//! The status of a worker over HTTP (document 000 §7.5): whether it runs, what it does, and numbers for Prometheus.

use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::config::{Config, host_name};
use super::rounds::ended;
use super::{Worker, WorkerPhase, metrics};

/// How many connections are served at once; a further one waits for one of them.
const CONNECTIONS: usize = 64;
/// A connection serves one request, and stays open no longer than this: a slow client blocks no other.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// How long an answer that is under way may take when the worker has ended.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// How long to leave a listener alone that has no file for another connection.
const NOT_ACCEPTED: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
pub enum StatusServerError {
    #[error("no port from {first} to {last} of {host} is free for the status of the worker")]
    NoPort { host: IpAddr, first: u16, last: u16 },
    #[error("cannot serve the status of the worker on {address}: {source}")]
    Refused { address: SocketAddr, source: Error },
}

/// The first free port, if a port is wanted at all.
pub(super) async fn listen(config: &Config) -> Result<Option<TcpListener>, StatusServerError> {
    let Some(first) = config.http_port else { return Ok(None) };
    let host = config.http_host;
    let last = match first {
        // The system chooses a free one.
        0 => 0,
        first => first.saturating_add(config.http_max_port_attempts.saturating_sub(1)),
    };
    for port in first..=last {
        let address = SocketAddr::new(host, port);
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(Some(listener)),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(source) => return Err(StatusServerError::Refused { address, source }),
        }
    }
    Err(StatusServerError::NoPort { host, first, last })
}

impl Worker {
    /// Answers until `stopped` turns true.
    pub(super) async fn answer(&self, listener: Option<TcpListener>, stopped: watch::Receiver<bool>) {
        let Some(listener) = listener else { return };
        let router = Router::new()
            .route("/health", get(health))
            .route("/status", get(status))
            .route("/metrics", get(metrics))
            .with_state(self.clone());
        let slots = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        let mut stopped = std::pin::pin!(ended(stopped));
        loop {
            let accepted = async {
                let slot = slots.clone().acquire_owned().await.expect("it is never closed");
                (slot, listener.accept().await)
            };
            let (slot, accepted) = tokio::select! {
                () = &mut stopped => break,
                accepted = accepted => accepted,
            };
            match accepted {
                Ok((stream, _)) => drop(connections.spawn(converse(stream, router.clone(), slot))),
                Err(_) => sleep(NOT_ACCEPTED).await,
            }
            while connections.try_join_next().is_some() {}
        }
        drop(listener);
        let last = async { while connections.join_next().await.is_some() {} };
        // A client that holds its connection open does not hold the worker up.
        drop(timeout(LAST_ANSWERS, last).await);
    }

    /// The body of `/status`.
    pub fn status(&self) -> Value {
        let (config, counts, phase) = (self.config(), self.counts(), self.phase());
        let driver = self.service.health();
        json!({
            "server_id": self.server_id(),
            "server_name": config.server_name,
            "server_group": config.server_group,
            "service_name": config.service_name,
            "profile": config.profile,
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "state": phase.state(),
            "phase": phase,
            "uptime_ms": u64::try_from(self.uptime().as_millis()).unwrap_or(u64::MAX),
            "task_lists": config.task_lists,
            "topics": config.topics,
            "handlers": self.registered_names(),
            "max_concurrent": config.max_concurrent,
            "current": counts.current.values().collect::<Vec<_>>(),
            "statistics": {
                "handled": counts.handled,
                "claims": counts.claims,
                "runs_driven": self.service.runs_driven(),
            },
            "driver": driver.map(|driver| json!({
                "trouble": driver.trouble,
                "quarantined": driver.quarantined,
            })),
        })
    }
}

/// One request and its response. The client notices a failure itself.
async fn converse(stream: TcpStream, router: Router, slot: OwnedSemaphorePermit) {
    let connection = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    drop(timeout(ANSWERED_WITHIN, connection).await);
    drop(slot);
}

/// The address for other processes: a worker that listens on all addresses uses the name of its machine.
pub fn reachable(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("http://{}:{}", host_name(), address.port())
    } else {
        format!("http://{address}")
    }
}

async fn health(State(worker): State<Worker>) -> impl IntoResponse {
    let phase = worker.phase();
    let is_up = phase == WorkerPhase::Running;
    let code = if is_up { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, [(header::CONTENT_TYPE, JSON)], json!({"state": phase.state(), "phase": phase}).to_string())
}

async fn status(State(worker): State<Worker>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, JSON)], worker.status().to_string())
}

async fn metrics(State(worker): State<Worker>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], metrics::text(&worker).await)
}

const JSON: &str = "application/json";

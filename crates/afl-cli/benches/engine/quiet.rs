//! A store at rest: the latency of a pick-up, idling, getting ready, and one large run alone.

use std::collections::HashMap;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::agent;
use crate::case::{AgentAt, SETTLE};
use crate::child::{Other, Role};
use crate::ground::Ground;
use crate::load::{self, Load};
use crate::place::{BenchStoreKind, Opened};

/// Long enough for everything to have gone to sleep.
const PAUSE: Duration = Duration::from_millis(12);
const STARTS: usize = 10;

#[derive(Clone, Debug)]
pub(crate) struct PickUp {
    pub(crate) kind: BenchStoreKind,
    pub(crate) agent: AgentAt,
    /// From the start that was acknowledged to the task in the agent's hands, in order.
    waits: Vec<Duration>,
}

impl PickUp {
    pub(crate) async fn measure(
        kind: BenchStoreKind,
        agent: AgentAt,
        samples: usize,
        ground: &Ground,
    ) -> Self {
        let address = ground.fresh(kind).await;
        let opened = Opened::at(&address).await;
        let request = load::prepare(&opened.service, Load::Singles { runs: 1, in_flight: 1 }).await;
        let service = opened.service.clone();
        let driver = tokio::spawn(async move { service.serve(std::future::pending()).await });
        let (picks, mut picked) = mpsc::unbounded_channel();
        let (here, elsewhere) = match agent {
            AgentAt::Here => (Some(tokio::spawn(agent::work(opened.service.clone(), Some(picks)))), None),
            AgentAt::Elsewhere => (None, Some(Other::start(Role::Agent, &address, 0).await)),
        };
        sleep(SETTLE).await;
        let mut started = HashMap::new();
        for _ in 0..samples {
            let run = opened.service.start(request.clone()).await.expect("the run starts").run;
            started.insert(run.to_string(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
            opened.counted.ended(1).await;
            sleep(PAUSE).await;
        }
        driver.abort();
        here.inspect(tokio::task::JoinHandle::abort);
        let mut told = Vec::new();
        if let Some(mut other) = elsewhere {
            told = other.tell().await.picked;
            other.stop().await;
        }
        while let Ok((run, at)) = picked.try_recv() {
            told.push((run, at.duration_since(UNIX_EPOCH).unwrap_or_default()));
        }
        let mut waits: Vec<Duration> =
            told.iter().filter_map(|(run, at)| Some(at.saturating_sub(*started.get(run)?))).collect();
        waits.sort_unstable();
        Self { kind, agent, waits }
    }

    pub(crate) fn percentile_ms(&self, percent: usize) -> f64 {
        let at = (self.waits.len() * percent / 100).min(self.waits.len().saturating_sub(1));
        self.waits.get(at).map_or(f64::NAN, |wait| wait.as_secs_f64() * 1e3)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "store": self.kind,
            "agent": match self.agent { AgentAt::Here => "in process", AgentAt::Elsewhere => "another process" },
            "p50Ms": self.percentile_ms(50),
            "p99Ms": self.percentile_ms(99),
        })
    }
}

/// A process that drives a store in which nothing happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    pub(crate) kind: BenchStoreKind,
    pub(crate) queries_per_second: f64,
    pub(crate) resident_bytes: u64,
    pub(crate) cpu_ms_per_second: f64,
    /// The shortest of several starts.
    pub(crate) ready_after: Duration,
}

impl Idle {
    pub(crate) async fn measure(kind: BenchStoreKind, span: Duration, ground: &Ground) -> Self {
        let address = ground.fresh(kind).await;
        drop(Opened::at(&address).await);
        let mut ready_after = Duration::MAX;
        for _ in 0..STARTS {
            let server = Other::start(Role::Server, &address, 0).await;
            ready_after = ready_after.min(server.ready_after);
            server.stop().await;
        }
        let mut server = Other::start(Role::Server, &address, 0).await;
        sleep(SETTLE).await;
        let before = server.tell().await.spent;
        sleep(span).await;
        let told = server.tell().await;
        server.stop().await;
        let spent = told.spent.since(before);
        Self {
            kind,
            queries_per_second: (spent.calls.all() + spent.looks) as f64 / span.as_secs_f64(),
            resident_bytes: told.resident_bytes,
            cpu_ms_per_second: spent.cpu.as_secs_f64() * 1e3 / span.as_secs_f64(),
            ready_after,
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "store": self.kind,
            "queriesPerSecond": self.queries_per_second,
            "residentBytes": self.resident_bytes,
            "cpuMsPerSecond": self.cpu_ms_per_second,
            "readyMs": self.ready_after.as_secs_f64() * 1e3,
        })
    }
}

/// One run of very many steps in a process of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Large {
    pub(crate) kind: BenchStoreKind,
    pub(crate) steps: usize,
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    pub(crate) peak_bytes: u64,
}

impl Large {
    pub(crate) async fn measure(kind: BenchStoreKind, steps: usize, ground: &Ground) -> Self {
        let address = ground.fresh(kind).await;
        let mut other = Other::start(Role::Large, &address, steps).await;
        let (wall, told) = (other.ready_after, other.tell().await);
        other.stop().await;
        Self { kind, steps, wall, cpu: told.spent.cpu, peak_bytes: told.peak_bytes }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "store": self.kind,
            "steps": self.steps,
            "seconds": self.wall.as_secs_f64(),
            "cpuMs": self.cpu.as_secs_f64() * 1e3,
            "peakBytes": self.peak_bytes,
        })
    }
}

/// How soon the command line says its first word, the shortest of several times.
pub(crate) fn command_ready() -> Duration {
    let time = |_| {
        let start = Instant::now();
        let output = Command::new(env!("CARGO_BIN_EXE_afl")).arg("--version").output();
        output.expect("the command starts");
        start.elapsed()
    };
    (0..STARTS).map(time).min().unwrap_or_default()
}

//! One measurement: a load on a fresh store, with its agent in this process or in another.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::agent;
use crate::child::{Other, Role};
use crate::ground::{Ground, ServerSpent};
use crate::load::{self, Load};
use crate::place::{BenchStoreKind, Opened, Spent};
use crate::raw::Limits;

/// Until a driver has looked at everything, as it does when it starts.
pub(crate) const SETTLE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AgentAt {
    Here,
    Elsewhere,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) load: Load,
    pub(crate) agent: AgentAt,
}

#[derive(Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) kind: BenchStoreKind,
    pub(crate) case: Case,
    /// How often it was measured.
    rounds: usize,
    /// The cost of a step in the best round, in the database too.
    pub(crate) least_cpu_ms_per_step: f64,
    pub(crate) wall: Duration,
    pub(crate) spent: Spent,
    pub(crate) server: ServerSpent,
    /// The speed of the disk and of the bare database at that time.
    pub(crate) limits: Limits,
}

impl Case {
    pub(crate) const fn here(load: Load) -> Self {
        Self { load, agent: AgentAt::Here }
    }

    pub(crate) fn name(self) -> String {
        let elsewhere = match self.agent {
            AgentAt::Here => "",
            AgentAt::Elsewhere => ", agent apart",
        };
        match self.load {
            Load::Chain { steps } => format!("chain of {steps} pure steps"),
            Load::Sequence { events } => format!("sequence of {events} events{elsewhere}"),
            Load::Fan { events } => format!("foreach of {events} events{elsewhere}"),
            Load::Singles { runs, in_flight } => {
                format!("{runs} one-event runs, {in_flight} in flight{elsewhere}")
            }
            Load::Wide { steps } => format!("foreach of {steps} pure steps"),
        }
    }

    pub(crate) async fn measure(self, kind: BenchStoreKind, ground: &Ground) -> Measured {
        let before = ground.limits(kind).await;
        let measured = self.measure_alone(kind, ground).await;
        Measured { limits: before.mean(ground.limits(kind).await), ..measured }
    }

    async fn measure_alone(self, kind: BenchStoreKind, ground: &Ground) -> Measured {
        let address = ground.fresh(kind).await;
        let opened = Opened::at(&address).await;
        let request = load::prepare(&opened.service, self.load).await;
        let driver = {
            let service = opened.service.clone();
            tokio::spawn(async move { service.serve(std::future::pending()).await })
        };
        let (here, mut elsewhere) = match self.agent {
            AgentAt::Here => (Some(tokio::spawn(agent::work(opened.service.clone(), None))), None),
            AgentAt::Elsewhere => (None, Some(Other::start(Role::Agent, &address, 0).await)),
        };
        sleep(SETTLE).await;
        let server = ground.server_spent(kind).await;
        let before = spent(&opened, elsewhere.as_mut()).await;
        let start = Instant::now();
        load::drive(&opened, self.load, &request).await;
        let wall = start.elapsed();
        let spent = spent(&opened, elsewhere.as_mut()).await.since(before);
        let server = ground.server_spent(kind).await.since(server);
        driver.abort();
        here.inspect(tokio::task::JoinHandle::abort);
        if let Some(other) = elsewhere {
            other.stop().await;
        }
        drop(opened);
        ground.forget(&address).await;
        let cpu_ms = (spent.cpu + server.cpu).as_secs_f64() * 1e3;
        Measured {
            kind,
            case: self,
            rounds: 1,
            least_cpu_ms_per_step: cpu_ms / self.load.steps() as f64,
            wall,
            spent,
            server,
            limits: Limits::default(),
        }
    }
}

async fn spent(opened: &Opened, other: Option<&mut Other>) -> Spent {
    match other {
        None => opened.spent(),
        Some(other) => opened.spent().with(other.tell().await.spent),
    }
}

impl Measured {
    /// All rounds of both.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            rounds: self.rounds + other.rounds,
            least_cpu_ms_per_step: self.least_cpu_ms_per_step.min(other.least_cpu_ms_per_step),
            wall: self.wall + other.wall,
            spent: self.spent.with(other.spent),
            server: self.server.with(other.server),
            limits: self.limits.mean(other.limits),
            ..self
        }
    }

    pub(crate) fn runs(&self) -> f64 {
        (self.rounds * self.case.load.runs()) as f64
    }

    pub(crate) fn steps(&self) -> f64 {
        (self.rounds * self.case.load.steps()) as f64
    }

    pub(crate) fn rate(&self) -> f64 {
        self.steps() / self.wall.as_secs_f64()
    }

    pub(crate) fn cpu_ms(&self) -> f64 {
        self.spent.cpu.as_secs_f64() * 1e3
    }

    /// How many processors it kept busy, those of the database too. A faster disk changes nothing where this is near the
    /// number of processors, or near one for a sequential load.
    pub(crate) fn busy(&self) -> f64 {
        (self.spent.cpu + self.server.cpu).as_secs_f64() / self.wall.as_secs_f64()
    }

    pub(crate) fn written_bytes(&self) -> f64 {
        (self.spent.written_bytes + self.server.written_bytes) as f64
    }

    pub(crate) fn json(&self) -> Value {
        let Spent { calls, syncs, transactions, .. } = self.spent;
        json!({
            "store": self.kind,
            "case": self.case.name(),
            "runs": self.rounds * self.case.load.runs(),
            "steps": self.rounds * self.case.load.steps(),
            "seconds": self.wall.as_secs_f64(),
            "stepsPerSecond": self.rate(),
            "cpuMs": self.cpu_ms(),
            "cpuMsPerRun": self.cpu_ms() / self.runs(),
            "cpuMsPerStep": self.cpu_ms() / self.steps(),
            "serverCpuMs": self.server.cpu.as_secs_f64() * 1e3,
            "processorsBusy": self.busy(),
            "commits": calls.commits,
            "durableCommits": calls.durable_commits,
            "takes": calls.takes,
            "reads": calls.reads,
            "transactions": transactions,
            "fsyncs": syncs,
            "writtenBytes": self.written_bytes(),
            "limitsPerSecond": self.limits,
        })
    }
}

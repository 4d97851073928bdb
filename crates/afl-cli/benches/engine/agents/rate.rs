//! Tasks a second, from the start of a run to its end.

use std::time::{Duration, Instant};

use afl_agents::handler::concurrent;
use afl_agents::worker::{Config, Profile, Worker};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::process::Agent;
use super::work::AgentWork;
use crate::ground::Ground;
use crate::place::{BenchStoreKind, Opened};
use crate::usage;

/// The processes that do the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Crew {
    /// A worker of this process, with a function as its handler.
    Here { slots: usize },
    /// So many `afl agent`, this process only starts the run.
    Processes { count: usize, slots: usize },
}

/// So that interpreters, connections and statements are ready.
const WARM_UP: usize = 100;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) crew: Crew,
    pub(crate) work: AgentWork,
    tasks: usize,
    wall: Duration,
    cpu: Duration,
    server_cpu: Duration,
}

pub(crate) fn name(crew: Crew, work: AgentWork) -> String {
    match crew {
        Crew::Here { slots } => format!("{}, in process, {slots} at once", work.name()),
        Crew::Processes { count: 1, slots } => format!("{}, one agent process, {slots} at once", work.name()),
        Crew::Processes { count, slots } => {
            format!("{}, {count} agent processes, {slots} at once each", work.name())
        }
    }
}

impl Rate {
    pub(crate) async fn measure(
        kind: BenchStoreKind,
        crew: Crew,
        work: AgentWork,
        tasks: usize,
        ground: &Ground,
    ) -> Self {
        let address = ground.fresh(kind).await;
        let opened = Opened::at(&address).await;
        let folders: Vec<TempDir> = std::iter::repeat_with(|| tempfile::tempdir().expect("a folder"))
            .take(crew.processes())
            .collect();
        let mut agents = Vec::new();
        for folder in &folders {
            agents.push(Agent::start(&address, folder.path(), crew.slots()).await);
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = (crew.processes() == 0).then(|| worker(&opened, crew.slots(), stopped));
        work.run(&opened.service, WARM_UP).await;
        let cpu = || usage::cpu() + agents.iter().map(Agent::cpu).sum::<Duration>();
        let before = (ground.server_spent(kind).await, cpu());
        let start = Instant::now();
        work.run(&opened.service, tasks).await;
        let wall = start.elapsed();
        let (cpu, server) = (cpu(), ground.server_spent(kind).await);
        drop(stop);
        if let Some(worker) = worker {
            worker.await.expect("the worker ends well");
        }
        for agent in agents {
            agent.stop().await;
        }
        let server_cpu = server.since(before.0).cpu;
        Self { crew, work, tasks, wall, cpu: cpu.saturating_sub(before.1), server_cpu }
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.tasks as f64 / self.wall.as_secs_f64()
    }

    /// Processors that were busy, those of the database too.
    pub(crate) fn busy(&self) -> f64 {
        (self.cpu + self.server_cpu).as_secs_f64() / self.wall.as_secs_f64()
    }

    pub(crate) fn cpu_ms_per_task(&self) -> f64 {
        (self.cpu + self.server_cpu).as_secs_f64() * 1e3 / self.tasks as f64
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "tasks": self.tasks,
            "seconds": self.wall.as_secs_f64(),
            "tasksPerSecond": self.per_second(),
            "cpuMsPerTask": self.cpu_ms_per_task(),
            "processorsBusy": self.busy(),
        })
    }
}

/// Works until the other end of the channel is gone.
fn worker(opened: &Opened, slots: usize, stopped: oneshot::Receiver<()>) -> tokio::task::JoinHandle<()> {
    let config = Config { max_concurrent: slots, ..Config::of(Profile::Poller) };
    let worker = Worker::new(opened.service.clone(), config).expect("a good configuration");
    worker.register("bench.Echo", concurrent(|call| async move { Ok(call.payload) }));
    tokio::spawn(async move {
        // A dropped sender asks it to stop, as a message does.
        let until = async { stopped.await.unwrap_or_default() };
        worker.start(until).await.expect("the worker ends well");
    })
}

impl Crew {
    pub(crate) const fn processes(self) -> usize {
        match self {
            Self::Here { .. } => 0,
            Self::Processes { count, .. } => count,
        }
    }

    const fn slots(self) -> usize {
        match self {
            Self::Here { slots } | Self::Processes { slots, .. } => slots,
        }
    }
}

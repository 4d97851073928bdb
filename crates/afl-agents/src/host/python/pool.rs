//! The warm Python processes of one environment.

use std::mem;
#[expect(
    clippy::disallowed_types,
    reason = "a worker is put back from Drop-like places, and held for a push or a scan"
)]
use std::sync::Mutex;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{self, Instant};

use super::interpreter::Interpreter;
use super::module::ModuleVersion;
use super::process::PythonProcess;
use super::{PythonConfig, texts};
use crate::handler::{Context, HandlerFailure, Object};
use crate::process::{Guardian, pass};
use crate::roots::Roots;

#[derive(Debug)]
pub(super) struct PythonPool {
    pub(super) interpreter: Interpreter,
    hello: Value,
    config: PythonConfig,
    guardian: Arc<Guardian>,
    busy: Arc<Semaphore>,
    #[expect(clippy::disallowed_types, reason = "protects the list alone; no await while it is held")]
    idle: Mutex<IdleProcesses>,
}

#[derive(Debug, Default)]
struct IdleProcesses {
    /// The one used last is at the end, and goes first: the others may cool down.
    workers: Vec<PythonProcess>,
    has_sweeper: bool,
}

/// Handlers leak; after so many calls a process has earned a fresh start.
const MAX_CALLS: u32 = 10_000;

impl PythonPool {
    pub(super) fn new(
        interpreter: Interpreter,
        config: PythonConfig,
        roots: &Roots,
        guardian: Arc<Guardian>,
    ) -> Arc<Self> {
        // Where `import` looks first.
        let folders: Vec<_> = roots.folders().iter().map(|folder| folder.to_string_lossy()).collect();
        let folders = Object::from_iter([("folders".to_owned(), json!(folders))]);
        Arc::new(Self {
            interpreter,
            hello: texts::hello(texts::HOST, folders),
            guardian,
            busy: Arc::new(Semaphore::new(config.workers)),
            config,
            idle: IdleProcesses::default().into(),
        })
    }

    /// The right to keep one process busy.
    pub(super) async fn enter(&self) -> OwnedSemaphorePermit {
        self.busy.clone().acquire_owned().await.expect("never closed")
    }

    pub(super) async fn start(&self, context: &Context) -> Result<PythonProcess, HandlerFailure> {
        let mut command = Command::new(&self.interpreter.program);
        command.env_clear().envs(pass(&self.config.pass_variables));
        command.envs(self.interpreter.folder.iter().map(|folder| ("VIRTUAL_ENV", folder)));
        PythonProcess::start(&mut command, &self.hello, &self.guardian, context).await
    }

    pub(super) fn put_back(self: &Arc<Self>, mut worker: PythonProcess) {
        if worker.calls >= MAX_CALLS {
            tokio::spawn(worker.retire());
            return;
        }
        worker.idle_since = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.workers.push(worker);
        if !mem::replace(&mut idle.has_sweeper, true) {
            tokio::spawn(sweep(Arc::downgrade(self), self.config.idle_for));
        }
    }

    /// Ends those that are idle; each may clean up.
    pub(super) async fn close(&self) {
        let idle = mem::take(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner).workers);
        join_all(idle.into_iter().map(PythonProcess::retire)).await;
    }

    /// An idle process that has no other version of the module loaded, best one that has this.
    pub(super) fn take_idle(&self, uri: &str, version: ModuleVersion) -> Option<PythonProcess> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let loaded = |worker: &PythonProcess| worker.loaded.get(uri).copied();
            let workers = &mut idle.workers;
            let warm = workers.iter().rposition(|worker| loaded(worker) == Some(version));
            let found = warm.or_else(|| workers.iter().rposition(|worker| loaded(worker).is_none()));
            let mut worker = workers.remove(found?);
            if !worker.group.try_reap() {
                return Some(worker);
            }
        }
    }

    /// Takes out those that were idle for too long; says when the next will have been.
    fn expired(&self) -> (Vec<PythonProcess>, Option<Instant>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let (expired, kept): (Vec<_>, Vec<_>) = mem::take(&mut idle.workers)
            .into_iter()
            .partition(|worker| worker.idle_since + self.config.idle_for <= now);
        idle.workers = kept;
        let next = idle.workers.iter().map(|worker| worker.idle_since + self.config.idle_for).min();
        idle.has_sweeper = next.is_some();
        (expired, next)
    }
}

async fn sweep(pool: Weak<PythonPool>, idle_for: Duration) {
    let mut next = Instant::now() + idle_for;
    loop {
        time::sleep_until(next).await;
        let Some(pool) = pool.upgrade() else { return };
        let (expired, soonest) = pool.expired();
        drop(pool);
        for worker in expired {
            worker.retire().await;
        }
        let Some(soonest) = soonest else { return };
        next = soonest;
    }
}

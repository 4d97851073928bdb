//! The host of Python handlers: warm processes, so that a handler may hang or crash and only its call is lost.

mod discover;
mod frame;
mod interpreter;
mod locate;
mod pool;
mod script;
mod tell;
mod texts;
mod worker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde::Serialize;
use tokio::sync::{Mutex, OwnedSemaphorePermit};
use tokio::task;

pub use discover::{Discovered, Marked, discover};
use interpreter::Interpreter;
use locate::{Located, ModuleKind, Version};
use pool::{Pool, Settings};
pub(crate) use script::ScriptHost;
use worker::{Done, Worker};

use crate::handler::{Call, Context, Failure, FailureKind, Object, Outcome};
use crate::process::Guardian;
use crate::registration::{Checked, Registration};
use crate::roots::Roots;

/// Beyond this a result is refused before it is sent.
pub const MAX_RESULT_BYTES: usize = 128 << 20;

#[derive(Debug)]
pub(crate) struct PythonHost {
    config: PythonConfig,
    roots: Roots,
    guardian: Arc<Guardian>,
    /// By the interpreter that registrations name; the agent's own has none. An async lock, because whoever comes
    /// second waits for the probe of the first.
    pools: Mutex<BTreeMap<Option<PathBuf>, Arc<Pool>>>,
}

/// How Python handlers run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PythonConfig {
    /// The interpreter of handlers that name none.
    pub python: PathBuf,
    /// How many processes of one environment may be busy at once.
    pub workers: usize,
    /// After so long without a call a process is ended.
    pub idle_for: Duration,
    /// How long a `script` block may take.
    pub script_timeout: Duration,
    /// Variables of our environment that handlers see beside the harmless ones.
    pub pass_variables: Vec<String>,
}

impl Default for PythonConfig {
    fn default() -> Self {
        Self {
            python: "python3".into(),
            workers: 16,
            idle_for: Duration::from_mins(5),
            script_timeout: Duration::from_secs(30),
            pass_variables: Vec::new(),
        }
    }
}

#[derive(Serialize)]
struct Module {
    name: String,
    /// For a process that has not loaded it.
    source: Option<Source>,
}

#[derive(Serialize)]
struct Source {
    path: PathBuf,
    is_package: bool,
    /// One character for each byte.
    text: String,
}

#[derive(Serialize)]
struct Request<'a> {
    module: Module,
    entrypoint: &'a str,
    facts: Facts<'a>,
    payload: &'a Object,
    purpose: Purpose,
}

#[derive(Serialize)]
struct Facts<'a> {
    facet: &'a str,
    idempotency_key: &'a str,
    attempt: u32,
    lease_token: u64,
    path: &'a str,
}

/// A process that is ready for a call.
struct Seat {
    pool: Arc<Pool>,
    worker: Worker,
    version: Version,
    /// If it has yet to load the module.
    source: Option<Source>,
    permit: OwnedSemaphorePermit,
}

/// What to do with the handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    Call,
    /// Load it and find the entrypoint, to see whether it is all there.
    Check,
    /// Load it and tell the `registrations` that it asks for.
    Discover,
}

impl PythonHost {
    pub(crate) fn new(config: PythonConfig, roots: Roots, guardian: Arc<Guardian>) -> Self {
        Self { config, roots, guardian, pools: Mutex::default() }
    }

    pub(crate) async fn run(
        &self,
        registration: &Registration,
        checked: &Checked,
        call: &Call,
        purpose: Purpose,
    ) -> Outcome {
        self.attempt(registration, checked, call, purpose).await.unwrap_or_else(Outcome::Failed)
    }

    async fn attempt(
        &self,
        registration: &Registration,
        checked: &Checked,
        call: &Call,
        purpose: Purpose,
    ) -> Result<Outcome, Failure> {
        let context = &call.context;
        let uri = registration.module_uri.as_str();
        let Seat { pool, mut worker, version, source, permit } =
            context.in_line(self.seat(uri, checked, context)).await?;
        let mut request = request(registration, checked, call, purpose);
        request.module.source = source;
        let mut done = worker.call(&request, context).await;
        if let Done::NotTaken(_) = done {
            worker = context.in_line(pool.start(context)).await?;
            request.module.source = Some(self.source(checked, &pool, None).await?);
            done = worker.call(&request, context).await;
        }
        let outcome = match done {
            Done::Answered(outcome) => {
                worker.loaded.insert(uri.to_owned(), version);
                pool.put_back(worker);
                outcome
            }
            Done::Ended(outcome) => outcome,
            Done::NotTaken(failure) => Outcome::Failed(failure),
        };
        drop(permit);
        Ok(outcome)
    }

    /// Everything up to the call itself.
    async fn seat(&self, uri: &str, checked: &Checked, context: &Context) -> Result<Seat, Failure> {
        let pool = self.pool(checked.options.python.as_deref()).await?;
        let permit = pool.enter().await;
        let (located, version) = if let Some(checksum) = checked.checksum {
            (None, Version::Verified(checksum))
        } else {
            let located = self.locate(checked, &pool).await?;
            let version = Version::AsOnDisk(located.file.stamp());
            (Some(located), version)
        };
        let worker = pool.worker(uri, version, context).await?;
        let source = match worker.loaded.get(uri) {
            Some(_) => None,
            None => Some(self.source(checked, &pool, located).await?),
        };
        Ok(Seat { pool, worker, version, source, permit })
    }

    pub(crate) async fn close(&self) {
        let pools: Vec<_> = self.pools.lock().await.values().cloned().collect();
        join_all(pools.iter().map(|pool| pool.close())).await;
    }

    async fn pool(&self, named: Option<&Path>) -> Result<Arc<Pool>, Failure> {
        let mut pools = self.pools.lock().await;
        if let Some(pool) = pools.get(&named.map(Path::to_owned)) {
            return Ok(pool.clone());
        }
        let passed = self.config.pass_variables.clone();
        let interpreter = match named {
            None => Interpreter::probe(&self.config.python, &passed).await?,
            Some(path) => Interpreter::named(path, &self.roots)?,
        };
        let folders =
            self.roots.folders().iter().map(|folder| folder.to_string_lossy().into_owned()).collect();
        let settings =
            Settings { workers: self.config.workers, idle_for: self.config.idle_for, passed, folders };
        let pool = Pool::new(interpreter, settings, self.guardian.clone());
        pools.insert(named.map(Path::to_owned), pool.clone());
        Ok(pool)
    }

    async fn locate(&self, checked: &Checked, pool: &Arc<Pool>) -> Result<Located, Failure> {
        let (uri, roots, pool) = (checked.module.clone(), self.roots.clone(), pool.clone());
        unblocked(move || locate::locate(&uri, pool.interpreter.packages(), &roots)).await
    }

    /// The text to load, verified if a checksum is registered.
    async fn source(
        &self,
        checked: &Checked,
        pool: &Arc<Pool>,
        located: Option<Located>,
    ) -> Result<Source, Failure> {
        let Located { file, kind } = match located {
            Some(located) => located,
            None => self.locate(checked, pool).await?,
        };
        let (path, checksum) = (file.path.clone(), checked.checksum);
        let bytes = unblocked(move || Ok(file.read(checksum)?)).await?;
        let text = bytes.into_iter().map(char::from).collect();
        Ok(Source { path, is_package: kind == ModuleKind::Package, text })
    }
}

async fn unblocked<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = task::spawn_blocking(work).await;
    done.map_err(|error| Failure::new(FailureKind::Unavailable, error.to_string()))?
}

fn request<'a>(
    registration: &'a Registration,
    checked: &Checked,
    call: &'a Call,
    purpose: Purpose,
) -> Request<'a> {
    let facts = call.context.facts();
    let facts = Facts {
        facet: &call.facet,
        idempotency_key: &facts.idempotency_key,
        attempt: facts.attempt,
        lease_token: facts.lease_token,
        path: &facts.path,
    };
    let module = Module { name: locate::name(&checked.module), source: None };
    let entrypoint = &registration.entrypoint;
    Request { module, entrypoint, facts, payload: &call.payload, purpose }
}

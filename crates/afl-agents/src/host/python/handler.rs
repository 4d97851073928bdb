//! One Python handler: finds a process that has its module, or can load it, and calls it there.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task;

use super::module::{ModuleFile, ModuleVersion, PythonModule};
use super::pool::PythonPool;
use super::process::{CallEnd, PythonProcess};
use super::{PYTHON, PythonHost};
use crate::handler::{Call, Context, Facts, Handler, HandlerFailure, Object, Outcome, concurrent, perform};
use crate::host::{HandlerSpec, HostedHandler};
use crate::registration::{Checksum, Registration};

/// How long a canceled call may clean up before its process is killed.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

pub(super) struct PythonHandler {
    host: Arc<PythonHost>,
    module: PythonModule,
    registration: Registration,
    checksum: Option<Checksum>,
    /// Names the environment, where it is not the agent's own.
    python: Option<PathBuf>,
}

#[derive(Serialize)]
struct RequestModule {
    name: String,
    /// For a process that has not loaded it.
    source: Option<ModuleSource>,
}

#[derive(Serialize)]
struct ModuleSource {
    path: PathBuf,
    is_package: bool,
    /// One character for each byte.
    text: String,
}

#[derive(Serialize)]
struct PythonRequest<'a> {
    module: RequestModule,
    entrypoint: &'a str,
    facts: Value,
    payload: &'a Object,
    purpose: HandlerPurpose,
}

/// A process that is ready for a call.
struct ReadyProcess {
    pool: Arc<PythonPool>,
    worker: PythonProcess,
    version: ModuleVersion,
    /// If it has yet to load the module.
    source: Option<ModuleSource>,
    permit: OwnedSemaphorePermit,
}

/// The use of the handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum HandlerPurpose {
    Call,
    /// Load it and find the entrypoint, to see whether it is all there.
    Check,
    /// Load it and return the `registrations` that it asks for.
    Discover,
}

impl PythonHandler {
    pub(super) fn new(host: Arc<PythonHost>, module: PythonModule, spec: HandlerSpec<'_>) -> Self {
        Self {
            host,
            module,
            registration: spec.registration.clone(),
            checksum: spec.checksum,
            python: spec.option(PYTHON),
        }
    }

    async fn attempt(&self, call: &Call, purpose: HandlerPurpose) -> Outcome {
        let context = &call.context;
        let uri = self.registration.module_uri.as_str();
        let ReadyProcess { pool, mut worker, version, source, permit } =
            context.while_queued(context.unless_stopped(self.ready_process(context))).await?;
        let mut request = self.request(call, purpose);
        request.module.source = source;
        let mut done = worker.call(&request, context).await;
        if let CallEnd::NotTaken(_) = done {
            worker = context.while_queued(context.unless_stopped(pool.start(context))).await?;
            let source = self.source(&pool, None).await.map_err(HandlerFailure::not_done)?;
            request.module.source = Some(source);
            done = worker.call(&request, context).await;
        }
        let outcome = match done {
            CallEnd::Answered(outcome) => {
                worker.loaded.insert(uri.to_owned(), version);
                pool.put_back(worker);
                outcome
            }
            CallEnd::Ended(outcome) => outcome,
            CallEnd::NotTaken(failure) => Err(failure),
        };
        drop(permit);
        outcome
    }

    /// Everything up to the call itself.
    async fn ready_process(&self, context: &Context) -> Result<ReadyProcess, HandlerFailure> {
        let uri = &self.registration.module_uri;
        let pool = self.host.pool(self.python.as_deref()).await?;
        let permit = pool.enter().await;
        let (located, version) = if let Some(checksum) = self.checksum {
            (None, ModuleVersion::Verified(checksum))
        } else {
            let located = self.locate(&pool).await?;
            let version = ModuleVersion::AsOnDisk(located.file.stamp());
            (Some(located), version)
        };
        let worker = match pool.take_idle(uri, version) {
            Some(worker) => worker,
            None => pool.start(context).await?,
        };
        let source = match worker.loaded.get(uri) {
            Some(_) => None,
            None => Some(self.source(&pool, located).await?),
        };
        Ok(ReadyProcess { pool, worker, version, source, permit })
    }

    async fn locate(&self, pool: &Arc<PythonPool>) -> Result<ModuleFile, HandlerFailure> {
        let (module, roots, pool) = (self.module.clone(), self.host.roots.clone(), pool.clone());
        unblocked(move || module.locate(pool.interpreter.packages(), &roots)).await
    }

    /// The text to load, verified if a checksum is registered.
    async fn source(
        &self,
        pool: &Arc<PythonPool>,
        located: Option<ModuleFile>,
    ) -> Result<ModuleSource, HandlerFailure> {
        let ModuleFile { file, is_package } = match located {
            Some(located) => located,
            None => self.locate(pool).await?,
        };
        let (path, checksum) = (file.path.clone(), self.checksum);
        let bytes = unblocked(move || Ok(file.read(checksum)?)).await?;
        let text = bytes.into_iter().map(char::from).collect();
        Ok(ModuleSource { path, is_package, text })
    }

    fn request<'a>(&'a self, call: &'a Call, purpose: HandlerPurpose) -> PythonRequest<'a> {
        let facts = call.context.facts();
        let facts = json!({
            "facet": call.facet,
            "idempotency_key": facts.idempotency_key,
            "attempt": facts.attempt,
            "lease_token": facts.lease_token,
            "path": facts.path,
        });
        let module = RequestModule { name: self.module.name(), source: None };
        let entrypoint = &self.registration.entrypoint;
        PythonRequest { module, entrypoint, facts, payload: &call.payload, purpose }
    }

    /// Loads the module and calls nothing.
    async fn load(&self, purpose: HandlerPurpose) -> Outcome {
        let facet = &self.registration.facet_name;
        let (context, _) = Context::new(Facts { path: facet.clone(), ..Facts::default() });
        let call = Call::new(facet, Object::new(), context);
        let loading = concurrent(|call: Call| async move { self.attempt(&call, purpose).await });
        perform(&loading, call, Some(self.registration.timeout_of(None))).await
    }
}

#[async_trait]
impl Handler for PythonHandler {
    async fn run(&self, call: Call) -> Outcome {
        let call = call.with_system_fields(&self.registration.metadata);
        self.attempt(&call, HandlerPurpose::Call).await
    }

    fn grace(&self) -> Duration {
        CANCEL_GRACE
    }
}

#[async_trait]
impl HostedHandler for PythonHandler {
    async fn check(&self) -> Result<(), HandlerFailure> {
        self.load(HandlerPurpose::Check).await.map(drop)
    }

    async fn records(&self) -> Result<Option<Vec<Value>>, HandlerFailure> {
        match self.load(HandlerPurpose::Discover).await?.remove("registrations") {
            Some(Value::Array(records)) => Ok(Some(records)),
            Some(_) | None => Ok(Some(Vec::new())),
        }
    }
}

impl fmt::Debug for PythonHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PythonHandler").field(&self.module).finish()
    }
}

async fn unblocked<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HandlerFailure> + Send + 'static,
) -> Result<T, HandlerFailure> {
    let done = task::spawn_blocking(work).await;
    done.map_err(|error| HandlerFailure::unavailable(error.to_string()))?
}

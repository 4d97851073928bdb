//! The host of Python handlers and of `script` blocks: warm processes, so that a handler may hang or crash and only its call is lost.

mod answer;
mod discover;
mod frame;
mod handler;
mod interpreter;
mod module;
mod pool;
mod process;
mod script;
mod texts;

use std::collections::BTreeMap;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::Mutex;

use handler::PythonHandler;
use interpreter::Interpreter;
use module::PythonModule;
use pool::PythonPool;
pub use script::SCRIPT_TASK;
use script::ScriptHandler;

use super::list::HostParts;
use super::{Discovery, HandlerFile, HandlerSpec, Host, HostOption, HostedHandler, Offers};
use crate::handler::{Handler, HandlerFailure};
use crate::process::Guardian;
use crate::registration::Registration;
use crate::roots::{Roots, anchored};

/// Beyond this a result is refused before it is sent.
pub const MAX_RESULT_BYTES: usize = 128 << 20;

pub(super) struct PythonHost {
    config: PythonConfig,
    roots: Roots,
    guardian: Arc<Guardian>,
    /// By the interpreter that registrations name; the agent's own has none. An async lock, because a second
    /// caller waits for the first caller's probe.
    pools: Mutex<BTreeMap<Option<PathBuf>, Arc<PythonPool>>>,
    /// Needs no registration: the code is in the task.
    script: Arc<dyn Handler>,
}

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

/// The metadata key of the virtual environment (its directory) or the interpreter of a handler.
const PYTHON: &str = "python";
const OPTIONS: &[HostOption] = &[HostOption::of::<String>(PYTHON, "a path as text")];

#[async_trait]
impl Host for PythonHost {
    fn schemes(&self) -> &'static [(&'static str, &'static str)] {
        &[("", "a Python module (`my.handlers`)"), ("file", "`file:///path/to/module.py`")]
    }

    fn options(&self) -> &'static [HostOption] {
        OPTIONS
    }

    fn names_files(&self) -> bool {
        true
    }

    fn parse(self: Arc<Self>, spec: HandlerSpec<'_>) -> Result<Box<dyn HostedHandler>, String> {
        let module = PythonModule::parse(&spec.registration.module_uri)?;
        Ok(Box::new(PythonHandler::new(self, module, spec)))
    }

    fn anchor(&self, registration: &mut Registration, folder: &Path) {
        if let Some(Value::String(python)) = registration.metadata.get_mut(PYTHON) {
            *python = folder.join(&*python).display().to_string();
        }
        if let Some(file) = module::written_file(&registration.module_uri)
            && let Some(uri) = module::file_uri(&anchored(file, folder))
        {
            registration.module_uri = uri;
        }
    }

    fn discovery(&self) -> Option<Discovery> {
        let form = "Python files with functions marked @handler(\"ns.Facet\")";
        Some(Discovery { extension: module::EXTENSION, form })
    }

    async fn discover(&self, files: &[PathBuf]) -> Result<Vec<HandlerFile>, HandlerFailure> {
        discover::discover(&self.config.python, files).await
    }

    fn offers(&self) -> Offers<'_> {
        Box::new(iter::once((SCRIPT_TASK, &self.script)))
    }

    async fn close(&self) {
        let pools: Vec<_> = self.pools.lock().await.values().cloned().collect();
        join_all(pools.iter().map(|pool| pool.close())).await;
    }
}

impl PythonHost {
    pub(super) fn new(parts: &HostParts) -> Self {
        Self {
            config: parts.config.python.clone(),
            roots: parts.config.roots.clone(),
            guardian: parts.guardian.clone(),
            pools: Mutex::default(),
            script: Arc::new(ScriptHandler::new(parts)),
        }
    }

    async fn pool(&self, named: Option<&Path>) -> Result<Arc<PythonPool>, HandlerFailure> {
        let mut pools = self.pools.lock().await;
        if let Some(pool) = pools.get(&named.map(Path::to_owned)) {
            return Ok(pool.clone());
        }
        let interpreter = match named {
            None => Interpreter::probe(&self.config.python, &self.config.pass_variables).await?,
            Some(path) => Interpreter::named(path, &self.roots)?,
        };
        let pool = PythonPool::new(interpreter, self.config.clone(), &self.roots, self.guardian.clone());
        pools.insert(named.map(Path::to_owned), pool.clone());
        Ok(pool)
    }
}

//! Runs the `script` blocks of AFL: a fresh, caged process for each, so that no script sees another.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use super::interpreter::Interpreter;
use super::process::{CallEnd, PythonProcess};
use super::{PythonConfig, texts};
use crate::handler::{Call, Context, Handler, HandlerFailure, Object, Outcome};
use crate::host::list::HostParts;
use crate::process::Guardian;

const LANGUAGE: &str = "python";
/// Bytes, descriptors and seconds of processor time, by the names of Python's `resource`. Space for addresses is
/// what a script can fill memory with.
const LIMITS: &[(&str, u64)] =
    &[("AS", 1 << 30), ("FSIZE", 64 << 20), ("NOFILE", 64), ("NPROC", 64), ("CORE", 0), ("CPU", 60)];

/// The name of a script's task.
pub const SCRIPT_TASK: &str = "afl:script";

/// Does tasks whose payload is `language`, `code` and `params`; the result is what the code leaves in `result`.
pub(super) struct ScriptHandler {
    config: PythonConfig,
    guardian: Arc<Guardian>,
    interpreter: OnceCell<Interpreter>,
    busy: Semaphore,
}

/// Dropped in this order: the process goes before its folder.
struct Cage<'a> {
    worker: PythonProcess,
    folder: TempDir,
    permit: SemaphorePermit<'a>,
}

#[derive(Serialize)]
struct ScriptPayload<'a> {
    code: &'a str,
    params: &'a Object,
}

impl ScriptHandler {
    pub(super) fn new(parts: &HostParts) -> Self {
        let (config, guardian) = (parts.config.python.clone(), parts.guardian.clone());
        let busy = Semaphore::new(config.workers);
        Self { config, guardian, interpreter: OnceCell::new(), busy }
    }

    async fn cage(&self, context: &Context) -> Result<Cage<'_>, HandlerFailure> {
        let permit = self.busy.acquire().await.expect("never closed");
        let probe = || Interpreter::probe(&self.config.python, &self.config.pass_variables);
        let interpreter = self.interpreter.get_or_try_init(probe).await?;
        let folder = tempfile::Builder::new().prefix("afl-script-").tempdir();
        let folder = folder.map_err(|error| {
            HandlerFailure::unavailable(format!("cannot make a folder for a script: {error}"))
        })?;
        let mut command = Command::new(&interpreter.program);
        command.args(["-I", "-S", "-B"]).env_clear().current_dir(folder.path());
        let limits = LIMITS.iter().map(|(name, limit)| ((*name).to_owned(), json!(limit))).collect();
        let hello =
            texts::hello(texts::SCRIPT, Object::from_iter([("limits".to_owned(), Value::Object(limits))]));
        let worker = PythonProcess::start(&mut command, &hello, &self.guardian, context).await?;
        Ok(Cage { worker, folder, permit })
    }
}

#[async_trait]
impl Handler for ScriptHandler {
    async fn run(&self, call: Call) -> Outcome {
        let script = read(&call.payload).map_err(HandlerFailure::not_done)?;
        let context = &call.context;
        let cage = context.while_queued(context.unless_stopped(self.cage(context))).await?;
        let Cage { mut worker, folder, permit } = cage;
        let outcome = match worker.call(&script, &call.context).await {
            CallEnd::Answered(outcome) | CallEnd::Ended(outcome) => outcome,
            CallEnd::NotTaken(failure) => Err(failure),
        };
        // Nothing may run in the folder when it is removed. If the kill fails, dropping the process tries again.
        drop(worker.group.kill().await);
        drop(worker);
        drop(folder);
        drop(permit);
        outcome
    }

    /// A step cannot allow a script more, or less.
    fn timeout(&self, _step: Option<Duration>) -> Option<Duration> {
        Some(self.config.script_timeout)
    }
}

fn read(payload: &Object) -> Result<ScriptPayload<'_>, HandlerFailure> {
    let text = |name: &str| payload.get(name).and_then(Value::as_str);
    match text("language") {
        Some(LANGUAGE) => {}
        other => {
            let message = format!(
                "no host runs scripts in `{}`: write them in `{LANGUAGE}`",
                other.unwrap_or("no language")
            );
            return Err(HandlerFailure::not_found(message));
        }
    }
    match (text("code"), payload.get("params")) {
        (Some(code), Some(Value::Object(params))) => Ok(ScriptPayload { code, params }),
        _ => Err(HandlerFailure::invalid_input("a script needs `code` and `params`")),
    }
}

//! Why the handlers that a command is given cannot be used.

use std::path::PathBuf;

use afl_agents::host::HostError;
use afl_agents::worker::WorkerError;
use afl_agents::{FileError, RegistryError};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::shell::word;
use crate::store;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("cannot use {} as a list of handlers: {reason}", file.display())]
    BadFile { file: PathBuf, reason: String },
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("there are no handlers in {}", path.display())]
    Nothing { path: PathBuf },
    #[error("cannot look for handlers in {}: {reason}", file.display())]
    Undiscoverable { file: PathBuf, reason: String },
    #[error("cannot look for handlers: {}", .0.message)]
    Discovery(afl_agents::handler::HandlerFailure),
    #[error("{facet} has two handlers: {} and {}", modules[0], modules[1])]
    Twice { facet: String, modules: [String; 2] },
    #[error("{}", chain(.0))]
    Root(FileError),
    #[error("{}", chain(.0))]
    Hosts(HostError),
    #[error("{0}")]
    Worker(WorkerError),
    #[error("{0}")]
    Registry(RegistryError),
    #[error("the metadata is no JSON object: {reason}")]
    BadMetadata { reason: String },
    #[error("the result is no JSON object: {reason}")]
    BadResult { reason: String },
    #[error("no handler is registered for {facet}")]
    NotRegistered { facet: String },
    #[error("the program has no event facets")]
    NoEventFacets,
    #[error("{} is there already", path.display())]
    Exists { path: PathBuf },
    #[error("tasks that are {state} are listed by their run")]
    EndedTasks { state: &'static str },
    #[error("no step of run {run} is named")]
    NoStepNamed { run: String },
    #[error("step {step} of run {run} has no task")]
    NoTask { run: String, step: String },
    #[error("the task of {path} in run {run} is {state} and no longer open")]
    TaskEnded {
        run: String,
        path: String,
        /// A system task has none.
        step: Option<String>,
        state: &'static str,
    },
    #[error("`{path}` is a system task, so no step takes a result of it")]
    NoStepOfSystemTask { id: String, path: String },
    #[error("an agent of a store in memory finds no work there")]
    AgentInMemory,
}

impl Trouble {
    /// How the command ends, and the advice for the user; `store` is the one that the command was given.
    pub(crate) fn remedy(&self, store: &store::Options) -> (Exit, Option<String>) {
        let command = |verb: &str, of: &str| store.command(&format!("{verb} {}", word(of)));
        let misuse = |advice: &str| (Exit::WrongUse, Some(advice.to_owned()));
        match self {
            Self::BadFile { .. } => misuse(
                "write, for each facet, [[handler]], facet = \"ns.Facet\", module = \"handlers.py\"; `entrypoint`, \
                 `timeout_ms`, `checksum` and `metadata` are optional",
            ),
            Self::Nothing { .. } => misuse(&format!(
                "write a {}, or {}; `afl handlers scaffold` writes them for a program",
                super::FILE,
                super::readers().discoverable()
            )),
            Self::BadMetadata { .. } | Self::BadResult { .. } => {
                misuse("write an object, such as {\"name\": \"Ada\"}")
            }
            Self::NotRegistered { .. } => {
                misuse(&format!("{} lists those that are", store.command("handlers list")))
            }
            Self::NoEventFacets => misuse("only an `event facet` is done by a handler"),
            Self::Exists { .. } => misuse("name another file with `-o`, or `-o -` to print"),
            Self::EndedTasks { .. } => misuse("name the run with `--run`"),
            Self::NoStepNamed { run } => {
                misuse(&format!("name the step: {} lists them", command("tasks --run", run)))
            }
            Self::NoTask { run, .. } => {
                misuse(&format!("{} lists the tasks of it", command("tasks --run", run)))
            }
            Self::TaskEnded { run, step, .. } => {
                let step = step.as_deref().map(|step| format!(" {}", word(step))).unwrap_or_default();
                let show = store.command(&format!("task show {}{step}", word(run)));
                misuse(&format!("{show} shows how it ended"))
            }
            Self::NoStepOfSystemTask { id, .. } => misuse(&format!("{} ends it", command("task cancel", id))),
            Self::Twice { .. } => misuse("leave one of them out"),
            Self::AgentInMemory => {
                misuse("name a store that stays; `afl run --handlers` does the work of one run")
            }
            Self::Undiscoverable { .. } => misuse("correct the file, or name the others one by one"),
            Self::Worker(WorkerError::Http(_)) => misuse("give another port with `--http-port`"),
            Self::Worker(WorkerError::Lease(short)) => {
                misuse(&format!("`--lease-ms {}` is long enough", short.least_ms))
            }
            Self::Worker(_) | Self::Registry(_) => (Exit::WrongUse, None),
            Self::Unreadable { .. } => (Exit::Inaccessible, Some(format!("name {}", super::sources()))),
            Self::Discovery(_) | Self::Root(_) | Self::Hosts(_) => (Exit::Inaccessible, None),
        }
    }
}

/// The message with its cause.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Self::Handlers(trouble)
    }
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::Store(error) => error.into(),
            wrong @ RegistryError::Wrong { .. } => Trouble::Registry(wrong).into(),
        }
    }
}

impl From<WorkerError> for Failure {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Store(error) => error.into(),
            other @ (WorkerError::Topic(_)
            | WorkerError::TopicsOfPoller
            | WorkerError::Http(_)
            | WorkerError::Panicked(_)
            | WorkerError::NoTaskList
            | WorkerError::Lease(_)
            | WorkerError::Running) => Trouble::Worker(other).into(),
        }
    }
}

//! Why a request of a person or a program is not done.

use afl_engine::evaluation::{InputError, Unanswerable};
use afl_engine::id::{RunId, StepId};
use afl_engine::run::RunStatus;
use afl_engine::task::TaskState;
use afl_engine::types::Misfit;
use afl_lang::program::LoadError;
use afl_store::backend::StoreError;
use afl_store::outbox::BadChannel;
use afl_store::queue::Refusal;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] afl_store::store::Error),
    #[error("there is no run `{given}`{}", hint(.closest.as_deref()))]
    UnknownRun { given: String, closest: Option<String> },
    #[error("`{given}` fits several runs, {}: give more of the id", list(.runs))]
    AmbiguousRun { given: String, runs: Vec<RunId> },
    #[error(
        "the program {version} is not in this store: starting the same source again, with `afl start`, stores it"
    )]
    UnknownProgram { version: String },
    #[error("the program {version} of the store cannot be used: {source}")]
    Program { version: String, source: LoadError },
    #[error("there is no workflow `{given}` in this program{}", hint(.closest.as_deref()))]
    UnknownWorkflow { given: String, closest: Option<String> },
    #[error("{}", which(.0))]
    WhichWorkflow(Vec<String>),
    /// Nothing was stored.
    #[error(transparent)]
    Inputs(#[from] InputError),
    #[error("the idempotency key `{key}` belongs to run {run}, which was started with something else")]
    KeyTaken { key: String, run: RunId },
    #[error("others started with the same key {tries} times meanwhile; try again")]
    StartedByOthers { tries: usize },
    #[error("an idempotency key has 1 to {limit} bytes, not {bytes}")]
    BadKey { bytes: usize, limit: usize },
    #[error("run {run} has ended ({status}), so there is nothing to {verb}")]
    Ended { run: RunId, status: RunStatus, verb: &'static str },
    #[error("run {run} has no step `{given}`{}", hint(.closest.as_deref()))]
    UnknownStep { run: RunId, given: String, closest: Option<String> },
    #[error("nothing of `{path}` in run {run} failed, so there is nothing to retry")]
    NothingFailed { run: RunId, path: String },
    #[error("`{path}` of run {run} cannot be given an outcome: {reason}")]
    Unanswerable { run: RunId, path: String, reason: Unanswerable },
    #[error("`{path}` of run {run} has failed already, and it is known why")]
    FailedAlready { run: RunId, path: String },
    #[error("the result of `{path}` in run {run} is refused: {misfit}")]
    Misfit { run: RunId, path: String, misfit: Misfit },
    #[error("the result of `{path}` in run {run} is refused: it lacks {}", names(.lacks))]
    Lacks { run: RunId, path: String, lacks: Vec<String> },
    #[error(
        "`{path}` of run {run} cannot go on without {}: say what came of it instead of skipping it",
        names(.lacks)
    )]
    NeedsResult { run: RunId, path: String, lacks: Vec<String> },
    /// Work that may have happened is not done again by the way.
    #[error(
        "nobody knows whether the work of `{path}` in run {run} happened, so it is not tried again by the way"
    )]
    Undecided { run: RunId, step: StepId, path: String },
    #[error("no agent called `{server}` is online{}", others(online))]
    NotOnline { server: String, online: Vec<String> },
    #[error("there is no notification `{given}`")]
    UnknownNotification { given: String },
    #[error(transparent)]
    Channel(#[from] BadChannel),
    #[error("there is no channel `{given}`{}", hint(.closest.as_deref()))]
    UnknownChannel { given: String, closest: Option<String> },
    #[error("{left} {} for the channel `{name}`", if *.left == 1 { "message waits" } else { "messages wait" })]
    ChannelHolds { name: String, left: usize },
    #[error("there are {limit} channels already, and more would make every outcome slow")]
    TooManyChannels { limit: usize },
    #[error("others changed the channel `{name}` meanwhile; try again")]
    ChannelBusy { name: String },
    #[error("the messages of the channel `{name}` are sent to its address, and cannot be read here")]
    NotAFeed { name: String },
    #[error(transparent)]
    Refused(Refusal),
    #[error("run {run} is being canceled; start it anew")]
    Canceling { run: RunId },
    #[error("run {run} is busy: others changed it {tries} times meanwhile; try again")]
    Busy { run: RunId, tries: usize },
    #[error("run {run} is sound, so it is not discarded: cancel it instead")]
    NotDamaged { run: RunId },
    #[error("{what} was written by a newer release, so it is not discarded: use that release")]
    NewerRelease { what: String },
    #[error("the record `{id}` of `{scope}` can be read, so it is not discarded")]
    RecordNotDamaged { scope: String, id: String },
    #[error("there is no record `{id}` of `{scope}`: `afl doctor` lists those that are damaged")]
    UnknownRecord { scope: String, id: String },
    #[error("this process drives runs already")]
    DrivenAlready,
    /// Its start was left to a runner.
    #[error("run {run} {}", not_begun(*state, error.as_deref()))]
    NotBegun { run: RunId, state: TaskState, error: Option<String> },
    #[error("what the system task is to do cannot be read: {reason}")]
    BadRequest { reason: String },
}

impl Error {
    pub(crate) fn no_step(run: &RunId, step: &StepId) -> Self {
        Self::UnknownStep { run: run.clone(), given: step.to_string(), closest: None }
    }

    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_conflict())
    }

    /// Whether the call may have taken effect all the same.
    pub fn is_uncertain(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_uncertain())
    }

    /// Whether the store could not be asked, so that asking again may help.
    pub fn is_of_store(&self) -> bool {
        let fleeting = matches!(self, Self::Store(_) | Self::Busy { .. } | Self::StartedByOthers { .. });
        fleeting && !self.is_of_run()
    }

    /// Whether it is this run that cannot go on, and not the store.
    pub(crate) fn is_of_run(&self) -> bool {
        use afl_store::store::Error as Stored;
        let too_large = matches!(self, Self::Store(Stored::Backend(StoreError::TooLarge { .. })));
        too_large || self.is_damage()
    }

    /// Whether the run cannot go on until somebody looks at its records.
    pub fn is_damage(&self) -> bool {
        use afl_store::store::Error as Stored;
        matches!(
            self,
            Self::Store(Stored::Unreadable { .. } | Stored::Shared { .. })
                | Self::Program { .. }
                | Self::UnknownProgram { .. }
        )
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Store(error) => Self::Store(error),
            refusal @ (Refusal::LeaseLost { .. }
            | Refusal::Canceled { .. }
            | Refusal::Unknown { .. }
            | Refusal::TooEarly { .. }
            | Refusal::NotOpen { .. }
            | Refusal::TooLarge { .. }) => Self::Refused(refusal),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

fn hint(closest: Option<&str>) -> String {
    closest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn not_begun(state: TaskState, error: Option<&str>) -> String {
    match (state, error) {
        (TaskState::Pending | TaskState::Running | TaskState::AwaitingResponse, _) => {
            "is not started yet: it waits for a runner".to_owned()
        }
        (TaskState::Completed, _) => "was deleted, or another one was started with its key".to_owned(),
        (TaskState::Canceled | TaskState::Ignored, _) => "was canceled before it was started".to_owned(),
        (TaskState::Failed, error) => {
            format!("could not be started: {}", error.unwrap_or("nobody knows why"))
        }
    }
}

fn others(online: &[String]) -> String {
    if online.is_empty() { String::new() } else { format!("; these are: {}", names(online)) }
}

fn list(runs: &[RunId]) -> String {
    let shown: Vec<String> = runs.iter().take(5).map(|run| format!("`{run}`")).collect();
    shown.join(", ")
}

fn names(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn which(workflows: &[String]) -> String {
    match workflows {
        [] => "the program has no workflow, so there is nothing to start".to_owned(),
        names => format!("the program has several workflows ({}): say which to start", names.join(", ")),
    }
}

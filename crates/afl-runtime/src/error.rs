//! Why a request is not fulfilled, grouped by what the caller does next.
//!
//! A surface maps a group to its exit code or status; the detail within a group gives the message and, for surfaces
//! that advise people, the hint. Messages name no command of any surface.

use afl_engine::evaluation::{InputError, Unanswerable};
use afl_engine::id::{RunId, StepId};
use afl_engine::run::RunStatus;
use afl_engine::task::{Task, TaskState};
use afl_engine::types::Misfit;
use afl_engine::value::Oversize;
use afl_lang::program::LoadError;
use afl_store::backend::StoreError;
use afl_store::conflict::CONFLICT_TRIES;
use afl_store::outbox::BadChannel;
use afl_store::queue::Refusal;
use afl_store::store;

use crate::cursor::NotACursor;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller names another thing, or creates it first.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// The caller corrects the request. Nothing was stored.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    /// The request is sound, but the state of its object does not allow it. The caller chooses another action.
    #[error(transparent)]
    Refused(#[from] StateRefusal),
    /// Other writers were faster. The caller sends the same request again.
    #[error(transparent)]
    Contended(#[from] Contention),
    /// The store cannot do it now. The caller waits, or an operator repairs the store.
    #[error(transparent)]
    Unavailable(StoreError),
    /// Stored data cannot be trusted. An operator restores or discards it.
    #[error(transparent)]
    Damaged(#[from] Corruption),
}

/// The thing that a request names does not exist.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    #[error("there is no run `{given}`{}", hint(.closest.as_deref()))]
    Run { given: String, closest: Option<String> },
    #[error("run {run} has no step `{given}`{}", hint(.closest.as_deref()))]
    Step { run: RunId, given: String, closest: Option<String> },
    #[error("run {run} has no step `{step}` that waits for work")]
    WaitingStep { run: RunId, step: StepId },
    #[error("the program {version} is not in this store: publish the same source again")]
    Program { version: String },
    #[error("there is no workflow `{given}` in this program{}", hint(.closest.as_deref()))]
    Workflow { given: String, closest: Option<String> },
    #[error("no agent called `{name}` is online{}", others(.online))]
    Server { name: String, online: Vec<String> },
    #[error("there is no notification `{given}`")]
    Notification { given: String },
    #[error("there is no channel `{given}`{}", hint(.closest.as_deref()))]
    Channel { given: String, closest: Option<String> },
    #[error("there is no record `{id}` of `{scope}`")]
    Record { scope: String, id: String },
}

/// The request itself is wrong.
#[derive(Debug, thiserror::Error)]
pub enum InvalidRequest {
    #[error("`{given}` fits several runs, {}: give more of the id", list(.runs))]
    AmbiguousRun { given: String, runs: Vec<RunId> },
    #[error("{}", which(.0))]
    WhichWorkflow(Vec<String>),
    #[error(transparent)]
    Inputs(#[from] InputError),
    #[error(transparent)]
    Cursor(#[from] NotACursor),
    #[error("an idempotency key has 1 to {limit} bytes, not {bytes}")]
    Key { bytes: usize, limit: usize },
    #[error("an idempotency key takes no control characters")]
    KeyText,
    #[error(transparent)]
    Channel(#[from] BadChannel),
    #[error("the result of `{path}` in run {run} is refused: {misfit}")]
    Misfit { run: RunId, path: String, misfit: Misfit },
    #[error("the result of `{path}` in run {run} is refused: it lacks {}", names(.lacks))]
    Lacks { run: RunId, path: String, lacks: Vec<String> },
    #[error(
        "`{path}` of run {run} must return {}, so it cannot be skipped: report its result instead",
        names(.lacks)
    )]
    NeedsResult { run: RunId, path: String, lacks: Vec<String> },
    #[error("the result of `{path}` has {oversize}")]
    ResultTooLarge { path: String, oversize: Oversize },
    #[error("the payload of the system task cannot be read: {reason}")]
    SystemTask { reason: String },
}

/// The state of a run, task, channel or record does not allow the request.
#[derive(Debug, thiserror::Error)]
pub enum StateRefusal {
    #[error("the idempotency key `{key}` belongs to run {run}, which was started with something else")]
    KeyTaken { key: String, run: RunId },
    #[error("run {run} has ended ({status}), so there is nothing to {verb}")]
    Ended { run: RunId, status: RunStatus, verb: &'static str },
    /// The store takes other writes, and will refuse these each time.
    #[error("the store refuses what the next steps of run {run} write: {refusal}")]
    Unstorable { run: RunId, refusal: StoreError },
    #[error("run {run} is being canceled; start it anew")]
    Canceling { run: RunId },
    /// Its start was left to a runner.
    #[error("run {run} {}", not_begun(*state, error.as_deref()))]
    NotBegun { run: RunId, state: TaskState, error: Option<String> },
    #[error("nothing of `{path}` in run {run} failed, so there is nothing to retry")]
    NothingFailed { run: RunId, path: String },
    #[error("`{path}` of run {run} cannot be given an outcome: {reason}")]
    Unanswerable { run: RunId, path: String, reason: Unanswerable },
    #[error("`{path}` of run {run} has failed already, and it is known why")]
    FailedAlready { run: RunId, path: String },
    /// Work that may have happened is repeated only when a person asks for that step.
    #[error(
        "the work of `{path}` in run {run} must happen at most once and may have happened: a person must decide about it"
    )]
    Undecided {
        run: RunId,
        step: StepId,
        path: String,
        /// The fields that its result must have.
        must_return: Vec<String>,
    },
    /// The state of the task or its lease; never [`Refusal::Store`].
    #[error(transparent)]
    Task(Refusal),
    #[error("{left} {} for the channel `{name}`", if *.left == 1 { "message waits" } else { "messages wait" })]
    ChannelHolds { name: String, left: usize },
    #[error("there are {limit} channels already, and more would make every outcome slow")]
    TooManyChannels { limit: usize },
    #[error("the messages of the channel `{name}` are sent to its address, and cannot be read here")]
    NotAFeed { name: String },
    #[error("run {run} is sound, so it is not discarded: cancel it instead")]
    NotDamaged { run: RunId },
    #[error("the record `{id}` of `{scope}` can be read, so it is not discarded")]
    RecordNotDamaged { scope: String, id: String },
    #[error("{record} was written by a newer release, so it is not discarded: use that release")]
    NewerRelease { record: String },
    #[error("this process drives runs already")]
    DrivenAlready,
}

/// Other writers changed the same records.
#[derive(Debug, thiserror::Error)]
pub enum Contention {
    #[error("run {run} is busy: others changed it {tries} times meanwhile; try again")]
    Run { run: RunId, tries: usize },
    #[error("others started with the same key {tries} times meanwhile; try again")]
    Start { tries: usize },
    #[error("others changed the channel `{name}` meanwhile; try again")]
    Channel { name: String },
    /// One write was overtaken, or the store restarted after the read that it relies on.
    #[error(transparent)]
    Write(StoreError),
}

/// Stored data that cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum Corruption {
    /// Never [`store::Error::Backend`].
    #[error(transparent)]
    Record(store::Error),
    #[error("the program {version} of the store cannot be used: {source}")]
    Program { version: String, source: LoadError },
    #[error("the program {version} of run {run} is not in this store: publish the same source again")]
    MissingProgram { run: RunId, version: String },
}

impl Error {
    pub(crate) fn no_run(run: &RunId) -> Self {
        NotFound::Run { given: run.to_string(), closest: None }.into()
    }

    pub(crate) fn no_step(run: &RunId, step: &StepId) -> Self {
        NotFound::Step { run: run.clone(), given: step.to_string(), closest: None }.into()
    }

    /// The start of the run was left to this task.
    pub(crate) fn not_begun(run: &RunId, task: &Task) -> Self {
        StateRefusal::NotBegun { run: run.clone(), state: task.state, error: task.error.clone() }.into()
    }

    /// Other writers changed the records that were read: read again and decide anew.
    pub(crate) fn overtaken() -> Self {
        StoreError::Restarted.into()
    }

    /// The run that it is about, where that is known.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::NotFound(NotFound::Step { run, .. })
            | Self::Refused(
                StateRefusal::NotBegun { run, .. }
                | StateRefusal::Ended { run, .. }
                | StateRefusal::Canceling { run }
                | StateRefusal::Unstorable { run, .. }
                | StateRefusal::NothingFailed { run, .. }
                | StateRefusal::Undecided { run, .. },
            )
            | Self::Contended(Contention::Run { run, .. })
            | Self::Damaged(Corruption::Record(store::Error::Unreadable { run, .. })) => Some(run),
            _ => None,
        }
    }

    /// Whether the disk of the store is full.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Unavailable(StoreError::Full))
    }

    /// Whether one write was overtaken: read again and decide anew.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Contended(Contention::Write(_)))
    }

    /// Whether the call may have taken effect all the same.
    pub fn is_uncertain(&self) -> bool {
        matches!(self, Self::Unavailable(StoreError::Unavailable { .. }))
    }

    /// Whether the same call may succeed later, because the store or other writers were in the way.
    pub fn is_of_store(&self) -> bool {
        matches!(self, Self::Contended(_) | Self::Unavailable(_)) && !self.is_of_run()
    }

    /// Whether only this run cannot continue, while the store serves others.
    pub(crate) fn is_of_run(&self) -> bool {
        let is_too_large = matches!(self, Self::Unavailable(StoreError::TooLarge { .. }));
        is_too_large || self.is_unstorable() || self.is_damage()
    }

    /// Whether the store will refuse the same changes of a run each time.
    pub(crate) fn is_unstorable(&self) -> bool {
        matches!(self, Self::Refused(StateRefusal::Unstorable { .. }))
    }

    /// Whether the run cannot continue until an operator repairs its records.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged(_))
    }
}

impl Contention {
    pub(crate) fn of_run(run: &RunId) -> Self {
        Self::Run { run: run.clone(), tries: CONFLICT_TRIES }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Store(error) => error.into(),
            Refusal::Unknown { run, step } => NotFound::WaitingStep { run, step }.into(),
            Refusal::TooLarge { path, oversize } => InvalidRequest::ResultTooLarge { path, oversize }.into(),
            refusal @ (Refusal::LeaseLost { .. }
            | Refusal::Canceled { .. }
            | Refusal::TooEarly { .. }
            | Refusal::NotOpen { .. }) => StateRefusal::Task(refusal).into(),
        }
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Backend(error) => error.into(),
            damage @ (store::Error::Unreadable { .. } | store::Error::Shared { .. }) => {
                Corruption::Record(damage).into()
            }
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict { .. } | StoreError::Restarted => Contention::Write(error).into(),
            StoreError::TooLarge { .. }
            | StoreError::Full
            | StoreError::Locked { .. }
            | StoreError::Unavailable { .. }
            | StoreError::Refused(_) => Self::Unavailable(error),
        }
    }
}

impl From<BadChannel> for Error {
    fn from(error: BadChannel) -> Self {
        InvalidRequest::from(error).into()
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
            format!("could not be started: {}", error.unwrap_or("no reason was recorded"))
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

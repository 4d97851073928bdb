//! States of steps in a word or two.

use afl_engine::failure::FailureKind;
use afl_engine::state::State;
use afl_engine::task::{Task, TaskState};
use afl_runtime::StepView;

/// A step at a glance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Glance {
    Done,
    Failed,
    /// With its run.
    Canceled,
    /// Something inside it goes on.
    Open,
    /// Nobody has its task.
    Waiting,
    /// An agent has its task.
    Working,
    /// Its next attempt has a time.
    Retrying,
}

impl Glance {
    pub(crate) fn of(view: &StepView) -> Self {
        match (view.step.state, &view.task) {
            (State::Complete, _) => Self::Done,
            (State::Error, _) if is_canceled(view) => Self::Canceled,
            (State::Error, _) => Self::Failed,
            (_, Some(task)) => Self::of_task(task),
            (_, None) => Self::Open,
        }
    }

    fn of_task(task: &Task) -> Self {
        match (task.state, task.not_before) {
            (TaskState::Pending, Some(_)) => Self::Retrying,
            (TaskState::Pending, None) => Self::Waiting,
            (TaskState::Running | TaskState::AwaitingResponse, _) => Self::Working,
            (TaskState::Completed | TaskState::Failed | TaskState::Ignored | TaskState::Canceled, _) => {
                Self::Open
            }
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Open => "open",
            Self::Waiting => "waiting",
            Self::Working => "working",
            Self::Retrying => "retrying",
        }
    }
}

fn is_canceled(view: &StepView) -> bool {
    view.step.error.as_ref().is_some_and(|failure| failure.kind == FailureKind::Canceled.name())
}

/// What a step in this state is about.
pub(crate) fn phrase(state: State) -> &'static str {
    match state {
        State::Created => "is to begin",
        State::InitBegin | State::InitEnd => "evaluates its arguments",
        State::FacetScriptsBegin
        | State::FacetScriptsEnd
        | State::StatementScriptsBegin
        | State::StatementScriptsEnd => "runs its script",
        State::MixinBlocksBegin
        | State::MixinBlocksContinue
        | State::MixinBlocksEnd
        | State::MixinCaptureBegin
        | State::MixinCaptureEnd => "waits for its mixins",
        State::EventTransmit => "waits for its event",
        State::StatementBlocksBegin | State::StatementBlocksContinue | State::StatementBlocksEnd => {
            "waits for its blocks"
        }
        State::StatementCaptureBegin | State::StatementCaptureEnd => "collects its results",
        State::BlockExecutionBegin | State::BlockExecutionContinue | State::BlockExecutionEnd => {
            "waits for its steps"
        }
        State::End => "ends",
        State::Complete => "is complete",
        State::Error => "failed",
    }
}

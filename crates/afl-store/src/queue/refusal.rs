//! Why a call of a task's holder is not accepted.

use afl_engine::id::{RunId, StepId};
use afl_engine::task::{MoveRefusal, RefusalReason, TaskState};
use afl_engine::value::Oversize;

use crate::backend::StoreError;
use crate::store::Error;

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Nothing was written.
    #[error(
        "the lease of `{path}` is lost: its time ran out or another holder has it, so stop and drop the result"
    )]
    LeaseLost { path: String },
    #[error("`{path}` of run {run} was canceled: stop and drop the result")]
    Canceled { run: RunId, path: String },
    #[error("run {run} has no step `{step}` that waits for work")]
    Unknown { run: RunId, step: StepId },
    /// Document 000 §6: only a step at `EventTransmit` can be continued.
    #[error("step `{step}` of run {run} is not at its event yet, so there is nothing to continue")]
    TooEarly { run: RunId, step: StepId },
    /// A task in this state makes no such move (M1-M12).
    #[error("the task of `{path}` is {state}, so it cannot be {verb}")]
    NotOpen { path: String, state: TaskState, verb: &'static str },
    #[error("the result of `{path}` has {oversize}")]
    TooLarge { path: String, oversize: Oversize },
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<MoveRefusal> for Refusal {
    fn from(MoveRefusal { path, state, attempted, reason }: MoveRefusal) -> Self {
        match reason {
            RefusalReason::Ticket(_) => Self::LeaseLost { path },
            RefusalReason::Illegal | RefusalReason::OtherCaller | RefusalReason::OtherQuestion => {
                Self::NotOpen { path, state, verb: attempted.participle() }
            }
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

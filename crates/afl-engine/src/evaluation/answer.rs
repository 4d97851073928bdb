//! Gives a failed step the outcome that a person reports. One commit takes the failure back and sets the outcome, so
//! that no agent can claim the work in between.

use super::control::ReopenedWork;
use super::wants::MissingRecord;
use super::{Evaluation, EvaluationPhase, Wants};
use crate::event::{EventError, EventState, Payload, Reception};
use crate::history::Actor;
use crate::id::StepId;
use crate::run::{Control, RunStatus};
use crate::step::Step;
use crate::task::Move;
use crate::value::{Map, Value};

/// The outcome of a step's work, as a person reports it.
#[derive(Clone, PartialEq, Debug)]
pub enum PersonAnswer {
    Result(Map<String, Value>),
    Error(EventError),
}

/// The next act of the driver after an answer.
#[derive(Clone, PartialEq, Debug)]
pub enum AnswerAdvance {
    /// Supply these records, then answer again.
    Need(Wants),
    /// Nothing changed.
    Refused(Unanswerable),
    /// Commit; the step continues in the next iteration.
    Taken,
}

/// Why a step cannot be given an outcome.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unanswerable {
    #[error("the run was canceled")]
    Canceled,
    #[error("it has not failed")]
    NotFailed,
    #[error("its own work failed, but that of its mixins goes on: wait until it has ended")]
    Beside,
    #[error("it failed because of `{path}`, which is what an outcome can be given to")]
    Within { path: String },
    #[error("no work from outside failed, but the step itself: {message}")]
    NoWork { message: String },
    #[error("a `catch` deals with its failure")]
    Caught,
    /// An outcome of the mixin alone would have the step's own work done again.
    #[error("the work of `{path}` failed beside it: give that an outcome first")]
    After { path: String },
}

impl Evaluation {
    /// Gives a failed step its outcome, to be called between two looks at the store.
    pub fn answer(&mut self, step: &StepId, told: &PersonAnswer, by: &Actor) -> AnswerAdvance {
        assert_eq!(self.phase, EvaluationPhase::Between, "a step is answered between iterations");
        match self.answer_now(step, told, by) {
            Ok(Ok(())) => AnswerAdvance::Taken,
            Ok(Err(refused)) => AnswerAdvance::Refused(refused),
            Err(MissingRecord) => AnswerAdvance::Need(std::mem::take(&mut self.wants)),
        }
    }

    fn answer_now(
        &mut self,
        id: &StepId,
        told: &PersonAnswer,
        by: &Actor,
    ) -> Result<Result<(), Unanswerable>, MissingRecord> {
        self.need_ancestry(id)?;
        if let Err(refused) = self.answerable(id) {
            return Ok(Err(refused));
        }
        self.need_failed_events(id)?;
        self.need_work(id)?;
        self.reopen_step(id, ReopenedWork::Amended);
        self.settle_by_hand(id, told, by);
        self.reopen_above(id, by);
        self.activate(id.clone());
        self.run_is_dirty = true;
        Ok(Ok(()))
    }

    fn answerable(&self, id: &StepId) -> Result<(), Unanswerable> {
        if self.run.control == Control::Cancel || self.run.status == RunStatus::Canceled {
            return Err(Unanswerable::Canceled);
        }
        let step = self.known.step(id);
        let Some((step, failure)) = step.and_then(|step| Some((step, step.error.as_ref()?))) else {
            return Err(Unanswerable::NotFailed);
        };
        if failure.step != *id {
            return Err(Unanswerable::Within { path: failure.path.clone() });
        }
        if !step.is_terminal() {
            return Err(Unanswerable::Beside);
        }
        if !step.failed_by_event() {
            return Err(Unanswerable::NoWork { message: failure.message.clone() });
        }
        if self.is_caught(id) {
            return Err(Unanswerable::Caught);
        }
        let mut above = std::iter::successors(id.parent(), StepId::parent);
        match above.find(|it| self.known.step(it).is_some_and(Step::failed_by_event)) {
            Some(above) => Err(Unanswerable::After { path: self.path_of(&above) }),
            None => Ok(()),
        }
    }

    /// Writes the same records as an agent's outcome.
    fn settle_by_hand(&mut self, id: &StepId, told: &PersonAnswer, by: &Actor) {
        let result: Option<Payload> = match told {
            PersonAnswer::Result(result) => {
                let held = result.iter().map(|(name, value)| (name.clone(), self.known.hold(value.clone())));
                Some(held.collect())
            }
            PersonAnswer::Error(_) => None,
        };
        let token = self.known.tasks.get(id).map_or(0, |task| task.token);
        let event = self.known.events.change(id);
        event.reception = Reception::Arrived;
        let outcome = match told {
            PersonAnswer::Result(_) => {
                event.state = EventState::Completed;
                let parts = event.told_by(token);
                event.result = result.map(|result| parts.into_iter().chain(result).collect());
                Ok(())
            }
            PersonAnswer::Error(error) => {
                event.state = EventState::Error;
                event.error = Some(error.clone());
                Err(error)
            }
        };
        self.move_task(id, Move::Amend(outcome), by);
    }
}

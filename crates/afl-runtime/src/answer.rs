//! A person reports the outcome of a step's work in place of its agent.

use afl_engine::evaluation::{self, Evaluation, PersonAnswer, Unanswerable, Wants};
use afl_engine::event::{Event, EventError, EventState};
use afl_engine::failure::FailureKind;
use afl_engine::id::{RunId, StepId};
use afl_engine::run::Control;
use afl_engine::state::State;
use afl_engine::task::Task;
use afl_engine::value::{Map, Value, check_size};
use afl_store::backend::Durability;
use afl_store::queue::{ContinueResult, Refusal, WorkOfStep};
use afl_store::store::Terms;

use crate::drive::{RunWork, guarded};
use crate::error::{Contention, Error, InvalidRequest, StateRefusal};
use crate::serve::Wake;
use crate::service::Service;

/// The outcome of the work, as a person reports it.
#[derive(Clone, PartialEq, Debug)]
pub enum ReportedOutcome {
    /// It was done, with this result.
    Done(Map<String, Value>),
    /// It failed, and that is the end of it.
    Failed { message: String },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnswerResult {
    Now,
    /// The work had ended before; nothing was written.
    Before,
}

impl Service {
    /// Gives a step the outcome of its work. An agent that works on it loses its lease. A step that failed continues,
    /// or fails for good, in one durable commit; only work that may have happened can be failed this way.
    pub async fn answer(
        &self,
        run: &RunId,
        step: &StepId,
        verdict: &ReportedOutcome,
    ) -> Result<AnswerResult, Error> {
        self.redo(Contention::of_run(run), || self.try_answer(run, step, verdict)).await
    }

    async fn try_answer(
        &self,
        id: &RunId,
        step: &StepId,
        verdict: &ReportedOutcome,
    ) -> Result<AnswerResult, Error> {
        self.existing(id).await?;
        let (state, task, event) = self.at(id, step).await?;
        let (Some(task), Some(event)) = (task, event) else {
            // Without work, only a failed step has an outcome to replace.
            return self.answer_failed(id, step, &PersonAnswer::Result(Map::new())).await;
        };
        match (verdict, state) {
            (ReportedOutcome::Failed { message }, _) if event.error.as_ref() == Some(&given_up(message)) => {
                Ok(AnswerResult::Before)
            }
            (ReportedOutcome::Done(_) | ReportedOutcome::Failed { .. }, state)
                if state != State::Error && event.state == EventState::Completed =>
            {
                Ok(AnswerResult::Before)
            }
            (ReportedOutcome::Done(result), State::Error) => {
                self.check_result(id, &task, result).await?;
                self.answer_failed(id, step, &PersonAnswer::Result(result.clone())).await
            }
            (ReportedOutcome::Failed { message }, State::Error) if task.needs_decision() => {
                self.answer_failed(id, step, &PersonAnswer::Error(given_up(message))).await
            }
            (ReportedOutcome::Failed { .. }, State::Error) => {
                Err(StateRefusal::FailedAlready { run: id.clone(), path: task.path.clone() }.into())
            }
            (ReportedOutcome::Done(_) | ReportedOutcome::Failed { .. }, _) => {
                self.answer_open(id, &task, verdict).await
            }
        }
    }

    /// Where a step stands, with its work if it has any.
    async fn at(&self, id: &RunId, step: &StepId) -> Result<(State, Option<Task>, Option<Event>), Error> {
        let one = || std::iter::once(step.clone()).collect();
        let wants = Wants { steps: one(), events: one(), tasks: one(), ..Wants::default() };
        let mut loaded = self.store.load(id, &wants).await?;
        let found = loaded.steps.pop().and_then(|(_, step)| step);
        let state = found.ok_or_else(|| Error::no_step(id, step))?.item.state;
        let task = loaded.tasks.pop().and_then(|(_, task)| task).map(|task| task.item);
        let event = loaded.events.pop().and_then(|(_, event)| event).map(|event| event.item);
        Ok((state, task, event))
    }

    async fn answer_open(
        &self,
        run: &RunId,
        task: &Task,
        verdict: &ReportedOutcome,
    ) -> Result<AnswerResult, Error> {
        let step = &task.step_id;
        let continued = match verdict {
            ReportedOutcome::Done(result) => {
                self.check_result(run, task, result).await?;
                self.settle_step(run, step, WorkOfStep::Any, Ok(result)).await?
            }
            ReportedOutcome::Failed { message } => {
                self.settle_step(run, step, WorkOfStep::Any, Err(&given_up(message))).await?
            }
        };
        match continued {
            ContinueResult::Now(_) => Ok(AnswerResult::Now),
            ContinueResult::Before => {
                self.drive_once(&RunWork::of_step(run, step)).await?;
                self.refuse_beside(run, step).await
            }
        }
    }

    /// A step whose own failure waits for its mixins is neither open nor at its end.
    async fn refuse_beside(&self, run: &RunId, step: &StepId) -> Result<AnswerResult, Error> {
        let is_open = |state: State| !state.is_terminal();
        match self.store.step(run, step).await?.map(|step| step.item) {
            Some(step) if is_open(step.state) && step.error.is_some() => {
                Err(self.unanswerable(run, &step.id, Unanswerable::Beside).await?)
            }
            // An outcome waits that no driver has evaluated.
            Some(_) | None => Err(Error::overtaken()),
        }
    }

    /// Replaces the failure of a step, or explains why that is impossible.
    async fn answer_failed(
        &self,
        id: &RunId,
        step: &StepId,
        told: &PersonAnswer,
    ) -> Result<AnswerResult, Error> {
        let suspended = self.suspended(id).await?;
        let now = self.store.now().await?;
        let is_held = suspended.run.item.control == Control::Hold;
        let plan = self.plan_of(&suspended.run.item).await?;
        let mut evaluator = Evaluation::resume(plan, suspended, now, self.options);
        loop {
            match guarded(&mut evaluator, |evaluation| evaluation.answer(step, told, &self.actor))? {
                evaluation::AnswerAdvance::Taken => break,
                evaluation::AnswerAdvance::Need(wants) => self.supply(&mut evaluator, &wants).await?,
                evaluation::AnswerAdvance::Refused(refused) => {
                    return Err(self.unanswerable(id, step, refused).await?);
                }
            }
            if self.is_outdated(&evaluator).await? {
                return Err(Error::overtaken());
            }
        }
        if is_held {
            // The outcome waits until the run goes on.
            let changes = evaluator.take_changes().expect("an answer changes a step");
            self.store.commit(&changes, Terms::default(), Durability::Durable).await?;
        } else {
            self.evaluate(&mut evaluator, now, Durability::Durable).await?;
            self.wake(Wake::Evaluated(Box::new(evaluator)));
        }
        Ok(AnswerResult::Now)
    }

    /// A result that does not fit the facet is refused before it can fail the step; a missing field is found when
    /// the step ends, because its blocks may give the rest.
    async fn check_result(&self, id: &RunId, task: &Task, result: &Map<String, Value>) -> Result<(), Error> {
        check_size(result).map_err(|oversize| Refusal::TooLarge { path: task.path.clone(), oversize })?;
        let (_, plan) = self.planned(id).await?;
        let path = task.path.clone();
        plan.check_result(&task.name, result).map_err(|misfit| InvalidRequest::Misfit {
            run: id.clone(),
            path: path.clone(),
            misfit,
        })?;
        // An agent's result may lack keys that no step reads; a person who leaves one out made a mistake.
        let mut lacks = plan.must_return(&task.name);
        lacks.retain(|name| !result.contains_key(name));
        if lacks.is_empty() {
            Ok(())
        } else {
            Err(InvalidRequest::Lacks { run: id.clone(), path, lacks }.into())
        }
    }

    async fn unanswerable(&self, id: &RunId, step: &StepId, reason: Unanswerable) -> Result<Error, Error> {
        let (run, plan) = self.planned(id).await?;
        let path = plan.readable(&run.workflow, step);
        Ok(StateRefusal::Unanswerable { run: id.clone(), path, reason }.into())
    }
}

fn given_up(message: &str) -> EventError {
    EventError::new(FailureKind::Event.name(), message)
}

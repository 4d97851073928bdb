//! Continues or fails a step from outside, without a claim (document 000 §6).

use afl_engine::event::{Event, EventError, Reception};
use afl_engine::history::{Actor, MoveKind};
use afl_engine::id::{RunId, StepId};
use afl_engine::policy::Effect;
use afl_engine::run::Control;
use afl_engine::state::State;
use afl_engine::step::{Step, Transmission};
use afl_engine::task::{Authority, FailureSource, Move, Task, TaskState};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};

use super::outcome::{self, TaskOutcome};
use super::settle::{Basis, asked};
use super::{Queue, Refusal, SettleResult};
use crate::conflict::retry_on_conflict;
use crate::store::StoredRecord;

/// The result of continuing a step.
#[derive(Clone, PartialEq, Debug)]
pub enum ContinueResult {
    Now(SettleResult),
    /// The step was past its event; nothing was written.
    Before,
}

/// Which work of a step is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkOfStep {
    /// That of its facet's event: no system outside knows of a script.
    Event,
    /// The event or script that it waits for, as a person sees it.
    Any,
}

impl Queue {
    /// Ends the work of a step with a result or, whatever retries are declared, with an error.
    pub async fn continue_step(
        &self,
        run: &RunId,
        step: &StepId,
        meant: WorkOfStep,
        outcome: Result<&Map<String, Value>, &EventError>,
        by: &Actor,
    ) -> Result<ContinueResult, Refusal> {
        self.settle_from_outside(run, step, meant, |mut task, event, now| match outcome {
            Ok(result) => {
                outcome::check(&task, result)?;
                task.apply(Move::Complete, Authority::Actor(by), now)?;
                Ok(TaskOutcome::completed(task, event, result.clone()))
            }
            Err(error) => {
                let fail = Move::Fail { error, source: FailureSource::Operator };
                task.apply(fail, Authority::Actor(by), now)?;
                Ok(TaskOutcome::failed(task, event, error.clone()))
            }
        })
        .await
    }

    /// Completes a step without its work, which no agent has begun.
    pub async fn skip(&self, run: &RunId, step: &StepId, by: &Actor) -> Result<SettleResult, Refusal> {
        let ignored = self.settle_from_outside(run, step, WorkOfStep::Any, |mut task, event, now| {
            task.apply(Move::Ignore, Authority::Actor(by), now)?;
            Ok(TaskOutcome::completed(task, event, Map::new()))
        });
        self.expect_open(run, step, ignored.await?, MoveKind::Ignore).await
    }

    /// Takes an open task from its holder, and lets its step fail. Begun work that must happen at most once is uncertain.
    pub async fn cancel(
        &self,
        run: &RunId,
        step: &StepId,
        error: &EventError,
        by: &Actor,
    ) -> Result<SettleResult, Refusal> {
        let canceled = self.settle_from_outside(run, step, WorkOfStep::Any, |mut task, event, now| {
            if task.policy.effect == Some(Effect::Once) && task.state != TaskState::Pending {
                // It has begun, so a person must find out whether it happened.
                let error = EventError::uncertain(&error.message);
                let fail = Move::Fail { error: &error, source: FailureSource::Operator };
                task.apply(fail, Authority::Actor(by), now)?;
                return Ok(TaskOutcome::failed(task, event, error));
            }
            let cancel = Move::Cancel { cause: &error.message, error: Some(error) };
            task.apply(cancel, Authority::Actor(by), now)?;
            Ok(TaskOutcome::failed(task, event, error.clone()))
        });
        self.expect_open(run, step, canceled.await?, MoveKind::Cancel).await
    }

    /// Refuses a step that was past its event, for callers that treat this as an error.
    async fn expect_open(
        &self,
        run: &RunId,
        step: &StepId,
        continued: ContinueResult,
        attempted: MoveKind,
    ) -> Result<SettleResult, Refusal> {
        match (continued, self.store.task(run, step).await?) {
            (ContinueResult::Now(settled), _) => Ok(settled),
            (ContinueResult::Before, Some(StoredRecord { item: task, .. })) => Err(Refusal::NotOpen {
                path: task.path.clone(),
                state: task.state,
                verb: attempted.participle(),
            }),
            (ContinueResult::Before, None) => Err(Refusal::Unknown { run: run.clone(), step: step.clone() }),
        }
    }

    async fn settle_from_outside(
        &self,
        run: &RunId,
        step: &StepId,
        meant: WorkOfStep,
        decide: impl Fn(Task, Event, Millis) -> Result<TaskOutcome, Refusal>,
    ) -> Result<ContinueResult, Refusal> {
        let unknown = || Refusal::Unknown { run: run.clone(), step: step.clone() };
        let too_early = || Refusal::TooEarly { run: run.clone(), step: step.clone() };
        retry_on_conflict(|| async {
            let at = self.store.step(run, step).await?;
            let work = self.store.work(run, step).await?;
            let record = work.run.ok_or_else(unknown)?;
            match at.map(|step| event_progress(&step.item, meant)).ok_or_else(too_early)? {
                EventProgress::Before => return Err(too_early()),
                EventProgress::Past => return Ok(ContinueResult::Before),
                EventProgress::There => {}
            }
            let (Some(task), Some(event)) = (work.task, work.event) else { return Err(too_early()) };
            if event.item.reception != Reception::Open {
                return Ok(ContinueResult::Before);
            }
            if record.item.control == Control::Cancel {
                return Err(Refusal::Canceled { run: run.clone(), path: task.item.path.clone() });
            }
            let now = self.store.now().await?;
            let basis = Basis { task: task.version, event: event.version };
            let outcome = decide(task.item, event.item, now)?;
            let settled = self.write_outcome(outcome, basis, asked(&record.item), now).await?;
            Ok(ContinueResult::Now(settled))
        })
        .await
    }
}

/// The position of a step relative to its event.
enum EventProgress {
    Before,
    There,
    Past,
}

fn event_progress(step: &Step, meant: WorkOfStep) -> EventProgress {
    let states = step.object_type.path().states();
    let place = |state| states.iter().position(|other| *other == state);
    match step.event {
        Transmission::Answered => EventProgress::Past,
        Transmission::Sent | Transmission::None if step.is_terminal() => EventProgress::Past,
        Transmission::Sent if meant == WorkOfStep::Any || step.state == State::EventTransmit => {
            EventProgress::There
        }
        // Its facet is no event facet.
        Transmission::None if place(step.state) > place(State::EventTransmit) => EventProgress::Past,
        // It is not there yet, or waits for a script: that comes before the event of its facet, and a block has none.
        Transmission::Sent | Transmission::None => EventProgress::Before,
    }
}

//! Continues or fails a step from outside, without a claim (document 000 §6).

use afl_engine::event::{Event, EventError, Reception};
use afl_engine::history::{Actor, MoveKind};
use afl_engine::id::{RunId, StepId};
use afl_engine::run::Control;
use afl_engine::state::State;
use afl_engine::step::{Step, Transmission};
use afl_engine::task::{Authority, FailureSource, Move, Task};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};

use super::outcome::{self, TaskOutcome};
use super::settle::{Basis, asked};
use super::{Queue, Refusal, SettleResult};
use crate::conflict::retry_on_conflict;

/// What came of continuing a step.
#[derive(Clone, PartialEq, Debug)]
pub enum ContinueResult {
    Now(SettleResult),
    /// The step was past its event; nothing was written.
    Before,
}

enum SettleRequest<'a> {
    Result(&'a Map<String, Value>),
    Error(&'a EventError),
    Skip,
    Cancel(&'a EventError),
}

/// Which work of a step is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WorkOfStep {
    /// That of its facet's event: nobody outside knows of a script.
    Event,
    /// Whatever it waits for, as a person sees it.
    Any,
}

impl Queue {
    pub async fn continue_step(
        &self,
        run: &RunId,
        step: &StepId,
        result: &Map<String, Value>,
        by: &Actor,
    ) -> Result<ContinueResult, Refusal> {
        self.tell(run, step, WorkOfStep::Event, &SettleRequest::Result(result), by).await
    }

    /// Whatever retries are declared: it is the end of the step.
    pub async fn fail_step(
        &self,
        run: &RunId,
        step: &StepId,
        error: &EventError,
        by: &Actor,
    ) -> Result<ContinueResult, Refusal> {
        self.tell(run, step, WorkOfStep::Event, &SettleRequest::Error(error), by).await
    }

    /// A person's word on what a step waits for, be it an event or a script.
    pub async fn answer(
        &self,
        run: &RunId,
        step: &StepId,
        outcome: Result<&Map<String, Value>, &EventError>,
        by: &Actor,
    ) -> Result<ContinueResult, Refusal> {
        let told = match outcome {
            Ok(result) => SettleRequest::Result(result),
            Err(error) => SettleRequest::Error(error),
        };
        self.tell(run, step, WorkOfStep::Any, &told, by).await
    }

    /// Lets a step go on without its work, which nobody has begun.
    pub async fn skip(&self, run: &RunId, step: &StepId, by: &Actor) -> Result<SettleResult, Refusal> {
        let continued = self.tell(run, step, WorkOfStep::Any, &SettleRequest::Skip, by).await?;
        self.open(run, step, continued, MoveKind::Ignore).await
    }

    /// Takes an open task from whoever does it, and lets its step fail.
    pub async fn cancel(
        &self,
        run: &RunId,
        step: &StepId,
        error: &EventError,
        by: &Actor,
    ) -> Result<SettleResult, Refusal> {
        let continued = self.tell(run, step, WorkOfStep::Any, &SettleRequest::Cancel(error), by).await?;
        self.open(run, step, continued, MoveKind::Cancel).await
    }

    /// For those who may not be told that nothing was to do.
    async fn open(
        &self,
        run: &RunId,
        step: &StepId,
        continued: ContinueResult,
        attempted: MoveKind,
    ) -> Result<SettleResult, Refusal> {
        match (continued, self.store.task(run, step).await?) {
            (ContinueResult::Now(settled), _) => Ok(settled),
            (ContinueResult::Before, Some(task)) => Err(not_open(&task.item, attempted)),
            (ContinueResult::Before, None) => Err(Refusal::Unknown { run: run.clone(), step: step.clone() }),
        }
    }

    async fn tell(
        &self,
        run: &RunId,
        step: &StepId,
        meant: WorkOfStep,
        told: &SettleRequest<'_>,
        by: &Actor,
    ) -> Result<ContinueResult, Refusal> {
        let unknown = || Refusal::Unknown { run: run.clone(), step: step.clone() };
        let too_early = || Refusal::TooEarly { run: run.clone(), step: step.clone() };
        retry_on_conflict(|| async {
            let at = self.store.step(run, step).await?;
            let work = self.store.work(run, step).await?;
            let record = work.run.ok_or_else(unknown)?;
            match at.map(|step| standing(&step.item, meant)).ok_or_else(too_early)? {
                Standing::Before => return Err(too_early()),
                Standing::Past => return Ok(ContinueResult::Before),
                Standing::There => {}
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
            let outcome = outcome_of(task.item, event.item, told, by, now)?;
            let settled = self.write_outcome(outcome, basis, asked(&record.item), now).await?;
            Ok(ContinueResult::Now(settled))
        })
        .await
    }
}

fn outcome_of(
    mut task: Task,
    event: Event,
    told: &SettleRequest<'_>,
    by: &Actor,
    now: Millis,
) -> Result<TaskOutcome, Refusal> {
    let by = Authority::Actor(by);
    match told {
        SettleRequest::Result(result) => {
            outcome::check(&task, result)?;
            task.apply(Move::Complete, by, now)?;
            Ok(TaskOutcome::completed(task, event, (*result).clone()))
        }
        SettleRequest::Error(error) => {
            task.apply(Move::Fail { error, source: FailureSource::Operator }, by, now)?;
            Ok(TaskOutcome::failed(task, event, (*error).clone()))
        }
        SettleRequest::Skip => {
            task.apply(Move::Ignore, by, now)?;
            Ok(TaskOutcome::completed(task, event, Map::new()))
        }
        SettleRequest::Cancel(error) => {
            task.apply(Move::Cancel { cause: &error.message, error: Some(error) }, by, now)?;
            Ok(TaskOutcome::failed(task, event, (*error).clone()))
        }
    }
}

fn not_open(task: &Task, attempted: MoveKind) -> Refusal {
    Refusal::NotOpen { path: task.path.clone(), state: task.state, verb: attempted.participle() }
}

enum Standing {
    Before,
    There,
    Past,
}

fn standing(step: &Step, meant: WorkOfStep) -> Standing {
    let states = step.object_type.path().states();
    let place = |state| states.iter().position(|other| *other == state);
    match step.event {
        Transmission::Answered => Standing::Past,
        Transmission::Sent | Transmission::None if step.is_terminal() => Standing::Past,
        Transmission::Sent if meant == WorkOfStep::Any || step.state == State::EventTransmit => {
            Standing::There
        }
        // Its facet is no event facet.
        Transmission::None if place(step.state) > place(State::EventTransmit) => Standing::Past,
        // It is not there yet, or waits for a script: that comes before the event of its facet, and a block has none.
        Transmission::Sent | Transmission::None => Standing::Before,
    }
}

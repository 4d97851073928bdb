//! Continues or fails a step from outside, without a claim (document 000 §6).

use afl_engine::event::{EventError, Reception};
use afl_engine::history::Actor;
use afl_engine::id::{RunId, StepId};
use afl_engine::run::Control;
use afl_engine::state::State;
use afl_engine::step::{Step, Transmission};
use afl_engine::task::{Task, TaskState};
use afl_engine::value::{Map, Value};

use super::outcome;
use super::settle::{Basis, asked};
use super::{CONFLICT_TRIES, Queue, Refusal, Settled};

/// What came of continuing a step.
#[derive(Clone, PartialEq, Debug)]
pub enum Continued {
    Now(Settled),
    /// The step was past its event; nothing was written.
    Before,
}

enum Told<'a> {
    Result(&'a Map<String, Value>),
    Error(&'a EventError),
    Skip,
    Cancel(&'a EventError),
}

/// Which work of a step is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meant {
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
    ) -> Result<Continued, Refusal> {
        self.tell(run, step, Meant::Event, &Told::Result(result), by).await
    }

    /// Whatever retries are declared: it is the end of the step.
    pub async fn fail_step(
        &self,
        run: &RunId,
        step: &StepId,
        error: &EventError,
        by: &Actor,
    ) -> Result<Continued, Refusal> {
        self.tell(run, step, Meant::Event, &Told::Error(error), by).await
    }

    /// A person's word on what a step waits for, be it an event or a script.
    pub async fn answer(
        &self,
        run: &RunId,
        step: &StepId,
        outcome: Result<&Map<String, Value>, &EventError>,
        by: &Actor,
    ) -> Result<Continued, Refusal> {
        let told = match outcome {
            Ok(result) => Told::Result(result),
            Err(error) => Told::Error(error),
        };
        self.tell(run, step, Meant::Any, &told, by).await
    }

    /// Lets a step go on without its work, which nobody has begun.
    pub async fn skip(&self, run: &RunId, step: &StepId, by: &Actor) -> Result<Settled, Refusal> {
        let continued = self.tell(run, step, Meant::Any, &Told::Skip, by).await?;
        self.open(run, step, continued, SKIPPED).await
    }

    /// Takes an open task from whoever does it, and lets its step fail.
    pub async fn cancel(
        &self,
        run: &RunId,
        step: &StepId,
        error: &EventError,
        by: &Actor,
    ) -> Result<Settled, Refusal> {
        let continued = self.tell(run, step, Meant::Any, &Told::Cancel(error), by).await?;
        self.open(run, step, continued, "canceled").await
    }

    /// For those who may not be told that nothing was to do.
    async fn open(
        &self,
        run: &RunId,
        step: &StepId,
        continued: Continued,
        verb: &'static str,
    ) -> Result<Settled, Refusal> {
        match (continued, self.store.task(run, step).await?) {
            (Continued::Now(settled), _) => Ok(settled),
            (Continued::Before, Some(task)) => Err(not_open(&task.item, verb)),
            (Continued::Before, None) => Err(Refusal::Unknown { run: run.clone(), step: step.clone() }),
        }
    }

    async fn tell(
        &self,
        run: &RunId,
        step: &StepId,
        meant: Meant,
        told: &Told<'_>,
        by: &Actor,
    ) -> Result<Continued, Refusal> {
        let unknown = || Refusal::Unknown { run: run.clone(), step: step.clone() };
        let too_early = || Refusal::TooEarly { run: run.clone(), step: step.clone() };
        for _ in 0..CONFLICT_TRIES {
            let at = self.store.step(run, step).await?;
            let work = self.store.work(run, step).await?;
            let record = work.run.ok_or_else(unknown)?;
            match at.map(|step| standing(&step.item, meant)).ok_or_else(too_early)? {
                Standing::Before => return Err(too_early()),
                Standing::Past => return Ok(Continued::Before),
                Standing::There => {}
            }
            let (Some(task), Some(event)) = (work.task, work.event) else { return Err(too_early()) };
            if event.item.reception != Reception::Open {
                return Ok(Continued::Before);
            }
            if record.item.control == Control::Cancel {
                return Err(Refusal::Canceled { run: run.clone(), path: task.item.path });
            }
            if matches!(told, Told::Skip) && task.item.state != TaskState::Pending {
                return Err(not_open(&task.item, SKIPPED));
            }
            let now = self.store.now().await?;
            let basis = Basis { task: task.version, event: event.version, era: work.era };
            // Whoever holds the task has lost it now.
            let task = Task { lease: None, ..task.item };
            let outcome = match told {
                Told::Result(result) => {
                    outcome::check(&task, result)?;
                    outcome::completed(task, event.item, (*result).clone(), by, now)
                }
                Told::Error(error) => outcome::failed(task, event.item, (*error).clone(), by, now),
                Told::Skip => outcome::ignored(task, event.item, by, now),
                Told::Cancel(error) => outcome::canceled(task, event.item, (*error).clone(), by, now),
            };
            match self.write_outcome(outcome, basis, asked(&record.item), now).await {
                Ok(settled) => return Ok(Continued::Now(settled)),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let key = self.store.run_key(run, crate::store::task_record(step));
        Err(crate::backend::StoreError::Conflict { key }.into())
    }
}

const SKIPPED: &str = "skipped";

fn not_open(task: &Task, verb: &'static str) -> Refusal {
    Refusal::NotOpen { path: task.path.clone(), state: task.state, verb }
}

enum Standing {
    Before,
    There,
    Past,
}

fn standing(step: &Step, meant: Meant) -> Standing {
    let states = step.object_type.path().states();
    let place = |state| states.iter().position(|other| *other == state);
    match step.event {
        Transmission::Answered => Standing::Past,
        Transmission::Sent | Transmission::None if step.is_terminal() => Standing::Past,
        Transmission::Sent if meant == Meant::Any || step.state == State::EventTransmit => Standing::There,
        // Its facet is no event facet.
        Transmission::None if place(step.state) > place(State::EventTransmit) => Standing::Past,
        // It is not there yet, or waits for a script: that comes before the event of its facet, and a block has none.
        Transmission::Sent | Transmission::None => Standing::Before,
    }
}

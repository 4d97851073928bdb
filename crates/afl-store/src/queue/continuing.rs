//! Continues or fails a step from outside, without a claim (document 000 §6).

use afl_engine::event::{EventError, Reception};
use afl_engine::id::{RunId, StepId};
use afl_engine::run::Control;
use afl_engine::state::State;
use afl_engine::step::{Step, Transmission};
use afl_engine::value::{Map, Value};

use super::outcome;
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
}

impl Queue {
    pub async fn continue_step(
        &self,
        run: &RunId,
        step: &StepId,
        result: &Map<String, Value>,
    ) -> Result<Continued, Refusal> {
        self.tell(run, step, &Told::Result(result)).await
    }

    /// Whatever retries are declared: it is the end of the step.
    pub async fn fail_step(
        &self,
        run: &RunId,
        step: &StepId,
        error: &EventError,
    ) -> Result<Continued, Refusal> {
        self.tell(run, step, &Told::Error(error)).await
    }

    async fn tell(&self, run: &RunId, step: &StepId, told: &Told<'_>) -> Result<Continued, Refusal> {
        let unknown = || Refusal::Unknown { run: run.clone(), step: step.clone() };
        let too_early = || Refusal::TooEarly { run: run.clone(), step: step.clone() };
        for _ in 0..CONFLICT_TRIES {
            let at = self.store.step(run, step).await?;
            let work = self.store.work(run, step).await?;
            let record = work.run.ok_or_else(unknown)?;
            match at.map(|step| standing(&step.item)).ok_or_else(too_early)? {
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
            let now = self.store.now().await?;
            let versions = (task.version, event.version);
            // Whoever holds the task has lost it now.
            let task = afl_engine::task::Task { lease: None, ..task.item };
            let outcome = match told {
                Told::Result(result) => {
                    outcome::check(&task, result)?;
                    outcome::completed(task, event.item, (*result).clone(), now)
                }
                Told::Error(error) => outcome::failed(task, event.item, (*error).clone(), now),
            };
            match self.write_outcome(outcome, versions, now).await {
                Ok(settled) => return Ok(Continued::Now(settled)),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let key = self.store.run_key(run, crate::store::task_record(step));
        Err(crate::backend::StoreError::Conflict { key }.into())
    }
}

enum Standing {
    Before,
    There,
    Past,
}

fn standing(step: &Step) -> Standing {
    let states = step.object_type.path().states();
    let place = |state| states.iter().position(|other| *other == state);
    match step.event {
        Transmission::Answered => Standing::Past,
        Transmission::Sent | Transmission::None if step.is_terminal() => Standing::Past,
        Transmission::Sent => Standing::There,
        // Its facet is no event facet, or it is not there yet.
        Transmission::None if place(step.state) > place(State::EventTransmit) => Standing::Past,
        Transmission::None => Standing::Before,
    }
}

//! Tries failed steps again, keeping all that is complete.

use std::collections::BTreeSet;

use afl_engine::evaluation::{Evaluation, Stored, Wants};
use afl_engine::id::{RunId, StepId};
use afl_engine::run::{Control, RunStatus};
use afl_engine::step::Step;
use afl_store::backend::Durability;

use crate::error::Error;
use crate::serve::Wake;
use crate::service::Service;

const TRIES: usize = 16;
const PAGE: usize = 1_000;

/// How many steps one commit opens again.
const OPENED_AT_ONCE: usize = 1_000;

/// What to try again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Again {
    /// All that failed.
    Run,
    /// What failed in this step, block or element.
    Step(StepId),
}

impl Service {
    /// Tries again what failed. Step, event and task are reset in one durable commit. Says which steps.
    pub async fn retry(&self, run: &RunId, again: &Again) -> Result<Vec<StepId>, Error> {
        for _ in 0..TRIES {
            match self.try_retry(run, again).await {
                Err(error) if error.is_conflict() => {}
                outcome => return outcome,
            }
        }
        Err(Error::Busy { run: run.clone(), tries: TRIES })
    }

    async fn try_retry(&self, id: &RunId, again: &Again) -> Result<Vec<StepId>, Error> {
        let run = self.existing(id).await?;
        if run.item.control == Control::Cancel || run.item.status == RunStatus::Canceled {
            return Err(Error::Ended { run: id.clone(), status: RunStatus::Canceled, verb: "retry" });
        }
        let within = match again {
            Again::Run => StepId::root(),
            Again::Step(step) => step.clone(),
        };
        let failed = self.failed_within(id, &within).await?;
        let plan = self.plan_of(&run.item).await?;
        let ids: Vec<StepId> = failed.iter().map(|step| step.item.id.clone()).collect();
        if failed.is_empty() {
            let path = plan.readable(&run.item.workflow, &within);
            return Err(Error::NothingFailed { run: id.clone(), path });
        }
        let now = self.store.now().await?;
        let mut evaluation = Evaluation::resume(plan, run, now, self.options);
        for some in failed.chunks(OPENED_AT_ONCE) {
            self.supply_with_work(&mut evaluation, some.to_vec()).await?;
            for step in some {
                evaluation.reopen(step.item.id.clone());
            }
            self.evaluate(&mut evaluation, now, Durability::Durable).await?;
        }
        self.wake(Wake::Evaluated(Box::new(evaluation)));
        Ok(ids)
    }

    /// The steps where failures began that no `catch` has dealt with.
    async fn failed_within(&self, run: &RunId, within: &StepId) -> Result<Vec<Stored<Step>>, Error> {
        let mut failed = Vec::new();
        let mut caught = self.caught_above(run, within).await?;
        let mut after: Option<StepId> = None;
        let mut seen = 0;
        loop {
            let page = self.store.steps_within(run, within, after.as_ref(), PAGE).await?;
            seen += page.items.len();
            for step in page.items {
                // A step comes before all that is within it.
                if step.item.caught.is_some() {
                    caught.insert(step.item.id.clone());
                }
                if step.item.failed_itself() && !step.item.id.outside_catches().any(|it| caught.contains(&it))
                {
                    failed.push(step);
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        if seen == 0 { Err(Error::no_step(run, within)) } else { Ok(failed) }
    }

    async fn caught_above(&self, run: &RunId, step: &StepId) -> Result<BTreeSet<StepId>, Error> {
        let steps = std::iter::successors(step.parent(), StepId::parent).collect();
        let above = self.store.load(run, &Wants { steps, ..Wants::default() }).await?.steps;
        let is_caught = |step: &Stored<Step>| step.item.caught.is_some();
        Ok(above
            .into_iter()
            .filter(|(_, step)| step.as_ref().is_some_and(is_caught))
            .map(|(id, _)| id)
            .collect())
    }
}

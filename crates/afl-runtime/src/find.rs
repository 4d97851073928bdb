//! Finds runs and steps by what people type.

use afl_engine::id::{RunId, StepId};
use afl_engine::plan::Plan;
use afl_engine::run::Run;
use afl_lang::suggest::closest;
use afl_store::store::Shelf;

use crate::error::Error;
use crate::service::Service;

const PAGE: usize = 1_000;
/// How many of the newest runs are looked through for a part of an id.
const LOOKED_THROUGH: usize = 10_000;

impl Service {
    /// The run of this id, or the only one among the newest whose id begins or ends so.
    pub async fn find(&self, given: &str) -> Result<RunId, Error> {
        let exact = RunId(given.into());
        if !given.is_empty() && self.store.run(&exact).await?.is_some() {
            return Ok(exact);
        }
        let mut seen: Vec<RunId> = Vec::new();
        let mut after = None;
        while seen.len() < LOOKED_THROUGH {
            let page = self.store.runs(&Shelf::ALL, after.as_ref(), PAGE).await?;
            seen.extend(page.runs.into_iter().map(|run| run.item.id));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let fits = |run: &&RunId| !given.is_empty() && (run.0.starts_with(given) || run.0.ends_with(given));
        let fitting: Vec<&RunId> = seen.iter().filter(fits).collect();
        match fitting[..] {
            [only] => Ok(only.clone()),
            [] => {
                let closest = closest(given, seen.iter().map(|run| &*run.0)).map(str::to_owned);
                Err(Error::UnknownRun { given: given.to_owned(), closest })
            }
            _ => {
                let runs = fitting.into_iter().cloned().collect();
                Err(Error::AmbiguousRun { given: given.to_owned(), runs })
            }
        }
    }

    /// The step of this id or of this readable path, such as `Checkout.payment[3].charge`.
    pub async fn find_step(&self, run: &RunId, given: &str) -> Result<StepId, Error> {
        if let Ok(step) = given.parse::<StepId>()
            && self.store.step(run, &step).await?.is_some()
        {
            return Ok(step);
        }
        let record = self.existing(run).await?.item;
        let plan = self.plan_of(&record).await?;
        let mut after: Option<StepId> = None;
        loop {
            let page = self.store.steps_page(run, after.as_ref(), PAGE).await?;
            let fits = |id: &StepId| names(&plan, &record, id, given);
            if let Some(step) = page.items.iter().map(|step| &step.item.id).find(|id| fits(id)) {
                return Ok(step.clone());
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Err(Error::UnknownStep { run: run.clone(), given: given.to_owned() }),
            }
        }
    }
}

/// With or without the workflow's name in front.
fn names(plan: &Plan, run: &Run, id: &StepId, given: &str) -> bool {
    let path = plan.readable(&run.workflow, id);
    path == given || path.split_once('.').is_some_and(|(_, rest)| rest == given)
}

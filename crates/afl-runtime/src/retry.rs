//! Tries failed steps again, keeping all that is complete.

use std::collections::BTreeSet;
use std::sync::Arc;

use afl_engine::evaluation::{Evaluation, StoredRecord, Wants};
use afl_engine::id::{RunId, StepId};
use afl_engine::run::{Control, RunStatus};
use afl_engine::step::Step;
use afl_engine::task::UNCERTAIN;
use afl_store::backend::Durability;
use afl_store::conflict::CONFLICT_TRIES;
use afl_store::paging::Pages;

use crate::error::{Contention, Error, NotFound, StateRefusal};
use crate::serve::Wake;
use crate::service::Service;
use crate::view::OnlineServers;

const PAGE: usize = 1_000;

/// How many steps one commit opens again.
const OPENED_AT_ONCE: usize = 1_000;

/// The work to try again. Work that may have happened is tried again only when its own step is named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Again {
    /// All that failed.
    Run,
    /// All failures in this step, block or element.
    Step(StepId),
    /// The same, left for a while to the server of this name, which must be online.
    StepOn(StepId, Arc<str>),
}

/// The steps where failures began that no `catch` has dealt with.
#[derive(Default)]
struct FailedSteps {
    steps: Vec<StoredRecord<Step>>,
    /// Left out, because it is unknown whether its work happened.
    undecided: Option<StepId>,
}

impl Service {
    /// Tries failed work again. Step, event and task are reset in one durable commit. Returns these steps.
    pub async fn retry(&self, run: &RunId, again: &Again) -> Result<Vec<StepId>, Error> {
        match again {
            Again::StepOn(_, server) => self.check_online(server).await?,
            Again::Run | Again::Step(_) => {}
        }
        let mut opened = Vec::new();
        for _ in 0..CONFLICT_TRIES {
            let epoch = self.store.epoch();
            match self.try_retry(run, again, &mut opened).await {
                Ok(()) => return Ok(opened),
                Err(error) if error.is_conflict() || self.is_torn(&error, epoch) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Contention::of_run(run).into())
    }

    /// Work is not left to a server that is not there to take it.
    pub(crate) async fn check_online(&self, server: &str) -> Result<(), Error> {
        let OnlineServers(online) = self.online_servers().await?;
        let mut names: Vec<String> = online.into_iter().map(|server| server.server_name).collect();
        if names.iter().any(|name| name == server) {
            return Ok(());
        }
        names.sort();
        names.dedup();
        Err(NotFound::Server { name: server.to_owned(), online: names }.into())
    }

    /// Adds what it opened, some of it also when others write the run meanwhile.
    async fn try_retry(&self, id: &RunId, again: &Again, opened: &mut Vec<StepId>) -> Result<(), Error> {
        let suspended = self.suspended(id).await?;
        let run = &suspended.run;
        if run.item.control == Control::Cancel || run.item.status == RunStatus::Canceled {
            return Err(
                StateRefusal::Ended { run: id.clone(), status: RunStatus::Canceled, verb: "retry" }.into()
            );
        }
        let within = match again {
            Again::Run => StepId::root(),
            Again::Step(step) | Again::StepOn(step, _) => step.clone(),
        };
        let on = match again {
            Again::Run | Again::Step(_) => None,
            Again::StepOn(_, server) => Some(server),
        };
        let failed = self.failed_within(id, &within).await?;
        let plan = self.plan_of(&run.item).await?;
        let path = |step: &StepId| plan.readable(&run.item.workflow, step);
        match failed.undecided {
            _ if !failed.steps.is_empty() || !opened.is_empty() => {}
            Some(step) => {
                return Err(StateRefusal::Undecided { run: id.clone(), path: path(&step), step }.into());
            }
            None => return Err(StateRefusal::NothingFailed { run: id.clone(), path: path(&within) }.into()),
        }
        let now = self.store.now().await?;
        let mut evaluator = Evaluation::resume(plan, suspended, now, self.options);
        for some in failed.steps.chunks(OPENED_AT_ONCE) {
            self.supply(&mut evaluator, &wants_of(some)).await?;
            if self.is_outdated(&evaluator).await? {
                return Err(Error::overtaken());
            }
            for step in some {
                evaluator.reopen(step.item.id.clone(), self.actor.clone(), on.cloned());
            }
            self.evaluate(&mut evaluator, now, Durability::Durable).await?;
            opened.extend(some.iter().map(|step| step.item.id.clone()));
        }
        self.wake(Wake::Evaluated(Box::new(evaluator)));
        Ok(())
    }

    async fn failed_within(&self, run: &RunId, within: &StepId) -> Result<FailedSteps, Error> {
        let mut failed = FailedSteps::default();
        let mut above = self.above(run, within).await?;
        let mut seen = 0;
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.store.steps_within(run, within, pages.after(), PAGE).await?;
            pages.follow(page.next);
            seen += page.items.len();
            for step in page.items {
                let id = &step.item.id;
                // A step comes before all that is within it.
                above.note(&step.item, within);
                if !step.item.failed_itself() || above.is_caught(id) {
                    continue;
                }
                if above.is_undecided(id) {
                    failed.undecided.get_or_insert_with(|| id.clone());
                } else {
                    failed.steps.push(step);
                }
            }
        }
        if seen == 0 { Err(Error::no_step(run, within)) } else { Ok(failed) }
    }

    async fn above(&self, run: &RunId, step: &StepId) -> Result<Ancestors, Error> {
        let steps = std::iter::successors(step.parent(), StepId::parent).collect();
        let found = self.store.load(run, &Wants { steps, ..Wants::default() }).await?.steps;
        let mut above = Ancestors::default();
        for step in found.into_iter().filter_map(|(_, found)| found) {
            above.note(&step.item, &StepId::root());
        }
        Ok(above)
    }
}

/// Facts about the ancestors of the step under examination.
#[derive(Default)]
struct Ancestors {
    caught: BTreeSet<StepId>,
    undecided: BTreeSet<StepId>,
}

impl Ancestors {
    fn note(&mut self, step: &Step, named: &StepId) {
        if step.caught.is_some() {
            self.caught.insert(step.id.clone());
        }
        let is_uncertain = step.error.as_ref().is_some_and(|failure| failure.kind == UNCERTAIN);
        if is_uncertain && step.failed_by_event() && step.id != *named {
            self.undecided.insert(step.id.clone());
        }
    }

    fn is_caught(&self, step: &StepId) -> bool {
        step.outside_catches().any(|it| self.caught.contains(&it))
    }

    /// Its own work, or that of a step whose mixin it is, which would be done again with it.
    fn is_undecided(&self, step: &StepId) -> bool {
        let mut ancestry = std::iter::successors(Some(step.clone()), StepId::parent);
        ancestry.any(|it| self.undecided.contains(&it))
    }
}

/// Steps with their work and all that is above them. They are read again, because a list may be older than the run.
fn wants_of(failed: &[StoredRecord<Step>]) -> Wants {
    let mut wants = Wants::default();
    for step in failed {
        wants.steps.extend(std::iter::successors(Some(step.item.id.clone()), StepId::parent));
        wants.add_work(&step.item);
    }
    wants
}

//! Tries failed steps again, keeping all that is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use afl_engine::evaluation::{Evaluation, StoredRecord, Wants};
use afl_engine::failure::StepFailure;
use afl_engine::id::{RunId, StepId};
use afl_engine::policy::Effect;
use afl_engine::run::{Control, RunStatus};
use afl_engine::step::Step;
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

/// The work to try again. Work that must happen at most once and may have happened needs a decision: it is tried again
/// only when its own step is named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Again {
    /// All that failed.
    Run,
    /// All failures in this step, block or element. Work that needs a decision is left, the step's own too.
    Within(StepId),
    /// The same, and the step's own work whatever is known about it.
    Step(StepId),
    /// As [`Self::Step`], left for a while to the server of this name, which must be online.
    StepOn(StepId, Arc<str>),
}

/// The steps where failures began that no `catch` has dealt with.
#[derive(Default)]
struct FailedSteps {
    steps: Vec<StoredRecord<Step>>,
    /// Left out, because a person must decide about its work, with the name of that.
    undecided: Option<(StepId, Arc<str>)>,
}

impl Service {
    /// Tries failed work again. Step, event and task are reset in one durable commit. Returns these steps.
    pub async fn retry(&self, run: &RunId, again: &Again) -> Result<Vec<StepId>, Error> {
        match again {
            Again::StepOn(_, server) => self.check_online(server).await?,
            Again::Run | Again::Within(_) | Again::Step(_) => {}
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
            Again::Within(step) | Again::Step(step) | Again::StepOn(step, _) => step.clone(),
        };
        let (named, on) = match again {
            Again::Run | Again::Within(_) => (None, None),
            Again::Step(step) => (Some(step), None),
            Again::StepOn(step, server) => (Some(step), Some(server)),
        };
        let failed = self.failed_within(id, &within, named).await?;
        let plan = self.plan_of(&run.item).await?;
        let path = |step: &StepId| plan.readable(&run.item.workflow, step);
        match failed.undecided {
            _ if !failed.steps.is_empty() || !opened.is_empty() => {}
            Some((step, name)) => {
                let (run, path, must_return) = (id.clone(), path(&step), plan.must_return(&name));
                return Err(StateRefusal::Undecided { run, step, path, must_return }.into());
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

    async fn failed_within(
        &self,
        run: &RunId,
        within: &StepId,
        named: Option<&StepId>,
    ) -> Result<FailedSteps, Error> {
        let mut failed = FailedSteps::default();
        let mut above = self.above(run, within).await?;
        let mut seen = 0;
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.store.steps_within(run, within, pages.after(), PAGE).await?;
            pages.follow(page.next);
            seen += page.items.len();
            // A step comes before all that is within it.
            let others = page.items.iter().filter(|step| Some(&step.item.id) != named);
            above.undecided.extend(self.undecided(run, others.map(|step| &step.item)).await?);
            for step in page.items {
                let id = &step.item.id;
                above.note(&step.item);
                if !step.item.failed_itself() || above.is_caught(id) {
                    continue;
                }
                match above.undecided_work(id) {
                    Some(name) => drop(failed.undecided.get_or_insert_with(|| (id.clone(), name.clone()))),
                    None => failed.steps.push(step),
                }
            }
        }
        if seen == 0 { Err(Error::no_step(run, within)) } else { Ok(failed) }
    }

    async fn above(&self, run: &RunId, step: &StepId) -> Result<Ancestors, Error> {
        let steps = std::iter::successors(step.parent(), StepId::parent).collect();
        let found = self.store.load(run, &Wants { steps, ..Wants::default() }).await?.steps;
        let found: Vec<Step> = found.into_iter().filter_map(|(_, found)| Some(found?.item)).collect();
        let mut above = Ancestors { caught: BTreeSet::new(), undecided: self.undecided(run, &found).await? };
        for step in &found {
            above.note(step);
        }
        Ok(above)
    }

    /// Those steps whose own work needs a person's decision, with the name of that work.
    async fn undecided(
        &self,
        run: &RunId,
        steps: impl IntoIterator<Item = &Step>,
    ) -> Result<BTreeMap<StepId, Arc<str>>, Error> {
        let is_doubtful = |step: &&Step| {
            let is_uncertain = step.error.as_ref().is_some_and(StepFailure::is_uncertain);
            step.failed_by_event() && (is_uncertain || step.policy.effect == Some(Effect::Once))
        };
        let tasks = steps.into_iter().filter(is_doubtful).map(|step| step.id.clone()).collect();
        let wants = Wants { tasks, ..Wants::default() };
        if wants.tasks.is_empty() {
            return Ok(BTreeMap::new());
        }
        let found = self.store.load(run, &wants).await?.tasks;
        let tasks = found.into_iter().filter_map(|(step, task)| Some((step, task?.item)));
        // A task that is open again was decided about, and is not for this retry.
        let undecided = tasks.filter(|(_, task)| task.needs_decision() || !task.state.is_terminal());
        Ok(undecided.map(|(step, task)| (step, task.name.clone())).collect())
    }
}

/// Facts about the ancestors of the step under examination.
struct Ancestors {
    caught: BTreeSet<StepId>,
    /// The work that needs a decision.
    undecided: BTreeMap<StepId, Arc<str>>,
}

impl Ancestors {
    fn note(&mut self, step: &Step) {
        if step.caught.is_some() {
            self.caught.insert(step.id.clone());
        }
    }

    fn is_caught(&self, step: &StepId) -> bool {
        step.outside_catches().any(|it| self.caught.contains(&it))
    }

    /// Its own work, or that of a step whose mixin it is, which would be done again with it.
    fn undecided_work(&self, step: &StepId) -> Option<&Arc<str>> {
        let mut ancestry = std::iter::successors(Some(step.clone()), StepId::parent);
        ancestry.find_map(|it| self.undecided.get(&it))
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

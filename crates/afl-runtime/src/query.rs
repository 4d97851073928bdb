//! Reads runs: lists, one run, its steps, its outputs.

use std::collections::HashMap;

use afl_engine::attribute::Fields;
use afl_engine::evaluation::Wants;
use afl_engine::event::{Event, EventState};
use afl_engine::id::{RunId, StepId};
use afl_engine::run::Run;
use afl_engine::state::State;
use afl_engine::step::Step;
use afl_engine::task::Task;
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_store::backend::BucketCursor;
use afl_store::paging::Pages;
use afl_store::store::RunState;
use serde::Serialize;

use crate::cursor::PageCursor;
use crate::error::Error;
use crate::service::Service;

/// How many runs a list looks at for one page, at most; then it gives what it has.
const LOOKED_AT: usize = 10_000;
const PAGE: usize = 500;

/// Which runs to list, newest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunQuery {
    pub state: Option<RunState>,
    /// The whole or the short name.
    pub workflow: Option<String>,
    pub since: Option<Millis>,
    /// All of these.
    pub labels: Vec<(String, String)>,
    pub after: Option<PageCursor>,
    pub limit: usize,
}

#[derive(Clone, Debug, Default)]
pub struct RunList {
    pub runs: Vec<Run>,
    /// Why some runs cannot be shown; each text names its run.
    pub unreadable: Vec<String>,
    /// To be given as `after` for the next page.
    pub next: Option<PageCursor>,
}

/// A step with its event and its task, lease included. [`StepSummary`](crate::view::StepSummary) is its JSON.
#[derive(Clone, PartialEq, Debug)]
pub struct StepView {
    pub id: StepId,
    /// For people: `Checkout.payment[3].charge`.
    pub path: String,
    pub step: Step,
    pub event: Option<Event>,
    /// The state of the event, derived from its task.
    pub event_state: Option<EventState>,
    pub task: Option<Task>,
}

/// Steps in the order of the program, parents before children.
#[derive(Clone, PartialEq, Debug)]
pub struct StepList {
    pub steps: Vec<StepView>,
    pub next: Option<StepId>,
}

/// Where a step came to rest in an iteration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StepMove {
    pub step: StepId,
    pub path: String,
    pub state: State,
}

impl Service {
    pub async fn run(&self, run: &RunId) -> Result<Run, Error> {
        Ok(self.existing(run).await?.item)
    }

    /// The run when it has ended; waits as long as that takes. A process must drive the store.
    pub async fn ended(&self, run: &RunId) -> Result<Run, Error> {
        let mut changes = self.watch_runs();
        loop {
            let found = self.run(run).await?;
            if found.status.is_terminal() {
                return Ok(found);
            }
            changes.changed().await;
        }
    }

    pub async fn runs(&self, query: &RunQuery) -> Result<RunList, Error> {
        let shelves = query.state.as_ref().map_or(RunState::ALL, std::slice::from_ref);
        let mut list = RunList { next: query.after.clone(), ..RunList::default() };
        let mut looked_at = 0;
        while list.runs.len() < query.limit && looked_at < LOOKED_AT {
            let after = list.next.as_ref().map(|PageCursor(after)| after);
            let page = self.store.runs(shelves, after, query.limit.min(PAGE)).await?;
            looked_at += page.items.len();
            list.unreadable.extend(page.unreadable.iter().map(ToString::to_string));
            list.next = page.next.map(PageCursor);
            for run in page.items.into_iter().map(|run| run.item) {
                if query.since.is_some_and(|since| run.created < since) {
                    list.next = None;
                    return Ok(list);
                }
                if query.admits(&run) && list.runs.len() < query.limit {
                    list.runs.push(run);
                }
            }
            if list.next.is_none() {
                break;
            }
        }
        if list.runs.len() == query.limit
            && let Some(last) = list.runs.last()
        {
            let (rank, scope) = (last.created.0, last.id.0.clone());
            list.next = Some(PageCursor(BucketCursor { rank, scope, id: "run".to_owned() }));
        }
        Ok(list)
    }

    /// The task of a step, or a system task; `None` if there is none.
    pub async fn task(&self, run: &RunId, step: &StepId) -> Result<Option<Task>, Error> {
        Ok(self.store.task(run, step).await?.map(|task| task.item))
    }

    /// A page of a run's steps with their events and tasks; `within` one step, or all of them.
    pub async fn steps(
        &self,
        id: &RunId,
        within: Option<&StepId>,
        after: Option<&StepId>,
        limit: usize,
    ) -> Result<StepList, Error> {
        let (run, plan) = self.planned(id).await?;
        let page = match within {
            Some(within) => self.store.steps_within(id, within, after, limit).await?,
            None => self.store.steps_page(id, after, limit).await?,
        };
        let mut wants = Wants::default();
        for step in &page.items {
            wants.add_work(&step.item);
        }
        let loaded = self.store.load(id, &wants).await?;
        let mut events: HashMap<_, _> = loaded.events.into_iter().collect();
        let mut tasks: HashMap<_, _> = loaded.tasks.into_iter().collect();
        let mut steps = Vec::with_capacity(page.items.len());
        for step in page.items.into_iter().map(|step| step.item) {
            let event = events.remove(&step.id).flatten().map(|event| event.item);
            let task = tasks.remove(&step.id).flatten().map(|task| task.item);
            steps.push(StepView {
                path: plan.readable(&run.workflow, &step.id),
                event_state: event.as_ref().zip(task.as_ref()).map(|(event, task)| event.state_with(task)),
                id: step.id.clone(),
                step,
                event,
                task,
            });
        }
        Ok(StepList { steps, next: page.next })
    }

    /// The results of the workflow; empty before it is complete. Results of its mixins are no outputs of its own.
    pub async fn outputs(&self, id: &RunId) -> Result<Map<String, Value>, Error> {
        let (run, plan) = self.planned(id).await?;
        let declared = plan.returns(&run.workflow).expect("the plan of a run has its workflow");
        let Some(root) = self.store.step(id, &StepId::root()).await? else { return Ok(Map::new()) };
        let mut returns = root.item.attributes.returns;
        returns.retain(|name, _| declared.iter().any(|output| output.name == *name));
        self.values(id, &returns).await
    }

    /// The inputs that started the run, defaults included.
    pub async fn inputs(&self, run: &RunId) -> Result<Map<String, Value>, Error> {
        self.existing(run).await?;
        match self.store.step(run, &StepId::root()).await? {
            Some(root) => self.values(run, &root.item.attributes.params).await,
            None => Ok(Map::new()),
        }
    }

    /// The values of a step's attributes, the large ones included.
    pub async fn values(&self, run: &RunId, fields: &Fields) -> Result<Map<String, Value>, Error> {
        let mut values = Map::new();
        for (name, attribute) in fields {
            let value = self.store.value(run, &attribute.held, || name.clone()).await?;
            values.insert(name.clone(), value);
        }
        Ok(values)
    }

    /// Where steps came to rest in one iteration.
    pub async fn iteration(&self, id: &RunId, iteration: u64) -> Result<Vec<StepMove>, Error> {
        let (run, plan) = self.planned(id).await?;
        let mut moved = Vec::new();
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.store.steps_page(id, pages.after(), PAGE).await?;
            for step in page.items.into_iter().map(|step| step.item) {
                for rest in step.rests.iter().filter(|rest| rest.iteration == iteration) {
                    let path = plan.readable(&run.workflow, &step.id);
                    moved.push(StepMove { step: step.id.clone(), path, state: rest.state });
                }
            }
            pages.follow(page.next);
        }
        Ok(moved)
    }
}

impl RunQuery {
    fn admits(&self, run: &Run) -> bool {
        let is_named =
            |name: &String| *run.workflow == **name || run.workflow.rsplit('.').next() == Some(name);
        self.state.is_none_or(|state| RunState::of(run) == state)
            && self.workflow.as_ref().is_none_or(is_named)
            && self.labels.iter().all(|(name, value)| run.labels.get(name) == Some(value))
    }
}

//! Finds runs, steps and names by what people type.

use std::collections::BTreeSet;
use std::sync::Arc;

use afl_engine::id::{RunId, StepId};
use afl_lang::suggest::closest;
use afl_store::paging::Pages;
use afl_store::store::RunState;

use crate::error::{Error, InvalidRequest, NotFound};
use crate::query::RunQuery;
use crate::service::Service;
use crate::tasks::TaskQuery;

const PAGE: usize = 1_000;
/// How many runs, the newest first, or steps are searched for suggestions.
const LOOKED_THROUGH: usize = 10_000;

impl Service {
    /// The run of this id, or the only one among the newest whose id begins or ends so.
    pub async fn find(&self, given: &str) -> Result<RunId, Error> {
        let exact = RunId(given.into());
        if !given.is_empty() && self.store.run(&exact).await?.is_some() {
            return Ok(exact);
        }
        let mut seen: Vec<RunId> = Vec::new();
        let mut pages = Pages::first();
        while !pages.is_over() && seen.len() < LOOKED_THROUGH {
            let page = self.store.runs(RunState::ALL, pages.after(), PAGE).await?;
            seen.extend(page.items.into_iter().map(|run| run.item.id));
            pages.follow(page.next);
        }
        let fits = |run: &&RunId| !given.is_empty() && (run.0.starts_with(given) || run.0.ends_with(given));
        let fitting: Vec<&RunId> = seen.iter().filter(fits).collect();
        match fitting[..] {
            [only] => Ok(only.clone()),
            [] => {
                if let Some(task) = self.start_task(&exact).await? {
                    return Err(Error::not_begun(&exact, &task));
                }
                let closest = closest(given, seen.iter().map(|run| &*run.0)).map(str::to_owned);
                Err(NotFound::Run { given: given.to_owned(), closest }.into())
            }
            _ => {
                let runs = fitting.into_iter().cloned().collect();
                Err(InvalidRequest::AmbiguousRun { given: given.to_owned(), runs }.into())
            }
        }
    }

    /// The workflow of a stored run whose name is close to this one, if none has it.
    pub async fn closest_workflow(&self, given: &str) -> Result<Option<String>, Error> {
        let all = RunQuery { limit: LOOKED_THROUGH, ..RunQuery::default() };
        let names = self.runs(&all).await?.runs.into_iter().map(|run| run.workflow).collect();
        Ok(closest_of(given, &names))
    }

    /// The facet of a task whose name is close to the one of a query, if none has that.
    pub async fn closest_task(&self, query: &TaskQuery) -> Result<Option<String>, Error> {
        let Some(given) = &query.name else { return Ok(None) };
        let all = TaskQuery { run: query.run.clone(), limit: LOOKED_THROUGH, ..TaskQuery::default() };
        let names = self.tasks(&all).await?.tasks.into_iter().map(|task| task.name.clone()).collect();
        Ok(closest_of(given, &names))
    }

    /// The step of this id or of this readable path, such as `Checkout.payment[3].charge`.
    pub async fn find_step(&self, run: &RunId, given: &str) -> Result<StepId, Error> {
        if let Ok(step) = given.parse::<StepId>()
            && self.store.step(run, &step).await?.is_some()
        {
            return Ok(step);
        }
        let (record, plan) = self.planned(run).await?;
        let mut paths: Vec<String> = Vec::new();
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.store.steps_page(run, pages.after(), PAGE).await?;
            for step in page.items.into_iter().map(|step| step.item.id) {
                let path = plan.readable(&record.workflow, &step);
                if path == given || within_workflow(&path) == Some(given) {
                    return Ok(step);
                }
                if paths.len() < LOOKED_THROUGH && paths.last() != Some(&path) {
                    paths.push(path);
                }
            }
            pages.follow(page.next);
        }
        let short = paths.iter().filter_map(|path| within_workflow(path));
        let closest = closest(given, paths.iter().map(String::as_str).chain(short)).map(str::to_owned);
        Err(NotFound::Step { run: run.clone(), given: given.to_owned(), closest }.into())
    }
}

/// The whole or the short name that may be meant.
fn closest_of(given: &str, names: &BTreeSet<Arc<str>>) -> Option<String> {
    let short = names.iter().filter_map(|name| name.rsplit('.').next());
    let closest = closest(given, names.iter().map(|name| &**name).chain(short));
    closest.filter(|name| *name != given).map(str::to_owned)
}

/// The path without the workflow's name in front, by which people may leave it out.
fn within_workflow(path: &str) -> Option<&str> {
    path.split_once('.').map(|(_, rest)| rest)
}

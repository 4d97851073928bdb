//! Lists tasks: the open ones of all runs, or all of one run.

use afl_engine::id::{RunId, StepId};
use afl_engine::task::{Task, TaskState};
use afl_store::paging::Pages;
use afl_store::store::{TaskBucket, bucket};

use crate::cursor::PageCursor;
use crate::error::{Error, InvalidRequest};
use crate::query::RunQuery;
use crate::service::Service;

const PAGE: usize = 500;

/// Which tasks to list. Those that are completed or ignored are found by their run, system tasks by their state.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskQuery {
    pub run: Option<RunId>,
    pub state: Option<TaskState>,
    /// The whole or the short name of the facet.
    pub name: Option<String>,
    /// The [`TaskList::next`] of the page before.
    pub after: Option<PageCursor>,
    pub limit: usize,
}

#[derive(Clone, Debug, Default)]
pub struct TaskList {
    pub tasks: Vec<Task>,
    /// Why some cannot be shown; each text names its run.
    pub unreadable: Vec<String>,
    /// To be given as `after` for the next page. Only the tasks of one run have pages: each queue has an order of its
    /// own, so a list over all queues has no place to continue from.
    pub next: Option<PageCursor>,
}

impl Service {
    /// The open ones, the oldest first; those of one run in the order of its program.
    pub async fn tasks(&self, query: &TaskQuery) -> Result<TaskList, Error> {
        match (&query.run, &query.after) {
            (Some(run), _) => self.tasks_of(run, query).await,
            (None, Some(cursor)) => Err(InvalidRequest::from(cursor.refused()).into()),
            (None, None) => match query.state {
                Some(TaskState::Failed | TaskState::Canceled) => {
                    let mut list = self.open_tasks(query).await?;
                    let failed = self.failed_tasks(query).await?;
                    list.tasks.splice(..0, failed);
                    list.tasks.truncate(query.limit);
                    Ok(list)
                }
                Some(
                    TaskState::Pending
                    | TaskState::Running
                    | TaskState::AwaitingResponse
                    | TaskState::Completed
                    | TaskState::Ignored,
                )
                | None => self.open_tasks(query).await,
            },
        }
    }

    /// Those of the newest runs with failed steps first; a run counts them.
    async fn failed_tasks(&self, query: &TaskQuery) -> Result<Vec<Task>, Error> {
        let mut tasks = Vec::new();
        let mut pages = Pages::first();
        while !pages.is_over() {
            let after = pages.after().cloned();
            let list = self.runs(&RunQuery { after, limit: PAGE, ..RunQuery::default() }).await?;
            for run in list.runs.iter().filter(|run| run.counts.failed > 0) {
                tasks.extend(self.tasks_of(&run.id, query).await?.tasks);
                if tasks.len() >= query.limit {
                    tasks.truncate(query.limit);
                    return Ok(tasks);
                }
            }
            pages.follow(list.next);
        }
        Ok(tasks)
    }

    /// The results that the work of a facet must return, in the program of a run.
    pub async fn must_return(&self, run: &RunId, facet: &str) -> Result<Vec<String>, Error> {
        Ok(self.planned(run).await?.1.must_return(facet))
    }

    async fn tasks_of(&self, run: &RunId, query: &TaskQuery) -> Result<TaskList, Error> {
        let after = query.after.as_ref().map(|cursor| cursor.step_of(run)).transpose();
        let mut pages = Pages::behind(after.map_err(InvalidRequest::from)?);
        let mut list = TaskList::default();
        // One more than wanted says whether there is a next page.
        while !pages.is_over() && list.tasks.len() <= query.limit {
            let page = self.store.tasks_page(run, pages.after(), PAGE).await?;
            let tasks = page.items.into_iter().map(|stored| stored.item);
            list.tasks.extend(tasks.filter(|task| query.fits(task)));
            pages.follow(page.next);
        }
        if list.tasks.len() > query.limit {
            list.tasks.truncate(query.limit);
            list.next = list.tasks.last().map(|task| PageCursor::of_step(run, &task.step_id));
        }
        Ok(list)
    }

    /// And system tasks, when those are wanted that have ended: these belong to no run.
    async fn open_tasks(&self, query: &TaskQuery) -> Result<TaskList, Error> {
        let mut buckets: Vec<String> = bucket::TIMED_TASKS.map(str::to_owned).into();
        if query.state.is_some_and(TaskState::is_terminal) {
            buckets.push(bucket::ENDED.to_owned());
        }
        for prefix in [bucket::TASKS, bucket::RUNNING, bucket::HELD] {
            buckets.extend(self.store.buckets(prefix).await?);
        }
        let TaskList { mut tasks, mut unreadable, next } = TaskList::default();
        for bucket in buckets.iter().filter(|bucket| query.may_be_in(bucket)) {
            let some = self.store.tasks_in(bucket, None, query.limit).await?;
            unreadable.extend(some.unreadable.iter().map(ToString::to_string));
            tasks.extend(some.items.into_iter().map(|stored| stored.item).filter(|task| query.fits(task)));
        }
        // Between two looks a task can move from one bucket to another and be seen in both.
        tasks.sort_by(|one, other| place(one).cmp(&place(other)));
        tasks.dedup_by(|later, earlier| {
            (&later.workflow_id, &later.step_id) == (&earlier.workflow_id, &earlier.step_id)
        });
        tasks.truncate(query.limit);
        Ok(TaskList { tasks, unreadable, next })
    }
}

fn place(task: &Task) -> (i64, &RunId, &StepId) {
    (task.created.0, &task.workflow_id, &task.step_id)
}

impl TaskQuery {
    fn fits(&self, task: &Task) -> bool {
        self.state.is_none_or(|state| task.state == state)
            && self.name.as_deref().is_none_or(|name| is_called(&task.name, name))
    }

    /// Buckets of tasks that wait or are in work say the facet.
    fn may_be_in(&self, bucket: &str) -> bool {
        let facet = [bucket::TASKS, bucket::RUNNING].iter().find_map(|prefix| {
            let (_, end) = bucket.strip_prefix(prefix)?.split_once('/')?;
            Some(TaskBucket::parse_end(end).facet)
        });
        match (&self.name, facet) {
            (Some(name), Some(facet)) => is_called(facet, name),
            (None, _) | (_, None) => true,
        }
    }
}

fn is_called(facet: &str, name: &str) -> bool {
    facet == name || facet.rsplit('.').next() == Some(name)
}

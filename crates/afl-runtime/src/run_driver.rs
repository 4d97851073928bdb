//! Drives one run for a process that does the work of that run, too.
//!
//! Problem: such a process must know at any time which tasks the run has open, and must not search for them. A scan of
//! the run's tasks at each result makes a run of n sequential steps cost n²; a look at the whole store makes it cost what
//! other runs do.
//!
//! Approach: an evaluator that is kept between results sees every write of its run, because each commit expects the run's
//! version. As long as it is kept, the tasks of its commits are all there are. A new evaluator may have missed some, so
//! all open tasks and all outcomes that wait are read once, after the evaluator has read the run.
//! [`RunDriver::revalidate`] reads one record to find out whether another process wrote the run.
//!
//! A process may die while it holds a task, or between an outcome and its evaluation. So the driver reads the open tasks
//! again now and then, by their keys and in pages. It ends the attempts of silent holders itself and needs no sweep of the store.
//!
//! Rejected: to wake by the bucket of arrived outcomes, as [`Service::serve`] does. It holds the outcomes of all runs, so
//! the cost would grow with what others do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use afl_engine::evaluation::{Evaluation, StoredRecord, Wants};
use afl_engine::id::{RunId, StepId};
use afl_engine::task::Task;
use afl_engine::time::Millis;
use afl_store::paging::Pages;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::drive::{Arrival, DriveStatus, Others, RunWork};
use crate::error::Error;
use crate::service::Service;

const PAGE: usize = 500;

/// How long the driver trusts what it knows. An outcome that another process wrote without driving the run, because it
/// died, is found by then.
const BACKSTOP: Duration = Duration::from_secs(30);

/// One run and its evaluator. Several processes may drive a run: one commits, the others notice and begin anew.
#[derive(Debug)]
pub struct RunDriver {
    service: Service,
    run: RunId,
    hot: Option<Box<Evaluation>>,
    created: mpsc::UnboundedReceiver<Arc<Task>>,
    /// The steps whose tasks are open, as far as the evaluator and the last search know.
    open: BTreeSet<StepId>,
    /// When all open tasks were read the last time.
    searched: Option<Instant>,
}

/// How a run stands after it was driven, and what there is to do for it.
#[derive(Debug)]
pub struct RunTurn {
    pub status: DriveStatus,
    /// The tasks that came to be, or all open ones.
    pub tasks: Vec<Arc<Task>>,
    /// Whether all open tasks were read, so that nothing was overlooked.
    pub is_complete: bool,
}

impl RunDriver {
    pub fn new(service: Service, run: RunId) -> Self {
        let (sender, created) = mpsc::unbounded_channel();
        Self {
            service: service.creating(sender),
            run,
            hot: None,
            created,
            open: BTreeSet::new(),
            searched: None,
        }
    }

    /// Evaluates these outcomes up to the next fixed point, and all others that wait if some may be unknown.
    pub async fn drive(&mut self, arrived: Vec<StepId>) -> Result<RunTurn, Error> {
        for step in &arrived {
            self.open.remove(step);
        }
        let mut arrivals: Vec<Arrival> = arrived.into_iter().map(Arrival::of).collect();
        let mut turn = RunTurn { status: DriveStatus::Gone, tasks: Vec::new(), is_complete: false };
        loop {
            let work = RunWork { run: self.run.clone(), arrivals };
            let driven = self.service.drive(&work, self.hot.take(), Others::Ignore).await?;
            turn.status = driven.status;
            let before = turn.tasks.len();
            turn.tasks.extend(std::iter::from_fn(|| self.created.try_recv().ok()));
            self.open.extend(turn.tasks[before..].iter().map(|task| task.step_id.clone()));
            self.hot = driven.hot;
            if self.hot.is_none() || !(driven.was_cold || self.is_search_due()) {
                return Ok(turn);
            }
            self.searched = Some(Instant::now());
            self.service.queue.return_aside(&self.run).await?;
            arrivals = Vec::new();
            if driven.was_cold {
                arrivals = self.service.arrivals_of(&self.run).await?;
                self.open = self.open_steps().await?;
            }
            let tasks = self.tasks(self.open.clone()).await?;
            let (ended, open): (Vec<Task>, Vec<Task>) =
                tasks.into_iter().partition(|task| task.state.is_terminal());
            arrivals.extend(ended.into_iter().map(|task| Arrival::of(task.step_id.clone())));
            self.open = open.iter().map(|task| task.step_id.clone()).collect();
            turn.tasks = open.into_iter().map(Arc::new).collect();
            turn.is_complete = true;
            if arrivals.is_empty() {
                return Ok(turn);
            }
        }
    }

    /// Lets the next [`drive`](Self::drive) read all open tasks.
    pub fn distrust(&mut self) {
        self.searched = None;
    }

    /// Drops the evaluator if another process wrote the run. Returns whether the run must be driven.
    pub async fn revalidate(&mut self) -> Result<bool, Error> {
        let known = self.hot.as_ref().and_then(|hot| hot.run_version());
        let stored = self.service.store.run(&self.run).await?.map(|run| run.version);
        self.hot = self.hot.take().filter(|_| stored == known);
        Ok(self.hot.is_none() || self.is_search_due())
    }

    /// The tasks of some steps as they are now. A holder that fell silent has lost its task by then, and timers that are
    /// due have fired.
    pub async fn tasks(&self, steps: impl IntoIterator<Item = StepId>) -> Result<Vec<Task>, Error> {
        let mut tasks = Vec::new();
        let mut steps = steps.into_iter().peekable();
        while steps.peek().is_some() {
            let wants = Wants { tasks: steps.by_ref().take(PAGE).collect(), ..Wants::default() };
            tasks.extend(self.page_of_tasks(&wants).await?);
        }
        Ok(tasks)
    }

    async fn page_of_tasks(&self, wants: &Wants) -> Result<Vec<Task>, Error> {
        let mut found = self.load_tasks(wants).await?;
        let clock = self.service.store.clock().await?;
        let is_overdue =
            |task: &&StoredRecord<Task>| task.item.next_look().is_some_and(|look| look <= clock.now);
        let overdue: Vec<StoredRecord<Task>> = found.iter().filter(is_overdue).cloned().collect();
        if !overdue.is_empty() {
            for task in overdue {
                self.service.queue.sweep_task(task, clock).await?;
            }
            found = self.load_tasks(wants).await?;
        }
        Ok(found.into_iter().map(|task| task.item).collect())
    }

    async fn load_tasks(&self, wants: &Wants) -> Result<Vec<StoredRecord<Task>>, Error> {
        let found = self.service.store.load(&self.run, wants).await?.tasks;
        Ok(found.into_iter().filter_map(|(_, task)| task).collect())
    }

    /// The store's clock, by which tasks say when they may be done.
    pub async fn now(&self) -> Result<Millis, Error> {
        Ok(self.service.store.now().await?)
    }

    fn is_search_due(&self) -> bool {
        self.searched.is_none_or(|last| last.elapsed() >= BACKSTOP)
    }

    async fn open_steps(&self) -> Result<BTreeSet<StepId>, Error> {
        let mut steps = BTreeSet::new();
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.service.store.tasks_page(&self.run, pages.after(), PAGE).await?;
            let open = page.items.into_iter().filter(|task| !task.item.state.is_terminal());
            steps.extend(open.map(|task| task.item.step_id.clone()));
            pages.follow(page.next);
        }
        Ok(steps)
    }
}

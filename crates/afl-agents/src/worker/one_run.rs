//! A worker bounded to one run: it drives the run and does its tasks, until the run ends or waits for others.
//!
//! Problem: `afl run` must stop when nothing is left that this process can do, and what it costs must not depend on the
//! other runs of the store. A worker of all runs never knows that it is done, and its claims look at every task that waits.
//!
//! Approach: one loop owns all state. [`RunDriver`] evaluates outcomes and says which tasks the run has open, so each task
//! is claimed by its key. A task that cannot be begun now has a time at which it is read again: a retry waits, another
//! process holds it, its `Limit` leaves no room. Reading a task fires its timers. The run waits for others when nothing
//! is in work and no timer fires soon.
//! Every half second the loop looks at the run's record, since other processes may pause, cancel or drive the run.
//!
//! Stand-ins answer at once, so a run with them is to be the same each time, whatever the speed of this process. Their
//! attempts share one task of the scheduler and end in the order of the program. Their results are evaluated together,
//! and those that fail together are retried together.
//!
//! Rejected: the rounds of [`Worker::start`] beside [`Service::serve`](afl_runtime::Service::serve), each with a filter.
//! Neither loop alone knows that the run rests, and a filter reads what it leaves out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use afl_runtime::agent::{ClaimRequest, Task, TaskState};
use afl_runtime::{DriveStatus, Millis, RunDriver, RunId, StepId};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::attempt::AttemptEnd;
use super::directory::Directory;
use super::{Worker, WorkerError};

/// How many stand-ins answer at once: a store makes one durable commit of the outcomes that come together.
const STAND_INS: usize = 64;
/// How many outcomes are gathered before the run is evaluated.
const GATHERED: usize = 2_048;
/// From one look at what other processes do to the next.
const GLANCE: Duration = Duration::from_millis(500);

/// From one look at a timer to the next, at least.
const TIMER_LEAST: Duration = Duration::from_millis(10);

/// Why a worker of one run has nothing more to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason<S> {
    Ended,
    /// The run waits for work that this process cannot do.
    Waiting,
    /// An operator holds the run.
    Held,
    /// The caller asked for it.
    Asked(S),
}

impl Worker {
    /// Drives one run and does its tasks, as far as there are handlers for them. Returns when the run needs others and
    /// none of its timers fires within `patience`, or with `until`; the worker gives back the tasks in work then. Tasks of
    /// other runs are left alone.
    pub async fn finish<S>(
        &self,
        run: &RunId,
        patience: Duration,
        until: impl Future<Output = S>,
    ) -> Result<StopReason<S>, WorkerError> {
        self.refresh().await?;
        let mut one = OneRun::new(self, run, patience);
        let stopped = tokio::select! {
            stopped = one.work() => stopped,
            asked = until => Ok(StopReason::Asked(asked)),
        };
        // The tasks in work are given back.
        one.abort.send_replace(true);
        while one.attempts.join_next().await.is_some() {}
        while one.stand_ins.next().await.is_some() {}
        stopped
    }
}

struct OneRun<'a> {
    worker: &'a Worker,
    directory: Arc<Directory>,
    driver: RunDriver,
    /// By task list and name, as a `Limit` counts them.
    facets: BTreeMap<(Arc<str>, Arc<str>), FacetQueue>,
    attempts: JoinSet<AttemptResult>,
    stand_ins: FuturesUnordered<BoxFuture<'a, AttemptResult>>,
    /// Stand-ins that failed since the last evaluation, by the wait before the next attempt.
    retries: BTreeMap<Option<Millis>, Vec<(Millis, StepId)>>,
    in_work: BTreeSet<StepId>,
    /// When to read tasks again that cannot be begun now. Each is here, ready or in work, and in one place only.
    later: BTreeSet<(Instant, StepId)>,
    /// When timers fire of tasks that this worker cannot do.
    timers: BTreeSet<(Instant, StepId)>,
    /// How far off a timer may be that the worker waits for when there is nothing else to do.
    patience: Duration,
    /// Steps whose outcome waits for the evaluator.
    arrived: Vec<StepId>,
    /// Whether the last evaluation knew all that is stored of the run.
    is_complete: bool,
    glance: Instant,
    abort: watch::Sender<bool>,
}

/// The tasks of one facet that this worker can do.
struct FacetQueue {
    by: Doer,
    /// The most urgent first, then in the order of the program.
    ready: BTreeMap<(Reverse<i64>, StepId), Arc<Task>>,
    in_work: usize,
    /// Other processes use up the facet's `Limit`; it is tried again then.
    full_until: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doer {
    StandIn,
    Handler,
}

/// How a task ended; nothing when it was not handed out.
type AttemptResult = (Arc<Task>, Result<Option<AttemptEnd>, WorkerError>);

impl<'a> OneRun<'a> {
    fn new(worker: &'a Worker, run: &RunId, patience: Duration) -> Self {
        Self {
            worker,
            directory: Arc::new(worker.directory.borrow().clone()),
            driver: RunDriver::new(worker.service.clone(), run.clone()),
            facets: BTreeMap::new(),
            attempts: JoinSet::new(),
            stand_ins: FuturesUnordered::new(),
            retries: BTreeMap::new(),
            in_work: BTreeSet::new(),
            later: BTreeSet::new(),
            timers: BTreeSet::new(),
            patience,
            arrived: Vec::new(),
            is_complete: false,
            glance: Instant::now() + GLANCE,
            abort: watch::Sender::new(false),
        }
    }

    async fn work<S>(&mut self) -> Result<StopReason<S>, WorkerError> {
        let mut is_due = true;
        loop {
            if is_due && let Some(stopped) = self.drive().await? {
                return Ok(stopped);
            }
            self.begin();
            is_due = !self.arrived.is_empty() && !self.gathers();
            if is_due {
                continue;
            }
            if self.is_idle() && !self.is_complete {
                // Another process may have given an outcome and died before it drove the run.
                self.driver.distrust();
                is_due = true;
                continue;
            }
            if self.is_idle() && !self.has_timer_soon() {
                return Ok(StopReason::Waiting);
            }
            is_due = self.wait().await?;
        }
    }

    async fn drive<S>(&mut self) -> Result<Option<StopReason<S>>, WorkerError> {
        let turn = self.driver.drive(std::mem::take(&mut self.arrived)).await?;
        self.is_complete = turn.is_complete;
        match turn.status {
            DriveStatus::Held => return Ok(Some(StopReason::Held)),
            DriveStatus::Gone => return Ok(Some(StopReason::Ended)),
            DriveStatus::Rests(status) if status.is_terminal() => return Ok(Some(StopReason::Ended)),
            DriveStatus::Rests(_) | DriveStatus::Elsewhere => {}
        }
        if turn.is_complete {
            self.later.clear();
            self.timers.clear();
            self.facets.values_mut().for_each(|facet| facet.ready.clear());
        }
        let now = self.driver.now().await?;
        for task in turn.tasks {
            self.note(task, now);
        }
        Ok(None)
    }

    /// Begins as much as there is room for.
    fn begin(&mut self) {
        while let Some((by, task)) = self.next_ready() {
            self.in_work.insert(task.step_id.clone());
            let (worker, directory) = (self.worker.clone(), self.directory.clone());
            let aborted = self.abort.subscribe();
            let attempt = async move {
                let ended = worker.do_task(&task, directory, aborted).await;
                (task, ended)
            };
            match by {
                Doer::StandIn => self.stand_ins.push(attempt.boxed()),
                Doer::Handler => drop(self.attempts.spawn(attempt)),
            }
        }
    }

    fn next_ready(&mut self) -> Option<(Doer, Arc<Task>)> {
        let now = Instant::now();
        let has_room = |by: &Doer| self.in_work_by(*by) < self.most(*by);
        let with_room: Vec<Doer> = [Doer::StandIn, Doer::Handler].into_iter().filter(has_room).collect();
        let facets = self.facets.values_mut();
        let facets = facets.filter(|facet| with_room.contains(&facet.by) && facet.may_begin(now));
        let facet = facets.min_by_key(|facet| facet.ready.keys().next().cloned())?;
        facet.in_work += 1;
        facet.ready.pop_first().map(|(_, task)| (facet.by, task))
    }

    fn in_work_by(&self, by: Doer) -> usize {
        self.facets.values().filter(|facet| facet.by == by).map(|facet| facet.in_work).sum()
    }

    fn most(&self, by: Doer) -> usize {
        match by {
            Doer::StandIn => STAND_INS,
            Doer::Handler => self.worker.config.max_concurrent,
        }
    }

    /// Whether more outcomes come at once.
    fn gathers(&self) -> bool {
        self.in_work_by(Doer::StandIn) > 0 && self.arrived.len() < GATHERED
    }

    fn is_idle(&self) -> bool {
        let has_ready = self.facets.values().any(|facet| !facet.ready.is_empty());
        self.attempts.is_empty() && self.stand_ins.is_empty() && self.later.is_empty() && !has_ready
    }

    fn has_timer_soon(&self) -> bool {
        self.timers
            .first()
            .is_some_and(|(at, _)| at.saturating_duration_since(Instant::now()) <= self.patience)
    }

    /// Until an attempt ends, a task or a timer is due, or it is time to look at the run. Says whether the run is to be driven.
    async fn wait(&mut self) -> Result<bool, WorkerError> {
        let full = self.facets.values().filter_map(FacetQueue::tried_again);
        let later = [&self.later, &self.timers].into_iter().filter_map(|set| set.first()).map(|(at, _)| *at);
        let due = full.chain(later).fold(self.glance, Instant::min);
        tokio::select! {
            Some(attempted) = self.stand_ins.next() => {
                self.take_in(attempted).await?;
                Ok(false)
            }
            Some(attempted) = self.attempts.join_next() => {
                self.take_in(attempted.expect("doing a task does not panic")).await?;
                while let Some(attempted) = self.attempts.try_join_next() {
                    self.take_in(attempted.expect("doing a task does not panic")).await?;
                }
                Ok(false)
            }
            () = sleep_until(due) => {
                self.read_due().await?;
                self.glance().await
            }
        }
    }

    /// Whether another process changed the run.
    async fn glance(&mut self) -> Result<bool, WorkerError> {
        if Instant::now() < self.glance {
            return Ok(false);
        }
        self.glance = Instant::now() + GLANCE;
        Ok(self.driver.revalidate().await?)
    }

    async fn read_due(&mut self) -> Result<(), WorkerError> {
        let now = Instant::now();
        let mut due = Vec::new();
        for set in [&mut self.later, &mut self.timers] {
            while set.first().is_some_and(|(at, _)| *at <= now) {
                due.extend(set.pop_first().map(|(_, step)| step));
            }
        }
        if due.is_empty() {
            return Ok(());
        }
        let now = self.driver.now().await?;
        for task in self.driver.tasks(due).await? {
            self.note(Arc::new(task), now);
        }
        Ok(())
    }

    async fn take_in(&mut self, (task, ended): AttemptResult) -> Result<(), WorkerError> {
        let step = task.step_id.clone();
        self.in_work.remove(&step);
        let facet = self.facets.get_mut(&key(&task)).expect("its task was noted");
        facet.in_work -= 1;
        match ended? {
            Some(AttemptEnd::Completed | AttemptEnd::Failed { again: None, .. } | AttemptEnd::Canceled) => {
                facet.full_until = None;
                self.arrived.push(step);
            }
            Some(AttemptEnd::Failed { again: Some(at), .. }) => {
                facet.full_until = None;
                match facet.by {
                    Doer::StandIn => self.retries.entry(retry_wait(&task)).or_default().push((at, step)),
                    Doer::Handler => {
                        let now = self.driver.now().await?;
                        self.later.insert((instant(at, now), step));
                    }
                }
            }
            Some(AttemptEnd::Lost | AttemptEnd::GivenBack | AttemptEnd::Locked) => {
                self.later.insert((Instant::now(), step));
            }
            None => self.read_refused(task).await?,
        }
        if self.stand_ins.is_empty() && !self.retries.is_empty() {
            let now = self.driver.now().await?;
            for failed in std::mem::take(&mut self.retries).into_values() {
                let last = failed.iter().map(|(at, _)| *at).max().unwrap_or(now);
                self.later.extend(failed.into_iter().map(|(_, step)| (instant(last, now), step)));
            }
        }
        Ok(())
    }

    /// A task that was not handed out has moved since it was read, or its limit leaves no room.
    async fn read_refused(&mut self, tried: Arc<Task>) -> Result<(), WorkerError> {
        let now = self.driver.now().await?;
        let Some(task) = self.driver.tasks([tried.step_id.clone()]).await?.pop() else { return Ok(()) };
        if task != *tried {
            self.note(Arc::new(task), now);
            return Ok(());
        }
        let again = Instant::now() + GLANCE;
        match task.policy.limit {
            Some(_) => {
                let facet = self.facets.get_mut(&key(&task)).expect("its task was noted");
                facet.full_until = Some(again);
                facet.push(tried);
            }
            None => {
                self.later.insert((again, task.step_id.clone()));
            }
        }
        Ok(())
    }

    /// Remembers a task that this worker can do, for now or for later, and the timer of any other.
    fn note(&mut self, task: Arc<Task>, now: Millis) {
        let step = task.step_id.clone();
        if self.in_work.contains(&step) {
            return;
        }
        let Some(by) = self.doer(&task) else { return self.note_timer(&task, now) };
        let server = Some(self.worker.config.server_name.as_str());
        let is_left = by == Doer::Handler && task.is_left_to_another(server, now);
        match (task.state, task.not_before) {
            (TaskState::Pending, Some(at)) if at > now => {
                let at = task.times_out.map_or(at, |times_out| times_out.min(at));
                self.later.insert((instant(at, now), step));
            }
            (TaskState::Pending, _) if is_left => {
                self.later.insert((instant(task.free_at().unwrap_or(now), now), step));
            }
            (TaskState::Pending, _) => {
                let facet = self.facets.entry(key(&task)).or_insert_with(|| FacetQueue::of(by));
                facet.push(task);
            }
            (TaskState::Running | TaskState::AwaitingResponse, _) => {
                self.later.insert((Instant::now() + GLANCE, step));
            }
            (TaskState::Completed | TaskState::Failed | TaskState::Ignored | TaskState::Canceled, _) => {
                self.arrived.push(step);
            }
        }
    }

    fn note_timer(&mut self, task: &Task, now: Millis) {
        let step = task.step_id.clone();
        if task.state.is_terminal() {
            self.arrived.push(step);
        } else if let Some(at) = task.fires() {
            // A moment by the wall clock may be further off than the store's clock says.
            let at = instant(at, now).max(Instant::now() + TIMER_LEAST);
            self.timers.insert((at, step));
        }
    }

    /// The way to do a task in this process, if there is one.
    fn doer(&self, task: &Task) -> Option<Doer> {
        if task.timer().is_some() {
            return None;
        }
        let has = |need: &String| self.worker.config.capabilities.contains(need);
        if self.directory.stand_ins.contains_key(&*task.name) {
            return Some(Doer::StandIn);
        }
        let can_do = self.directory.find(&task.name).is_ok() && task.policy.needs.iter().all(has);
        can_do.then_some(Doer::Handler)
    }
}

impl FacetQueue {
    fn of(by: Doer) -> Self {
        Self { by, ready: BTreeMap::new(), in_work: 0, full_until: None }
    }

    fn push(&mut self, task: Arc<Task>) {
        self.ready.insert((Reverse(task.priority()), task.step_id.clone()), task);
    }

    /// Those in work here count against a limit, so that they do not leave one another without room.
    fn may_begin(&self, now: Instant) -> bool {
        let Some((_, first)) = self.ready.first_key_value() else { return false };
        let is_within = first.policy.limit.is_none_or(|limit| self.in_work < limit as usize);
        is_within && self.full_until.is_none_or(|until| until <= now)
    }

    fn tried_again(&self) -> Option<Instant> {
        self.full_until.filter(|_| !self.ready.is_empty())
    }
}

impl Worker {
    /// Does a task, if it is handed out. `aborted` turns true when it is to be given back undone.
    async fn do_task(
        &self,
        task: &Arc<Task>,
        directory: Arc<Directory>,
        aborted: watch::Receiver<bool>,
    ) -> Result<Option<AttemptEnd>, WorkerError> {
        let granted = Instant::now();
        let mut request = ClaimRequest { task: Some(task.clone()), ..self.request(directory.clone(), 1) };
        if directory.stand_ins.contains_key(&*task.name) {
            request.capabilities.clone_from(&task.policy.needs);
            request.server = task.desired_server.as_deref().map(str::to_owned);
        }
        let claimed = self.claim_as(&directory, &request).await?.pop();
        let Some((claim, handler)) = claimed else { return Ok(None) };
        Ok(Some(self.attempt(&claim, &*handler, granted, aborted).await))
    }
}

fn key(task: &Task) -> (Arc<str>, Arc<str>) {
    (task.task_list_name.clone(), task.name.clone())
}

/// From a failed attempt to the next one.
fn retry_wait(task: &Task) -> Option<Millis> {
    task.policy.retry.as_ref().and_then(|retry| retry.wait_after(task.attempts + 1))
}

/// A task is read again by then, however far off its time is.
const FURTHEST: Millis = Millis(24 * 3_600_000);

/// By the clock of this process.
fn instant(at: Millis, now: Millis) -> Instant {
    Instant::now() + at.since(now).min(FURTHEST).as_duration()
}

//! Does the tasks of one run with real handlers in this process, several at once.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use afl_agents::registration::find;
use afl_agents::worker::{Config, Ended, Profile, SCRIPT_TASK, Worker, WorkerError};
use afl_engine::id::{RunId, StepId};
use afl_engine::task::{Task, TaskState};
use afl_engine::time::Millis;
use afl_runtime::Service;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::crew::Crew;
use crate::failure::Failure;
use crate::progress::Progress;

/// How many tasks are in work at once.
const AT_ONCE: usize = 8;
/// A command that dies keeps its tasks for so long.
const LEASE_MS: u64 = 15_000;
const PAGE: usize = 500;
/// How many tasks are noted at a look.
const BACKLOG: usize = 2_048;
/// When to look again for a task that somebody else has.
const ELSEWHERE: Millis = Millis(500);

pub(crate) struct Hands<'a> {
    service: &'a Service,
    run: &'a RunId,
    crew: &'a Crew,
    progress: &'a Progress,
    config: Config,
    /// Made with the first task that needs it.
    worker: Option<Worker>,
    backlog: VecDeque<Task>,
    work: JoinSet<(Task, Result<Option<Ended>, WorkerError>)>,
    in_hand: BTreeSet<StepId>,
    hurry: watch::Sender<bool>,
    seen: Seen,
    /// When there will be more to do.
    pub(crate) next: Option<Millis>,
}

/// Whether the backlog holds all that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    All,
    NotAll,
}

impl<'a> Hands<'a> {
    pub(crate) fn new(service: &'a Service, run: &'a RunId, crew: &'a Crew, progress: &'a Progress) -> Self {
        let config = Config {
            service_name: SERVICE_NAME.to_owned(),
            capabilities: crew.capabilities.clone(),
            lock_duration_ms: LEASE_MS,
            ..Config::of(Profile::Poller)
        };
        Self {
            service,
            run,
            crew,
            progress,
            config,
            worker: None,
            backlog: VecDeque::new(),
            work: JoinSet::new(),
            in_hand: BTreeSet::new(),
            hurry: watch::Sender::new(false),
            seen: Seen::NotAll,
            next: None,
        }
    }

    /// The run went on, or time did.
    pub(crate) fn look_again(&mut self) {
        self.seen = Seen::NotAll;
    }

    pub(crate) fn is_busy(&self) -> bool {
        !self.work.is_empty()
    }

    /// Begins as much as there is room for.
    pub(crate) async fn take_up(&mut self) -> Result<(), Failure> {
        if self.crew.given.is_empty() && !self.crew.scripts {
            return Ok(());
        }
        while self.work.len() < AT_ONCE {
            if self.backlog.is_empty() && self.seen == Seen::NotAll {
                self.look().await?;
            }
            let Some(task) = self.backlog.pop_front() else { return Ok(()) };
            let worker = self.worker()?.clone();
            self.progress.working_on(&task.path);
            self.in_hand.insert(task.step_id.clone());
            let hurried = self.hurry.subscribe();
            self.work.spawn(async move {
                let done = worker.do_step(&task.workflow_id, &task.step_id, hurried).await;
                (task, done)
            });
        }
        Ok(())
    }

    /// Waits until a task is off our hands; forever when there is none.
    pub(crate) async fn one_done(&mut self) -> Result<(), Failure> {
        let Some(done) = self.work.join_next().await else { return std::future::pending().await };
        let (task, ended) = done.expect("doing a task does not panic");
        self.in_hand.remove(&task.step_id);
        match ended? {
            Some(Ended::Failed { message, again: Some(at) }) => {
                self.progress.failed_attempt(&task, &message, at);
                self.look_again();
            }
            Some(Ended::Lost | Ended::GivenBack | Ended::Locked) | None => self.look_again(),
            Some(Ended::Full) => self.turned_away(&task).await?,
            Some(Ended::Completed | Ended::Failed { again: None, .. } | Ended::Canceled) => {}
        }
        Ok(())
    }

    /// The others of its facet would be turned away too. When one of ours ends, the run goes on, and so we look again; of
    /// those that others do we hear nothing.
    async fn turned_away(&mut self, task: &Task) -> Result<(), Failure> {
        let facet = |task: &Task| (task.task_list_name.clone(), task.name.clone());
        let is_as_limited =
            |other: &Task| other.policy.limit <= task.policy.limit && other.policy.limit.is_some();
        self.backlog.retain(|other| facet(other) != facet(task) || !is_as_limited(other));
        let now = self.service.now().await?;
        self.note_next(now.plus(ELSEWHERE));
        Ok(())
    }

    /// Gives back what is in work.
    pub(crate) async fn put_down(mut self) {
        self.hurry.send_replace(true);
        while self.work.join_next().await.is_some() {}
    }

    fn worker(&mut self) -> Result<&Worker, Failure> {
        if self.worker.is_none() {
            let worker = Worker::new(self.service.clone(), self.config.clone())?
                .with_hosts(self.crew.given.hosts(&[])?)
                .with_registrations(self.crew.given.registrations.clone());
            self.worker = Some(worker);
        }
        Ok(self.worker.as_ref().expect("it was made above"))
    }

    async fn look(&mut self) -> Result<(), Failure> {
        let now = self.service.now().await?;
        (self.seen, self.next) = (Seen::All, None);
        let mut after: Option<StepId> = None;
        loop {
            let page = self.service.tasks_page(self.run, after.as_ref(), PAGE).await?;
            for task in page.items.into_iter().map(|stored| stored.item) {
                if self.backlog.len() == BACKLOG {
                    self.seen = Seen::NotAll;
                    return Ok(());
                }
                if self.is_ours(&task) {
                    self.note(task, now);
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    fn note(&mut self, task: Task, now: Millis) {
        let later = match (task.state, task.not_before) {
            (TaskState::Pending, Some(at)) if at > now => at,
            (TaskState::Pending, _) if task.is_left_to_another(Some(&self.config.server_name), now) => {
                task.free_at().unwrap_or(now)
            }
            (TaskState::Pending, _) => return self.backlog.push_back(task),
            (TaskState::Running | TaskState::AwaitingResponse, _) => now.plus(ELSEWHERE),
            (TaskState::Completed | TaskState::Failed | TaskState::Ignored | TaskState::Canceled, _) => {
                return;
            }
        };
        self.note_next(later);
    }

    fn note_next(&mut self, at: Millis) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    /// Whether we can do it, and neither do it already nor answer it by the mock.
    fn is_ours(&self, task: &Task) -> bool {
        let name = &*task.name;
        let can_do = name == SCRIPT_TASK || find(&self.crew.given.registrations, name).is_ok();
        let has = |need: &String| self.config.capabilities.contains(need);
        can_do
            && task.policy.needs.iter().all(has)
            && !self.crew.mock.answers(&task.name)
            && !self.in_hand.contains(&task.step_id)
    }
}

/// As others see who holds a task.
const SERVICE_NAME: &str = "afl-run";

/// How long hands that are full are left alone before the run is looked at.
pub(crate) const GLANCE: Duration = Duration::from_millis(500);

//! Where records wait: the buckets that drivers, agents and lists look into.

use afl_engine::event::{Event, Reception};
use afl_engine::policy::{Effect, Policy};
use afl_engine::run::{Control, Run, RunStatus};
use afl_engine::task::{Task, TaskKind, TaskState};
use afl_engine::time::Millis;
use afl_engine::timer::TimerFacet;
use afl_engine::wire_enum;

use crate::record::QueuePosition;

/// The names of buckets.
pub mod bucket {
    use afl_engine::id::RunId;

    /// Events whose outcome waits for the evaluator, by the time it came.
    pub const ARRIVED: &str = "arrived";
    /// Before the four kinds of timers, each by the time at which it fires.
    pub const TIMERS: &str = "timers/";
    /// Tasks that wait for their next attempt.
    pub const RETRIES: &str = "timers/retry";
    /// Tasks of `afl.time.Wait`.
    pub const WAITS: &str = "timers/wait";
    /// Tasks of `afl.time.Until`, by wall time.
    pub const UNTIL: &str = "timers/until";
    /// Open events whose step has a `Timeout`.
    pub const TIMEOUTS: &str = "timers/timeout";
    /// The timers that are tasks.
    pub const TIMED_TASKS: [&str; 3] = [RETRIES, WAITS, UNTIL];
    /// Before a task list, a name and what else [`TaskBucket`](super::TaskBucket) says: tasks that may be claimed, the
    /// most urgent first.
    pub const TASKS: &str = "tasks/";
    /// Before a task list and a name: tasks that are being worked on, by the time to look after them.
    pub const RUNNING: &str = "running/";
    /// System tasks that have ended, by the time of it; those of a run are found by their run.
    pub const ENDED: &str = "ended";
    /// Before a run: tasks that are not handed out while the run is held.
    pub const HELD: &str = "held/";
    /// Before the name of a [`RunState`](super::RunState).
    pub const RUNS: &str = "runs/";
    /// Before a channel: messages that wait for their delivery, by the time of it.
    pub const OUTBOX: &str = "outbox/";
    /// Before a channel: messages that were given up, by the time of the first failure.
    pub const OUTBOX_DEAD: &str = "outbox-dead/";

    pub fn tasks(list: &str, name: &str) -> String {
        format!("{TASKS}{list}/{name}")
    }

    /// Where the tasks of a list and a name are while they are worked on.
    pub fn running(list: &str, name: &str) -> String {
        format!("{RUNNING}{list}/{name}")
    }

    pub fn held(run: &RunId) -> String {
        format!("{HELD}{run}")
    }

    pub fn outbox(channel: &str) -> String {
        format!("{OUTBOX}{channel}")
    }

    pub fn outbox_dead(channel: &str) -> String {
        format!("{OUTBOX_DEAD}{channel}")
    }
}

/// The name of a bucket of pending tasks behind its list: all that decides which agents may take from it, and how.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskBucket<'a> {
    pub facet: &'a str,
    pub limit: Option<u32>,
    /// Only [`Effect::Once`] makes a difference: such claims are durable.
    pub effect: Option<Effect>,
    pub needs: Vec<&'a str>,
    /// The server that the tasks are left to for a while.
    pub server: Option<&'a str>,
}

impl<'a> TaskBucket<'a> {
    /// Between the parts; no facet and no capability has it in its name.
    const PART: char = '+';
    /// These begin a part that is no capability.
    const LIMIT: char = '#';
    const ONCE: &'static str = "!";
    /// The last part: a server may have any name.
    const SERVER: &'static str = "+@";

    pub(crate) fn of(task: &Task) -> String {
        let mut bucket = bucket::tasks(&task.task_list_name, &task.name);
        let Policy { limit, effect, needs, .. } = &task.policy;
        let limit = limit.map(|limit| format!("{}{limit}", Self::LIMIT));
        let once = effect.filter(|effect| *effect == Effect::Once).map(|_| Self::ONCE.to_owned());
        for part in limit.iter().chain(&once).chain(needs) {
            bucket.push(Self::PART);
            bucket.push_str(part);
        }
        if let Some(server) = &task.desired_server {
            bucket.push_str(Self::SERVER);
            bucket.push_str(server);
        }
        bucket
    }

    /// Nothing for a bucket of another list.
    pub fn parse(list: &str, bucket: &'a str) -> Option<Self> {
        bucket.strip_prefix(bucket::TASKS)?.strip_prefix(list)?.strip_prefix('/').map(Self::parse_end)
    }

    /// By the name behind the list.
    pub fn parse_end(end: &'a str) -> Self {
        let (end, server) = end.split_once(Self::SERVER).map_or((end, None), |(end, it)| (end, Some(it)));
        let mut parts = end.split(Self::PART);
        let mut parsed = Self { facet: parts.next().unwrap_or(end), server, ..Self::default() };
        for part in parts {
            match part.strip_prefix(Self::LIMIT).and_then(|limit| limit.parse().ok()) {
                Some(limit) => parsed.limit = Some(limit),
                None if part == Self::ONCE => parsed.effect = Some(Effect::Once),
                None => parsed.needs.push(part),
            }
        }
        parsed
    }

    /// The name of a bucket without its policies, for people.
    pub fn without_policies(bucket: &str) -> String {
        let is_policy = |part: &&str| part.starts_with(Self::LIMIT) || *part == Self::ONCE;
        let (parts, server) = bucket.split_at(bucket.find(Self::SERVER).unwrap_or(bucket.len()));
        let kept: Vec<&str> = parts.split(Self::PART).filter(|part| !is_policy(part)).collect();
        kept.join("+") + server
    }
}

wire_enum! {
    /// Where a run is listed, by its creation. A driver has all its work in the first two, and in [`bucket::ARRIVED`].
    pub enum RunState ("state of a run") {
        /// An evaluation is under way; a driver that finds the run here continues it.
        Running = "running",
        /// A cancel was accepted, and not everything has ended yet.
        Canceling = "canceling",
        /// Waits for work from outside.
        Waiting = "waiting",
        /// Waits for the one who holds it.
        Held = "held",
        Completed = "completed",
        Failed = "failed",
        Canceled = "canceled",
    }
}

impl RunState {
    pub fn bucket(self) -> String {
        format!("{}{}", bucket::RUNS, self.name())
    }

    pub fn of(run: &Run) -> Self {
        match (run.status, run.control) {
            (RunStatus::Completed, _) => Self::Completed,
            (RunStatus::Failed, _) => Self::Failed,
            (RunStatus::Canceled, _) => Self::Canceled,
            (RunStatus::Running | RunStatus::Paused, Control::Cancel) => Self::Canceling,
            (RunStatus::Running | RunStatus::Paused, Control::Hold) => Self::Held,
            (RunStatus::Paused, Control::Go) if run.active == 0 => Self::Waiting,
            (RunStatus::Running | RunStatus::Paused, Control::Go) => Self::Running,
        }
    }
}

pub(crate) fn of_run(run: &Run) -> QueuePosition {
    QueuePosition { bucket: RunState::of(run).bucket(), rank: run.created.0 }
}

/// `at` is when the outcome came.
pub(crate) fn of_event(event: &Event, at: Millis) -> Option<QueuePosition> {
    match event.reception {
        Reception::Arrived => Some(QueuePosition { bucket: bucket::ARRIVED.to_owned(), rank: at.0 }),
        Reception::Open => {
            let timeout = |at: Millis| QueuePosition { bucket: bucket::TIMEOUTS.to_owned(), rank: at.0 };
            event.times_out.map(timeout)
        }
        Reception::Taken => None,
    }
}

pub(crate) fn of_task(task: &Task) -> Option<QueuePosition> {
    let (list, name) = (&task.task_list_name, &task.name);
    match (task.state, task.not_before) {
        (TaskState::Pending, None) => {
            Some(QueuePosition { bucket: TaskBucket::of(task), rank: urgency(task) })
        }
        (TaskState::Pending, Some(at)) => {
            let bucket = match task.timer() {
                None => bucket::RETRIES,
                Some(TimerFacet::Wait) => bucket::WAITS,
                Some(TimerFacet::Until) => bucket::UNTIL,
            };
            Some(QueuePosition { bucket: bucket.to_owned(), rank: at.0 })
        }
        // A parked task waits for an answer, not for a time, and leaves its room in the facet's limit to others.
        (TaskState::AwaitingResponse, _) if task.lease.is_none() => None,
        (TaskState::Running | TaskState::AwaitingResponse, _) => {
            // A task without a lease has no holder; the doctor reports it.
            let deadline = task.deadline().unwrap_or(Millis(0));
            Some(QueuePosition { bucket: bucket::running(list, name), rank: deadline.0 })
        }
        (TaskState::Completed | TaskState::Failed | TaskState::Ignored | TaskState::Canceled, _) => {
            match task.kind() {
                TaskKind::Event => None,
                TaskKind::System => {
                    let ended = task.ended.unwrap_or(task.updated);
                    Some(QueuePosition { bucket: bucket::ENDED.to_owned(), rank: ended.0 })
                }
            }
        }
    }
}

/// Room for half a millennium of milliseconds beside the priority.
const TIME_BITS: u32 = 44;
const MAX_PRIORITY: i64 = 100_000;

/// The rank of the last task that could be as urgent as one of this rank.
pub(crate) fn last_as_urgent(rank: i64) -> i64 {
    rank | ((1 << TIME_BITS) - 1)
}

/// The higher priority first, then the one whose turn is earlier.
pub(crate) fn urgency(task: &Task) -> i64 {
    let priority = task.priority().clamp(-MAX_PRIORITY, MAX_PRIORITY);
    let turn = task.turn.unwrap_or(task.created).0.clamp(0, (1 << TIME_BITS) - 1);
    ((MAX_PRIORITY - priority) << TIME_BITS) | turn
}

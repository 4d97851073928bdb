//! Where records wait: the buckets that drivers, agents and lists look into.

use afl_engine::event::{Event, Reception};
use afl_engine::run::{Control, Run, RunStatus};
use afl_engine::task::{Task, TaskKind, TaskState};
use afl_engine::time::Millis;

use crate::record::QueuePosition;

/// The names of buckets.
pub mod bucket {
    use afl_engine::id::RunId;
    use afl_engine::task::Task;

    /// Events whose outcome waits for the evaluator, by the time it came.
    pub const ARRIVED: &str = "arrived";
    /// Tasks that wait for their next attempt, by the time of it.
    pub const TIMERS: &str = "timers";
    /// Before a task list and a name, and behind these what an agent must have and which server is wanted: tasks that may be claimed, the most
    /// urgent first.
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

    /// No facet and no capability has it in its name.
    const NEEDS: char = '+';
    /// Before the server that the tasks are left to for a while. It comes last: a server may have any name.
    const DESIRED: &str = "+@";

    pub fn tasks(list: &str, name: &str) -> String {
        format!("{TASKS}{list}/{name}")
    }

    pub(crate) fn tasks_like(task: &Task) -> String {
        let mut bucket = tasks(&task.task_list_name, &task.name);
        for need in &task.policy.needs {
            bucket.push(NEEDS);
            bucket.push_str(need);
        }
        if let Some(server) = &task.desired_server {
            bucket.push_str(DESIRED);
            bucket.push_str(server);
        }
        bucket
    }

    /// The facet that the end of a bucket's name says, and what an agent must have to do its tasks.
    pub fn name_and_needs(end: &str) -> (&str, impl Iterator<Item = &str>) {
        let end = end.split_once(DESIRED).map_or(end, |(end, _)| end);
        let mut parts = end.split(NEEDS);
        (parts.next().unwrap_or(end), parts)
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

/// Where a run is listed, by its creation. A driver has all its work in the first two, and in [`bucket::ARRIVED`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RunState {
    /// An evaluation is under way; whoever finds the run here goes on with it.
    Running,
    /// A cancel was accepted, and not everything has ended yet.
    Canceling,
    /// Waits for work from outside.
    Waiting,
    /// Waits for the one who holds it.
    Held,
    Completed,
    Failed,
    Canceled,
}

impl RunState {
    pub const ALL: [Self; 7] = [
        Self::Running,
        Self::Canceling,
        Self::Waiting,
        Self::Held,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Canceling => "canceling",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

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
        Reception::Open | Reception::Taken => None,
    }
}

pub(crate) fn of_task(task: &Task) -> Option<QueuePosition> {
    let (list, name) = (&task.task_list_name, &task.name);
    match (task.state, task.not_before) {
        (TaskState::Pending, None) => {
            Some(QueuePosition { bucket: bucket::tasks_like(task), rank: urgency(task) })
        }
        (TaskState::Pending, Some(at)) => {
            Some(QueuePosition { bucket: bucket::TIMERS.to_owned(), rank: at.0 })
        }
        // A parked task waits for an answer, not for a time, and leaves its room in the facet's limit to others.
        (TaskState::AwaitingResponse, _) if task.lease.is_none() => None,
        (TaskState::Running | TaskState::AwaitingResponse, _) => {
            // One without a lease is nobody's; the doctor tells of it.
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

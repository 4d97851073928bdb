//! Notifications for people. A notification about a task is stored in the commit of the task's end.

use afl_engine::id::{RunId, StepId};
use afl_engine::run::Run;
use afl_engine::task::{Task, TaskState};
use afl_engine::time::Millis;
use afl_engine::wire_enum;
use serde::{Deserialize, Serialize};

use crate::collection::CollectionItem;
use crate::server::Server;

/// A message is cut here.
pub const MESSAGE_CHARS: usize = 200;
/// After so long it is forgotten, read or not.
pub const KEPT_FOR: Millis = Millis(7 * 24 * 3_600_000);
/// A task that waits for so long is stuck.
pub const STUCK_AFTER: Millis = Millis(10 * 60_000);
/// The label of a run, and its value, that asks for notifications of completed tasks too.
pub const NOTIFY: (&str, &str) = ("notify", "completed");

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Notification {
    #[serde(rename = "type")]
    pub notification_type: NotificationType,
    pub severity: NotificationSeverity,
    pub title: String,
    pub message: String,
    pub created: Millis,
    #[serde(default)]
    pub read: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepId>,
    /// The step for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

wire_enum! {
    pub enum NotificationType ("type of a notification") {
        TaskAwaitingResponse = "TASK_AWAITING_RESPONSE",
        TaskError = "TASK_ERROR",
        /// Only for runs that ask for it.
        TaskCompleted = "TASK_COMPLETED",
        AgentOffline = "AGENT_OFFLINE",
        QueueStuck = "QUEUE_STUCK",
        /// A run that is held because it harms others or cannot be stored.
        RunQuarantined = "RUN_QUARANTINED",
        /// Messages that could not be delivered.
        OutboxDead = "OUTBOX_DEAD",
    }
}

wire_enum! {
    pub enum NotificationSeverity ("severity") {
        Info = "info",
        Warning = "warning",
        Error = "error",
    }
}

impl NotificationType {
    pub const fn severity(self) -> NotificationSeverity {
        match self {
            Self::TaskError | Self::RunQuarantined | Self::OutboxDead => NotificationSeverity::Error,
            Self::TaskAwaitingResponse | Self::AgentOffline | Self::QueueStuck => {
                NotificationSeverity::Warning
            }
            Self::TaskCompleted => NotificationSeverity::Info,
        }
    }
}

impl Notification {
    fn new(notification_type: NotificationType, title: String, message: &str, created: Millis) -> Self {
        Self {
            notification_type,
            severity: notification_type.severity(),
            title,
            message: message.chars().take(MESSAGE_CHARS).collect(),
            created,
            read: false,
            run: None,
            step: None,
            path: None,
            agent: None,
        }
    }

    fn of(task: &Task, what: NotificationType, title: String, message: &str, now: Millis) -> Self {
        Self {
            run: Some(task.workflow_id.clone()),
            step: Some(task.step_id.clone()),
            path: Some(task.path.clone()),
            ..Self::new(what, title, message, now)
        }
    }

    /// The notification of a task's end; a completed task gives one only where the run asks for it.
    pub(crate) fn of_end(task: &Task, asked: NotifyOn, now: Millis) -> Option<Self> {
        let error = task.error.as_deref().unwrap_or_default();
        match (task.state, asked) {
            (TaskState::Failed, _) if task.is_uncertain() => {
                let title = format!("{}: did it happen?", task.path);
                Some(Self::of(task, NotificationType::TaskAwaitingResponse, title, error, now))
            }
            (TaskState::Failed, _) => {
                let title = format!("{} failed", task.path);
                Some(Self::of(task, NotificationType::TaskError, title, error, now))
            }
            (TaskState::Completed, NotifyOn::OnCompleted) => {
                let title = format!("{} is done", task.path);
                Some(Self::of(task, NotificationType::TaskCompleted, title, "", now))
            }
            (TaskState::Completed, NotifyOn::OnErrors)
            | (
                TaskState::Pending
                | TaskState::Running
                | TaskState::AwaitingResponse
                | TaskState::Ignored
                | TaskState::Canceled,
                _,
            ) => None,
        }
    }

    pub fn of_quarantine(run: &Run, reason: &str, now: Millis) -> Self {
        let title = format!("run {} of {} is quarantined", run.id, run.workflow);
        let run = Some(run.id.clone());
        Self { run, ..Self::new(NotificationType::RunQuarantined, title, reason, now) }
    }

    pub fn of_stuck(task: &Task, now: Millis) -> Self {
        let title = format!("{} waits for an agent", task.path);
        let minutes = now.since(task.updated).0 / 60_000;
        let message =
            format!("no agent has taken `{}` from `{}` for {minutes} min", task.name, task.task_list_name);
        Self::of(task, NotificationType::QueueStuck, title, &message, now)
    }

    /// Of a record that cannot be read and blocks no other; reported as the notification that it hides.
    pub fn of_damage(reported_as: NotificationType, problem: &str, now: Millis) -> Self {
        Self {
            severity: NotificationSeverity::Error,
            ..Self::new(reported_as, "a record cannot be read".to_owned(), problem, now)
        }
    }

    pub fn of_offline(server: &Server, now: Millis) -> Self {
        let title = format!("{} of {} is offline", server.service_name, server.server_name);
        let doing = match server.current.len() {
            0 => "it did nothing at the time".to_owned(),
            _ => format!("it worked on {}", server.current.join(", ")),
        };
        let agent = Some(server.uuid.clone());
        Self { agent, ..Self::new(NotificationType::AgentOffline, title, &doing, now) }
    }

    pub fn of_dead(channel: &str, error: &str, now: Millis) -> Self {
        let title = format!("messages for `{channel}` could not be delivered");
        Self::new(NotificationType::OutboxDead, title, error, now)
    }

    /// `error` is empty without an attempt, as with a feed that has no reader.
    pub fn of_late(channel: &str, error: &str, now: Millis) -> Self {
        let title = format!("messages for `{channel}` have waited for more than a day");
        Self::new(NotificationType::OutboxDead, title, error, now)
    }
}

/// Which notifications a run asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotifyOn {
    OnErrors,
    OnCompleted,
}

impl CollectionItem for Notification {
    const COLLECTION: &'static str = "notifications";

    fn rank(&self) -> i64 {
        self.created.0
    }
}

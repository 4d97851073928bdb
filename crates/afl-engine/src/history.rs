//! The history of a task, kept in its own record: each move with its time, actor and cause.

use serde::{Deserialize, Serialize};

use crate::time::Millis;
use crate::wire::{self, wire_enum};

/// How many moves are kept: a task that is tried again for ever must not grow.
const KEPT: usize = 50;
/// How much of a message a move keeps.
const CAUSE_CHARS: usize = 200;

/// The author of a move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Actor {
    /// The engine or its janitor.
    System,
    Agent(String),
    User(String),
}

wire_enum! {
    /// The moves of a task that its history keeps (M2-M12), by their names in the record. M1 is the task's `created`.
    pub enum MoveKind ("move of a task") {
        /// M2.
        Claim = "l",
        /// M3. An attempt keeps the last one only.
        Extend = "p",
        /// M4.
        Ask = "a",
        /// M5.
        Answer = "b",
        /// M6.
        AnswerParked = "w",
        /// M7.
        Complete = "c",
        /// M8.
        Fail = "e",
        /// M9.
        Requeue = "q",
        /// M10.
        Cancel = "x",
        /// M11.
        Retry = "r",
        /// M12.
        Ignore = "i",
    }
}

wire_enum! {
    /// The documents' names for the events of a task.
    pub enum TaskEventType ("type of a task event") {
        Created = "CREATED",
        Queued = "QUEUED",
        Leased = "LEASED",
        Started = "STARTED",
        Progress = "PROGRESS",
        AwaitingResponse = "AWAITING_RESPONSE",
        ResponseReceived = "RESPONSE_RECEIVED",
        Completed = "COMPLETED",
        Error = "ERROR",
        Cancelled = "CANCELLED",
        Retried = "RETRIED",
        Requeued = "REQUEUED",
        Ignored = "IGNORED",
    }
}

/// One entry of the documents' log of a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TaskEvent {
    #[serde(rename = "type")]
    pub event_type: TaskEventType,
    pub created: Millis,
    pub actor: String,
    pub level: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// The newest moves of a task.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct History {
    #[serde(rename = "m")]
    entries: Vec<HistoryEntry>,
    /// How many older entries were dropped.
    #[serde(rename = "d", default, skip_serializing_if = "wire::is_default")]
    dropped: u32,
}

/// One move: its kind, its time since the task was created, its actor and its cause.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct HistoryEntry(
    MoveKind,
    Millis,
    String,
    #[serde(default, skip_serializing_if = "String::is_empty")] String,
);

impl History {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    pub(crate) fn note(&mut self, kind: MoveKind, after: Millis, actor: String, cause: &str) {
        if kind == MoveKind::Extend && self.entries.last().is_some_and(|last| last.0 == kind) {
            self.entries.pop();
        }
        let cause = cause.chars().take(CAUSE_CHARS).collect();
        self.entries.push(HistoryEntry(kind, after, actor, cause));
        if self.entries.len() > KEPT {
            self.entries.remove(0);
            self.dropped += 1;
        }
    }

    /// The entries under the documents' names, the oldest first.
    pub(crate) fn events(&self, created: Millis) -> Vec<TaskEvent> {
        let system = Actor::System.to_string();
        let mut events = vec![
            TaskEvent::new(TaskEventType::Created, created, &system, ""),
            TaskEvent::new(TaskEventType::Queued, created, &system, ""),
        ];
        for HistoryEntry(kind, after, actor, cause) in &self.entries {
            let at = created.plus(*after);
            let (first, second) = kind.event_types();
            events.push(TaskEvent::new(first, at, actor, cause));
            events.extend(second.map(|second| TaskEvent::new(second, at, actor, "")));
        }
        events
    }
}

impl TaskEvent {
    fn new(event_type: TaskEventType, created: Millis, actor: &str, message: &str) -> Self {
        let (actor, message) = (actor.to_owned(), message.to_owned());
        Self { event_type, created, actor, level: event_type.level(), message }
    }
}

impl MoveKind {
    /// For a sentence about a task: it cannot be `claimed`.
    pub const fn participle(self) -> &'static str {
        match self {
            Self::Claim => "claimed",
            Self::Extend => "extended",
            Self::Ask => "held up by a question",
            Self::Answer | Self::AnswerParked => "answered",
            Self::Complete => "completed",
            Self::Fail => "failed",
            Self::Requeue => "requeued",
            Self::Cancel => "canceled",
            Self::Retry => "retried",
            Self::Ignore => "skipped",
        }
    }

    /// Some moves are two events of the documents at once.
    const fn event_types(self) -> (TaskEventType, Option<TaskEventType>) {
        use TaskEventType as Type;
        match self {
            Self::Claim => (Type::Leased, Some(Type::Started)),
            Self::Extend => (Type::Progress, None),
            Self::Ask => (Type::AwaitingResponse, None),
            Self::Answer => (Type::ResponseReceived, None),
            Self::AnswerParked => (Type::ResponseReceived, Some(Type::Queued)),
            Self::Complete => (Type::Completed, None),
            Self::Fail => (Type::Error, None),
            Self::Requeue => (Type::Requeued, None),
            Self::Cancel => (Type::Cancelled, None),
            Self::Retry => (Type::Retried, Some(Type::Queued)),
            Self::Ignore => (Type::Ignored, None),
        }
    }
}

impl TaskEventType {
    const fn level(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Cancelled => "warn",
            Self::Created
            | Self::Queued
            | Self::Leased
            | Self::Started
            | Self::Progress
            | Self::AwaitingResponse
            | Self::ResponseReceived
            | Self::Completed
            | Self::Retried
            | Self::Requeued
            | Self::Ignored => "info",
        }
    }
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Agent(name) => write!(f, "agent:{name}"),
            Self::User(name) => write!(f, "user:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(moves: impl IntoIterator<Item = (MoveKind, i64, &'static str)>) -> History {
        let mut history = History::default();
        for (kind, at, agent) in moves {
            history.note(kind, Millis(at), Actor::Agent(agent.to_owned()).to_string(), "");
        }
        history
    }

    fn lines(history: &History) -> Vec<String> {
        let line = |event: TaskEvent| format!("{} {} {}", event.created.0, event.event_type, event.actor);
        history.events(Millis(100)).into_iter().map(line).collect()
    }

    #[test]
    fn ordinary_work_is_written_in_a_few_bytes_and_read_in_full() {
        let history = of([(MoveKind::Claim, 3, "w1"), (MoveKind::Complete, 12, "w1")]);
        let text = serde_json::to_string(&history).unwrap();
        assert_eq!(text, r#"{"m":[["l",3,"agent:w1"],["c",12,"agent:w1"]]}"#);
        assert_eq!(serde_json::from_str::<History>(&text).unwrap(), history);
        assert_eq!(
            lines(&history),
            [
                "100 CREATED system",
                "100 QUEUED system",
                "103 LEASED agent:w1",
                "103 STARTED agent:w1",
                "112 COMPLETED agent:w1",
            ]
        );
    }

    #[test]
    fn signs_of_life_do_not_add_up() {
        let extensions = (2..100).map(|at| (MoveKind::Extend, at, "w1"));
        let history = of([(MoveKind::Claim, 1, "w1")].into_iter().chain(extensions));
        assert_eq!(lines(&history)[4..], ["199 PROGRESS agent:w1"]);
    }

    #[test]
    fn a_task_that_is_tried_for_ever_keeps_the_newest_moves_and_who_made_them() {
        let mut history = of([(MoveKind::Claim, 0, "first")]);
        for at in 1..=50 {
            history.note(MoveKind::Requeue, Millis(at), "agent:first".to_owned(), &"it broke ".repeat(100));
        }
        assert_eq!((history.entries.len(), history.dropped()), (KEPT, 1));
        assert_eq!(lines(&history)[2], "101 REQUEUED agent:first");
        assert_eq!(lines(&history)[51], "150 REQUEUED agent:first");
        assert_eq!(history.entries[0].3.chars().count(), CAUSE_CHARS);
        history.note(MoveKind::Claim, Millis(60), "agent:second".to_owned(), "");
        assert_eq!(lines(&history)[50], "150 REQUEUED agent:first");
        assert_eq!(lines(&history)[51], "160 LEASED agent:second");
        let text = serde_json::to_string(&history).unwrap();
        assert_eq!(serde_json::from_str::<History>(&text).unwrap(), history);
    }
}

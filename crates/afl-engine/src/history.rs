//! What happened to a task, kept in its own record: each move with its time, who made it, and why.

use serde::{Deserialize, Serialize};

use crate::time::Millis;
use crate::wire::{self, wire_enum};

/// How many moves are kept: a task that is tried again for ever must not grow.
const KEPT: usize = 50;
/// How much of a message a move keeps.
const CAUSE_CHARS: usize = 200;

/// Who made a move.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Actor {
    /// The engine or its janitor.
    System,
    Agent(String),
    User(String),
}

wire_enum! {
    /// A move of a task (T2-T12 of the design), by its name in the record. The first one, its creation, is the
    /// task's `created`.
    pub enum Move ("move of a task") {
        Claimed = "l",
        /// Of the last sign of life of the attempt.
        Progress = "p",
        Completed = "c",
        Failed = "e",
        Canceled = "x",
        Retried = "r",
        Requeued = "q",
        Ignored = "i",
    }
}

wire_enum! {
    /// As the documents call what happens to a task.
    pub enum TaskEventType ("type of a task event") {
        Created = "CREATED",
        Queued = "QUEUED",
        Leased = "LEASED",
        Started = "STARTED",
        Progress = "PROGRESS",
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

/// The newest moves of a task, as short as they can be written: it is part of every claim and every outcome.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct History {
    #[serde(rename = "m")]
    moves: Vec<Entry>,
    /// How many older ones are not kept.
    #[serde(rename = "d", default, skip_serializing_if = "wire::is_default")]
    dropped: u32,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(from = "Written")]
struct Entry {
    what: Move,
    /// Since the task was created.
    after: Millis,
    /// Empty for the agent that was named last.
    by: String,
    cause: String,
}

/// What stands at the end may be left out.
#[derive(Deserialize)]
struct Written(Move, i64, #[serde(default)] String, #[serde(default)] String);

impl From<Written> for Entry {
    fn from(Written(what, after, by, cause): Written) -> Self {
        Self { what, after: Millis(after), by, cause }
    }
}

impl Serialize for Entry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { what, after, by, cause } = self;
        match (by.is_empty(), cause.is_empty()) {
            (true, true) => (what, after).serialize(serializer),
            (false, true) => (what, after, by).serialize(serializer),
            (_, false) => (what, after, by, cause).serialize(serializer),
        }
    }
}

impl History {
    pub fn is_empty(&self) -> bool {
        self.moves.is_empty()
    }

    pub fn dropped(&self) -> u32 {
        self.dropped
    }

    pub(crate) fn note(&mut self, what: Move, after: Millis, by: &Actor, cause: &str) {
        if what == Move::Progress && self.moves.last().is_some_and(|last| last.what == what) {
            self.moves.pop();
        }
        let by = by.to_string();
        let by = if self.last_agent() == Some(&by) { String::new() } else { by };
        let cause = cause.chars().take(CAUSE_CHARS).collect();
        self.moves.push(Entry { what, after, by, cause });
        if self.moves.len() > KEPT {
            self.drop_oldest();
        }
    }

    fn last_agent(&self) -> Option<&String> {
        self.moves.iter().rev().map(|entry| &entry.by).find(|by| by.starts_with(AGENT))
    }

    /// What it said of the agent is said by the next one that means the same.
    fn drop_oldest(&mut self) {
        let oldest = self.moves.remove(0);
        self.dropped += 1;
        if !oldest.by.starts_with(AGENT) {
            return;
        }
        let mut later = self.moves.iter_mut().take_while(|entry| !entry.by.starts_with(AGENT));
        if let Some(same) = later.find(|entry| entry.by.is_empty()) {
            same.by = oldest.by;
        }
    }

    /// The moves as the documents tell them, the oldest first.
    pub(crate) fn events(&self, created: Millis) -> Vec<TaskEvent> {
        use TaskEventType as Type;
        let event = |event_type: Type, at: Millis, actor: &str, message: &str| TaskEvent {
            event_type,
            created: at,
            actor: actor.to_owned(),
            level: event_type.level(),
            message: message.to_owned(),
        };
        let system = Actor::System.to_string();
        let mut events =
            vec![event(Type::Created, created, &system, ""), event(Type::Queued, created, &system, "")];
        let mut agent = AGENT;
        for Entry { what, after, by, cause } in &self.moves {
            if by.starts_with(AGENT) {
                agent = by;
            }
            let actor = if by.is_empty() { agent } else { by };
            let at = created.plus(*after);
            let (first, second) = what.told();
            events.push(event(first, at, actor, cause));
            events.extend(second.map(|second| event(second, at, actor, "")));
        }
        events
    }
}

impl Move {
    /// Some moves are told as two things that happen at once.
    const fn told(self) -> (TaskEventType, Option<TaskEventType>) {
        use TaskEventType as Type;
        match self {
            Self::Claimed => (Type::Leased, Some(Type::Started)),
            Self::Progress => (Type::Progress, None),
            Self::Completed => (Type::Completed, None),
            Self::Failed => (Type::Error, None),
            Self::Canceled => (Type::Cancelled, None),
            Self::Retried => (Type::Retried, Some(Type::Queued)),
            Self::Requeued => (Type::Requeued, None),
            Self::Ignored => (Type::Ignored, None),
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
            | Self::Completed
            | Self::Retried
            | Self::Requeued
            | Self::Ignored => "info",
        }
    }
}

const AGENT: &str = "agent:";

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Agent(name) => write!(f, "{AGENT}{name}"),
            Self::User(name) => write!(f, "user:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str) -> Actor {
        Actor::Agent(name.to_owned())
    }

    fn told(history: &History) -> Vec<String> {
        let line = |event: TaskEvent| format!("{} {} {}", event.created.0, event.event_type, event.actor);
        history.events(Millis(100)).into_iter().map(line).collect()
    }

    #[test]
    fn ordinary_work_is_written_in_a_few_bytes_and_told_in_full() {
        let mut history = History::default();
        history.note(Move::Claimed, Millis(3), &agent("w1"), "");
        history.note(Move::Completed, Millis(12), &agent("w1"), "");
        let text = serde_json::to_string(&history).unwrap();
        assert_eq!(text, r#"{"m":[["l",3,"agent:w1"],["c",12]]}"#);
        assert_eq!(serde_json::from_str::<History>(&text).unwrap(), history);
        assert_eq!(
            told(&history),
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
        let mut history = History::default();
        history.note(Move::Claimed, Millis(1), &agent("w1"), "");
        for at in 2..100 {
            history.note(Move::Progress, Millis(at), &agent("w1"), "");
        }
        assert_eq!(told(&history)[4..], ["199 PROGRESS agent:w1"]);
    }

    #[test]
    fn a_task_that_is_tried_for_ever_keeps_the_newest_moves_and_who_made_them() {
        let mut history = History::default();
        history.note(Move::Claimed, Millis(0), &agent("first"), "");
        for at in 1..=50 {
            history.note(Move::Requeued, Millis(at), &agent("first"), &"it broke ".repeat(100));
        }
        assert_eq!((history.moves.len(), history.dropped()), (KEPT, 1));
        assert_eq!(told(&history)[2], "101 REQUEUED agent:first");
        assert_eq!(told(&history)[51], "150 REQUEUED agent:first");
        assert_eq!(history.moves[0].cause.chars().count(), CAUSE_CHARS);
        history.note(Move::Claimed, Millis(60), &agent("second"), "");
        assert_eq!(told(&history)[50], "150 REQUEUED agent:first");
        assert_eq!(told(&history)[51], "160 LEASED agent:second");
        let text = serde_json::to_string(&history).unwrap();
        assert_eq!(serde_json::from_str::<History>(&text).unwrap(), history);
    }
}

//! How the work of an event facet is to be done: the mixins of `afl.policy`, as data.

use serde::{Deserialize, Serialize};

use crate::time::{Backoff, Millis};
use crate::value::{Map, Value};
use crate::wire::wire_enum;

/// The combined policies of a call; the defaults where none is given.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Policy {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// From the publication of the work to its outcome, all attempts included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<Millis>,
    /// The longest attempt, from its claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_timeout_ms: Option<Millis>,
    /// The longest silence of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// How many of the facet's tasks may run at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_list: Option<String>,
    /// The capabilities that an agent must have, in order and each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Attempts in all.
    pub max: u32,
    pub backoff_ms: Millis,
    pub factor: f64,
    pub max_backoff_ms: Millis,
}

/// How long a name from data may be. Stores index it together with others, and an entry of an index is short.
pub const MAX_NAME_BYTES: usize = 200;
/// How long all capabilities of a task may be together.
const MAX_NEEDS_BYTES: usize = 1_000;

/// Why a text from data is no name, by one rule for every store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadName {
    #[error("is empty")]
    Empty,
    #[error("has {0} bytes, and {MAX_NAME_BYTES} is the limit")]
    TooLong(usize),
    #[error("has a control character")]
    Control,
}

pub fn check_name(text: &str) -> Result<(), BadName> {
    match text.len() {
        0 => Err(BadName::Empty),
        bytes if bytes > MAX_NAME_BYTES => Err(BadName::TooLong(bytes)),
        _ if text.chars().any(char::is_control) => Err(BadName::Control),
        _ => Ok(()),
    }
}

/// Whether all names together are short enough to be indexed.
pub(crate) fn are_short(needs: &[String]) -> bool {
    needs.iter().map(|name| name.len() + 1).sum::<usize>() <= MAX_NEEDS_BYTES
}

/// Whether a text can name a capability: one or more letters, digits, `-`, `_`, `.` or `:`.
pub fn names_capability(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    check_name(text).is_ok() && text.bytes().all(is_plain)
}

impl RetryPolicy {
    /// How long to wait after `attempts` of them failed; `None` when that was the last.
    pub fn wait_after(&self, attempts: u32) -> Option<Millis> {
        if attempts >= self.max {
            return None;
        }
        let backoff = Backoff { first: self.backoff_ms, factor: self.factor, most: self.max_backoff_ms };
        Some(backoff.after(attempts))
    }
}

wire_enum! {
    /// The effect of repeated work on the world.
    pub enum Effect ("effect") {
        Idempotent = "idempotent",
        Once = "once",
        Pure = "pure",
    }
}

wire_enum! {
    /// The facets of the prelude.
    pub enum PolicyKind ("policy") {
        Retry = "afl.policy.Retry",
        Timeout = "afl.policy.Timeout",
        AttemptTimeout = "afl.policy.AttemptTimeout",
        Heartbeat = "afl.policy.Heartbeat",
        Priority = "afl.policy.Priority",
        Limit = "afl.policy.Limit",
        Effect = "afl.policy.Effect",
        TaskList = "afl.policy.TaskList",
        Needs = "afl.policy.Needs",
    }
}

/// The units of a length of time in milliseconds.
pub(crate) const UNITS: [(&str, i64); 5] =
    [("ms", 1), ("seconds", 1_000), ("minutes", 60_000), ("hours", 3_600_000), ("days", 86_400_000)];

/// One length of time above zero, in one of its units.
pub(crate) fn duration(args: &Map<String, Value>, facet: &str) -> Result<Millis, String> {
    let mut given = Vec::new();
    for (unit, ms) in UNITS {
        given.extend(integer(args, unit, facet)?.map(|count| Millis(count.saturating_mul(ms))));
    }
    match given[..] {
        [span] if span > Millis(0) => Ok(span),
        _ => Err(format!("`{facet}` takes one length of time above zero")),
    }
}

/// A setting that counts.
pub(crate) fn integer(args: &Map<String, Value>, name: &str, facet: &str) -> Result<Option<i64>, String> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_i64() {
            Some(number) if number >= 0 => Ok(Some(number)),
            Some(_) | None => Err(format!("`{name}` of `{facet}` must be an integer from zero up")),
        },
    }
}

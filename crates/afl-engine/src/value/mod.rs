//! Values: JSON, whose objects are sorted by key, and what AFL asks of it.

mod compare;
mod number;
mod size;

use std::fmt;

pub use compare::{equal, order};
pub use number::ArithmeticError;
pub(crate) use number::Number;
pub use serde_json::{Map, Value};
pub(crate) use size::bytes;
pub use size::{MAX_VALUES_BYTES, Oversize, check_size};

/// How deep lists and maps may nest in a value. JSON readers stop at 128 levels, and what a value is
/// stored in takes a few of them.
pub const MAX_VALUE_DEPTH: usize = 100;

/// The kinds of values that operators and messages distinguish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueKind {
    Null,
    Boolean,
    Integer,
    Double,
    String,
    List,
    Map,
}

impl ValueKind {
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) => match Number::of(number) {
                Number::Integer(_) => Self::Integer,
                Number::Double(_) => Self::Double,
            },
            Value::String(_) => Self::String,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Map,
        }
    }
}

/// As messages name it, after the types of the language.
impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "Boolean",
            Self::Integer => "Long",
            Self::Double => "Double",
            Self::String => "String",
            Self::List => "a list",
            Self::Map => "a map",
        })
    }
}

/// Appends a value as `++` does: strings as they are, null as nothing, everything else as compact JSON.
pub fn push_text(text: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::String(part) => text.push_str(part),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            text.push_str(&value.to_string());
        }
    }
}

/// Whether lists and maps nest in the value at most `levels` deep.
pub fn is_within_depth(value: &Value, levels: usize) -> bool {
    let is_inner = |inner: &Value| levels > 0 && is_within_depth(inner, levels - 1);
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Array(elements) => levels > 0 && elements.iter().all(is_inner),
        Value::Object(entries) => levels > 0 && entries.values().all(is_inner),
    }
}

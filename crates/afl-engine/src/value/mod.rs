//! Values: JSON, whose objects are sorted by key, and what AFL asks of it.

mod number;
mod read;
mod room;

use std::cmp::Ordering;

pub use number::ArithmeticError;
pub(crate) use number::Number;
pub use read::{JsonError, read_json};
pub use room::ValueRoom;
pub use serde_json::{Map, Value};

use crate::wire::wire_enum;

/// How deep lists and maps may nest in a value. JSON readers stop at 128 levels, and what a value is
/// stored in takes a few of them.
pub const MAX_VALUE_DEPTH: usize = 100;

/// How much memory values may take that belong together: the inputs of a run, one result, the arguments of a step, a list
/// that a `foreach` yields. A run holds a few such sets at once, and one run must not take the memory of all others.
pub const MAX_VALUES_BYTES: usize = 256 << 20;

wire_enum! {
    /// The kinds of values that operators and messages distinguish, named after the types of the language.
    pub enum ValueKind ("kind of value") {
        Null = "null",
        Boolean = "Boolean",
        Integer = "Long",
        Double = "Double",
        String = "String",
        List = "a list",
        Map = "a map",
    }
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

/// Deep, numbers by value. Values of different kinds are not equal.
pub fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Number(left), Value::Number(right)) => Number::of(left).order(Number::of(right)).is_eq(),
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| right.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => false,
    }
}

/// Numbers by value, strings by code point; nothing else has an order.
pub fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Some(Number::of(left).order(Number::of(right))),
        // The order of UTF-8 bytes is the order of code points.
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Oversize {
    #[error(
        "{bytes} bytes in memory, and {MAX_VALUES_BYTES} is the limit: store it elsewhere and pass a reference"
    )]
    TooLarge { bytes: usize },
    /// A reader of JSON gives up at such a depth, so it could be stored and never be read.
    #[error("lists and maps that nest deeper than {MAX_VALUE_DEPTH} levels")]
    TooDeep,
}

pub fn check_size(values: &Map<String, Value>) -> Result<(), Oversize> {
    if !values.values().all(|value| is_within_depth(value, MAX_VALUE_DEPTH)) {
        return Err(Oversize::TooDeep);
    }
    let bytes = values.values().map(room::bytes).sum();
    if bytes > MAX_VALUES_BYTES { Err(Oversize::TooLarge { bytes }) } else { Ok(()) }
}

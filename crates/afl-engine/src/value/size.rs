//! How large values from outside may be, found out before anything is copied.

use super::{MAX_VALUE_DEPTH, Map, Value, is_within_depth};

/// All the inputs of a run, all that one result holds, or what an expression comes to.
pub const MAX_VALUES_BYTES: usize = 512 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Oversize {
    #[error("{bytes} bytes, and {MAX_VALUES_BYTES} is the limit: store it elsewhere and pass a reference")]
    TooLarge { bytes: usize },
    /// A reader of JSON gives up at such a depth, so it could be stored and never be read.
    #[error("lists and maps that nest deeper than {MAX_VALUE_DEPTH} levels")]
    TooDeep,
}

pub fn check_size(values: &Map<String, Value>) -> Result<(), Oversize> {
    if !values.values().all(|value| is_within_depth(value, MAX_VALUE_DEPTH)) {
        return Err(Oversize::TooDeep);
    }
    let bytes = values.values().map(bytes).sum();
    if bytes > MAX_VALUES_BYTES { Err(Oversize::TooLarge { bytes }) } else { Ok(()) }
}

/// About as many as its JSON has.
pub(crate) fn bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(elements) => elements.iter().map(|element| bytes(element) + 1).sum::<usize>() + 2,
        Value::Object(entries) => {
            entries.iter().map(|(name, value)| name.len() + bytes(value) + 4).sum::<usize>() + 2
        }
    }
}

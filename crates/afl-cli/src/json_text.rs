//! Reads JSON that people and their editors wrote.

use afl_engine::value::{JsonError, Map, Value, read_json};

#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAnObject {
    #[error(transparent)]
    NotJson(#[from] JsonError),
    #[error("it is JSON, but no object")]
    Other,
}

/// Some editors put this in front of every text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The value of a text that is called `name`.
pub(crate) fn parse(text: &str, name: &str) -> Result<Value, JsonError> {
    read_json(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text).as_bytes(), name)
}

pub(crate) fn parse_object(text: &str) -> Result<Map<String, Value>, NotAnObject> {
    match parse(text, "")? {
        Value::Object(entries) => Ok(entries),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(NotAnObject::Other)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_it() {
        assert_eq!(parse("\u{feff}[1]", "").unwrap(), json!([1]));
    }
}

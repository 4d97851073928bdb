//! The JSON Schema of the compiled format.

use serde_json::Value;

use super::wire::document;

/// The schema (draft 2020-12) that every [emitted](super::Program::emit) document follows.
pub fn json_schema() -> Value {
    document::schema()
}

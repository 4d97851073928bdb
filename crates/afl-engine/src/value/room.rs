//! Bounds the memory of values while they are built.
//!
//! Problem: forty steps of `[s, s]` double a value forty times. A check of the finished value comes too late, because
//! its process is out of memory by then. The length of its JSON is no measure either: a list takes ten times as much.
//!
//! Approach: all that one step puts together shares one room, and each copy takes its bytes from the room before it is
//! made. Literals take nothing, since the source of the program bounds them. To count a value costs less than to copy
//! it, and counting stops where the room ends.
//!
//! Rejected: shared values with a cached size. They make a copy free, but JSON text and handlers still need all of it.

use serde_json::Value;

use super::MAX_VALUES_BYTES;

/// The memory that values of one step may still take.
#[derive(Clone, Copy, Debug)]
pub struct ValueRoom(usize);

/// What a value takes beside its text, elements or entries.
const NODE_BYTES: usize = size_of::<Value>();
/// What an entry of a map takes beside its key's text and its value.
const ENTRY_BYTES: usize = size_of::<String>() + 8;

impl Default for ValueRoom {
    fn default() -> Self {
        Self(MAX_VALUES_BYTES)
    }
}

impl ValueRoom {
    /// Takes the bytes of a copy of the value; `None` when there are not as many.
    #[must_use]
    pub(crate) fn take(&mut self, value: &Value) -> Option<()> {
        self.0 = remaining(value, self.0)?;
        Some(())
    }

    #[must_use]
    pub(crate) fn take_bytes(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.checked_sub(bytes)?;
        Some(())
    }

    pub(crate) fn has_room_for(self, value: &Value) -> bool {
        remaining(value, self.0).is_some()
    }

    /// How many bytes are left.
    pub(crate) fn left(self) -> usize {
        self.0
    }
}

/// About as many as the value takes in memory.
pub(super) fn bytes(value: &Value) -> usize {
    remaining(value, usize::MAX).map_or(usize::MAX, |left| usize::MAX - left)
}

/// The part of `room` that remains beside the value, counted no further than needed.
fn remaining(value: &Value, room: usize) -> Option<usize> {
    let room = room.checked_sub(NODE_BYTES)?;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(room),
        Value::String(text) => room.checked_sub(text.len()),
        Value::Array(elements) => elements.iter().try_fold(room, |room, element| remaining(element, room)),
        Value::Object(entries) => entries.iter().try_fold(room, |room, (key, value)| {
            remaining(value, room.checked_sub(key.len() + ENTRY_BYTES)?)
        }),
    }
}

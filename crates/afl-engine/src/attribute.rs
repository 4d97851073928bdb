//! The named values of a step, small ones in place and large ones by reference.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::value::Value;

/// Values whose JSON is longer than this are stored once, beside the steps that name them. Every look at a
/// step reads its attributes, and most looks need few of them.
pub const INLINE_BYTES: usize = 4 << 10;

/// `params` and `returns` of a step (document 003, `FacetAttributes`).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Attributes {
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub params: Fields,
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub returns: Fields,
}

pub type Fields = BTreeMap<String, Attribute>;

/// On the wire `{"value", "type_hint"}`, or `{"blob", "type_hint"}` for a large value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "Wire")]
pub struct Attribute {
    #[serde(flatten)]
    pub held: ValueRef,
    pub type_hint: Arc<str>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum ValueRef {
    #[serde(rename = "value")]
    Inline(Value),
    #[serde(rename = "blob")]
    Blob(BlobRef),
}

/// To read an attribute without the detour that a flattened enum takes.
#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    value: Value,
    blob: Option<BlobRef>,
    type_hint: Arc<str>,
}

impl From<Wire> for Attribute {
    fn from(wire: Wire) -> Self {
        let held = wire.blob.map_or(ValueRef::Inline(wire.value), ValueRef::Blob);
        Self { held, type_hint: wire.type_hint }
    }
}

/// The JSON text of a large value, by its content.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct BlobRef {
    pub hash: BlobHash,
    pub bytes: usize,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlobHash(pub String);

/// A large value on its way to the store.
#[derive(Clone, PartialEq, Debug)]
pub struct Blob {
    pub hash: BlobHash,
    pub text: String,
}

/// The blob for a value that is too large to be kept in place.
pub fn blob_of(value: &Value) -> Option<Blob> {
    if at_most(value, INLINE_BYTES).is_some() {
        return None;
    }
    let text = value.to_string();
    Some(Blob { hash: BlobHash::of(&text), text })
}

impl Blob {
    pub fn held(&self) -> ValueRef {
        ValueRef::Blob(BlobRef { hash: self.hash.clone(), bytes: self.text.len() })
    }
}

impl BlobHash {
    pub fn of(text: &str) -> Self {
        use fmt::Write as _;
        let mut hex = String::with_capacity(64);
        for byte in Sha256::digest(text.as_bytes()) {
            write!(hex, "{byte:02x}").expect("writing to a string does not fail");
        }
        Self(hex)
    }
}

/// The part of `room` that remains after the value, counted roughly and no further than needed.
fn at_most(value: &Value, room: usize) -> Option<usize> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => room.checked_sub(5),
        Value::String(text) => room.checked_sub(text.len() + 3),
        Value::Array(elements) => {
            elements.iter().try_fold(room.checked_sub(2)?, |room, element| at_most(element, room))
        }
        Value::Object(entries) => entries.iter().try_fold(room.checked_sub(2)?, |room, (key, value)| {
            at_most(value, room.checked_sub(key.len() + 4)?)
        }),
    }
}

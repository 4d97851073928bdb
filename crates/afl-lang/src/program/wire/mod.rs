//! The JSON form of every node, described once: the same tables write, read and give the schema.
//!
//! Problem: a document of 60 MB must load fast, with any order of keys and at any depth up to
//! [`MAX_PROGRAM_NESTING`](crate::limits::MAX_PROGRAM_NESTING) (632). An error must name the path to the
//! node. Locations, doc comments and sources are left out on demand; a declaration that is repeated by
//! category is held once.
//!
//! Approach: `nodes!` and `expressions!` turn a table of keys into [`WireValue`]. Parts that nodes share
//! and declarations by category implement [`Field`]. [`Index`] makes reading linear.
//!
//! Rejected: serde's derives with schemars. A node with a `type` (`tag`) and a part that joins the node
//! around it (`flatten`) are buffered again at every level, so the time is quadratic in the depth. A
//! tagged, flattened expression of 600 levels (63 KB) took 324 ms, of 200 levels 25 ms, of 100 levels
//! 5 ms. `serde_json` refuses more than 128 levels unless its limit is switched off, and 600 levels then
//! need between 512 KiB and 1 MiB of stack. On all nodes, a document of 130 MB loaded in 586 ms instead
//! of 311 ms (without hash and validation). The declarations took 75 ms to write instead of 37 ms.
//! Errors inside such nodes have no path.

mod decl;
pub(super) mod document;
mod expr;
mod index;
mod json;
mod node;
mod schema;
mod value;
mod write;

use serde_json::Value;

use decl::CATEGORIES;
pub(super) use index::Index;
pub(super) use json::WireError;
use json::{Json, ObjectReader};
use schema::{Definitions, ObjectShape};
pub(super) use write::{ByteSink, JsonWriter, Pieces, WireForm, WirePurpose};
pub use write::{JsonLayout, Locations};

/// A part of a program with its JSON form.
pub(crate) trait WireValue: Sized {
    fn write(&self, out: &mut JsonWriter<'_>);

    fn read(json: Json<'_>) -> Result<Self, WireError>;

    fn schema(types: &mut Definitions) -> Value;

    /// Whether a key with this value is left out.
    fn is_absent(&self) -> bool {
        false
    }

    /// The meaning of a left-out key; `None` where the key is required.
    fn when_absent() -> Option<Self> {
        None
    }
}

/// A field of a node in the object of the node. Most have one key; a part that nodes share has several.
pub(crate) trait Field: Sized {
    fn write_field(&self, key: &'static str, out: &mut JsonWriter<'_>);

    fn read_field(key: &'static str, fields: &mut ObjectReader<'_>) -> Result<Self, WireError>;

    fn describe(key: &'static str, shape: &mut ObjectShape<'_>);
}

impl<T: WireValue> Field for T {
    #[inline]
    fn write_field(&self, key: &'static str, out: &mut JsonWriter<'_>) {
        if !out.form.leaves_out(key) && !self.is_absent() {
            out.key(key);
            self.write(out);
        }
    }

    fn read_field(key: &'static str, fields: &mut ObjectReader<'_>) -> Result<Self, WireError> {
        fields.take(key)
    }

    fn describe(key: &'static str, shape: &mut ObjectShape<'_>) {
        shape.of::<T>(key);
    }
}

/// Describes nodes: the fields in the order they are written, each with its key where that is not its
/// name (`[given, default][0]` is the given one, if there is one). `as` names the node's `type`, `via` a type that writes and reads the field in place of its own.
macro_rules! nodes {
    ($($node:ident $(as $tag:literal)? { $($field:ident $(: $key:literal)? $(via $codec:ident)?),* })*) => {$(
        impl $node {
            /// `None` where the object has no `type`, or a field gives it.
            const TAG: Option<&'static str> = [$(Some($tag),)? None][0];

            /// The `type` of a node may depend on where it stands.
            pub(super) fn write_as(&self, tag: Option<&'static str>, out: &mut JsonWriter<'_>) {
                out.object(|out| {
                    if let Some(tag) = tag {
                        out.tag(tag);
                    }
                    $(<codec!($($codec)?)>::write_field(&self.$field, [$($key,)? stringify!($field)][0], out);)*
                });
            }

            pub(super) fn read_as(tag: Option<&'static str>, json: Json<'_>) -> Result<Self, WireError> {
                let mut fields = json.object()?;
                tag.map_or(Ok(()), |tag| fields.tag(tag))?;
                let node = Self {
                    $($field: <codec!($($codec)?)>::read_field([$($key,)? stringify!($field)][0], &mut fields)?,)*
                };
                fields.finish()?;
                Ok(node)
            }
        }

        impl WireValue for $node {
            fn write(&self, out: &mut JsonWriter<'_>) {
                self.write_as(Self::TAG, out);
            }

            fn read(json: Json<'_>) -> Result<Self, WireError> {
                Self::read_as(Self::TAG, json)
            }

            fn schema(types: &mut Definitions) -> Value {
                types.object(stringify!($node), |shape| {
                    if let Some(tag) = Self::TAG {
                        shape.tag(tag);
                    }
                    $(<codec!($($codec)?)>::describe([$($key,)? stringify!($field)][0], shape, |node: &Self| &node.$field);)*
                })
            }
        }
    )*};
}
use nodes;

macro_rules! codec {
    () => {
        super::PlainField
    };
    ($codec:ident) => {
        $codec
    };
}
use codec;

/// Writes and reads a field as its own type says.
struct PlainField;

impl PlainField {
    #[inline]
    fn write_field<T: Field>(value: &T, key: &'static str, out: &mut JsonWriter<'_>) {
        value.write_field(key, out);
    }

    fn read_field<T: Field>(key: &'static str, fields: &mut ObjectReader<'_>) -> Result<T, WireError> {
        T::read_field(key, fields)
    }

    /// `_field` only names the type.
    fn describe<N, T: Field>(key: &'static str, shape: &mut ObjectShape<'_>, _field: fn(&N) -> &T) {
        T::describe(key, shape);
    }
}

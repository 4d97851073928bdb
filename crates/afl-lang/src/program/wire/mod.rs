//! The JSON form of every node, described once: the same table writes, reads and gives the schema.

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
pub(super) use json::Malformed;
use json::{Fields, Json};
use schema::{Definitions, Shape};
pub(super) use write::{Categories, Docs, Form, Pieces, Sink, Writer};
pub use write::{Layout, Locations};

/// A part of a program with its JSON form.
pub(crate) trait Wire: Sized {
    fn write(&self, out: &mut Writer<'_>);

    fn read(json: Json<'_>) -> Result<Self, Malformed>;

    fn schema(types: &mut Definitions) -> Value;

    /// Whether a key with this value is left out.
    fn is_absent(&self, _form: &Form<'_>) -> bool {
        false
    }

    /// What a left-out key means; `None` where the key is required.
    fn when_absent() -> Option<Self> {
        None
    }
}

/// Describes an object: the fields in the order they are written, each with its key. `as` names the
/// node's `type`.
macro_rules! object {
    ($node:ident $(as $tag:literal)? { $($field:ident: $key:literal),* $(,)? }) => {
        impl Wire for $node {
            fn write(&self, out: &mut Writer<'_>) {
                out.object(|out| {
                    $(out.tag($tag);)?
                    $(out.field($key, &self.$field);)*
                });
            }

            fn read(json: Json<'_>) -> Result<Self, Malformed> {
                let mut fields = json.object()?;
                $(fields.tag($tag)?;)?
                let node = Self { $($field: fields.take($key)?,)* };
                fields.finish()?;
                Ok(node)
            }

            fn schema(types: &mut Definitions) -> Value {
                types.object(stringify!($node), |shape| {
                    $(shape.tag($tag);)?
                    $(shape.field($key, |node: &$node| &node.$field);)*
                })
            }
        }
    };
}
use object;

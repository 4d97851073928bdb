//! Types as they stand in a compiled program, and their written form.

use std::fmt;
use std::sync::Arc;

/// A type with its schema name qualified. Written `Long`, `[String]?`, `shop.Item`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TypeRef {
    String,
    Long,
    Int,
    Double,
    Boolean,
    Json,
    Schema(Arc<str>),
    List(Box<TypeRef>),
    Nullable(Box<TypeRef>),
}

impl TypeRef {
    pub fn builtin(name: &str) -> Option<Self> {
        Some(match name {
            "String" => Self::String,
            "Long" => Self::Long,
            "Int" => Self::Int,
            "Double" => Self::Double,
            "Boolean" => Self::Boolean,
            "Json" => Self::Json,
            _ => return None,
        })
    }

    /// The names that [`builtin`](Self::builtin) knows.
    pub const BUILTINS: [&str; 6] = ["String", "Long", "Int", "Double", "Boolean", "Json"];
}

impl fmt::Display for TypeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String => f.write_str("String"),
            Self::Long => f.write_str("Long"),
            Self::Int => f.write_str("Int"),
            Self::Double => f.write_str("Double"),
            Self::Boolean => f.write_str("Boolean"),
            Self::Json => f.write_str("Json"),
            Self::Schema(name) => f.write_str(name),
            Self::List(of) => write!(f, "[{of}]"),
            Self::Nullable(of) => write!(f, "{of}?"),
        }
    }
}

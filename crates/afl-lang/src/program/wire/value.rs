//! The JSON form of the small values that nodes are made of.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Definitions, Field, Json, JsonWriter, WireError, WireValue};
use crate::limits::MAX_NESTING;
use crate::source::FileId;
use crate::types::TypeRef;

macro_rules! texts {
    ($($ty:ty),*) => {$(
        impl WireValue for $ty {
            fn write(&self, out: &mut JsonWriter<'_>) {
                out.text(self);
            }

            fn read(json: Json<'_>) -> Result<Self, WireError> {
                Ok(json.text()?.into())
            }

            fn schema(_: &mut Definitions) -> Value {
                json!({"type": "string"})
            }
        }
    )*};
}

texts!(String, Arc<str>);

macro_rules! scalars {
    ($($ty:ty, $what:literal, $schema:tt;)*) => {$(
        impl WireValue for $ty {
            fn write(&self, out: &mut JsonWriter<'_>) {
                out.scalar(self);
            }

            fn read(json: Json<'_>) -> Result<Self, WireError> {
                json.scalar($what)
            }

            fn schema(_: &mut Definitions) -> Value {
                json!($schema)
            }
        }
    )*};
}

scalars! {
    u32, "a whole number from 0 to 4294967295", {"type": "integer", "minimum": 0, "maximum": u32::MAX};
    i64, "a whole number of 64 bits", {"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX};
    bool, "true or false", {"type": "boolean"};
}

impl WireValue for f64 {
    fn write(&self, out: &mut JsonWriter<'_>) {
        assert!(self.is_finite(), "a literal is a finite number, not {self}");
        out.scalar(self);
    }

    fn read(json: Json<'_>) -> Result<Self, WireError> {
        json.scalar("a number")
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "number"})
    }
}

impl<T: WireValue> WireValue for Option<T> {
    fn write(&self, out: &mut JsonWriter<'_>) {
        match self {
            Some(value) => value.write(out),
            None => unreachable!("a key without a value is left out"),
        }
    }

    fn read(json: Json<'_>) -> Result<Self, WireError> {
        T::read(json).map(Some)
    }

    fn schema(types: &mut Definitions) -> Value {
        T::schema(types)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn when_absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: WireValue> WireValue for Vec<T> {
    fn write(&self, out: &mut JsonWriter<'_>) {
        out.list(self, |out, item| item.write(out));
    }

    fn read(json: Json<'_>) -> Result<Self, WireError> {
        json.list(T::read)
    }

    fn schema(types: &mut Definitions) -> Value {
        json!({"type": "array", "items": T::schema(types)})
    }

    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn when_absent() -> Option<Self> {
        Some(Self::new())
    }
}

/// An entry of a map or a prompt.
impl<T: WireValue> WireValue for (String, T) {
    fn write(&self, out: &mut JsonWriter<'_>) {
        out.object(|out| {
            self.0.write_field("key", out);
            self.1.write_field("value", out);
        });
    }

    fn read(json: Json<'_>) -> Result<Self, WireError> {
        let mut fields = json.object()?;
        let entry = (fields.take("key")?, fields.take("value")?);
        fields.finish()?;
        Ok(entry)
    }

    fn schema(types: &mut Definitions) -> Value {
        types.inline(|shape| {
            shape.of::<String>("key");
            shape.of::<T>("value");
        })
    }
}

/// `sourceId`: the name of the source text.
impl WireValue for FileId {
    fn write(&self, out: &mut JsonWriter<'_>) {
        out.text(&out.form.sources[self.0 as usize]);
    }

    fn read(json: Json<'_>) -> Result<Self, WireError> {
        json.source()
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "string", "description": "the id of a source in `provenance`"})
    }
}

/// A type is its written form.
impl WireValue for TypeRef {
    fn write(&self, out: &mut JsonWriter<'_>) {
        out.text(&self.to_string());
    }

    fn read(json: Json<'_>) -> Result<Self, WireError> {
        let text = json.text()?;
        parse_type(&text).ok_or_else(|| WireError::new(format!("`{text}` is not a type")))
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({
            "type": "string",
            "description": "a type as written: `Long`, `[String]?`, `shop.Item`",
            "pattern": r"^\[*[A-Za-z_][A-Za-z0-9_.]*[\]?]*$",
        })
    }
}

fn parse_type(text: &str) -> Option<TypeRef> {
    type Wrap = fn(Box<TypeRef>) -> TypeRef;
    let mut inner = text;
    let mut wraps: Vec<Wrap> = Vec::new();
    while wraps.len() <= MAX_NESTING as usize {
        if let Some(nullable) = inner.strip_suffix('?').filter(|rest| !rest.ends_with('?')) {
            wraps.push(TypeRef::Nullable);
            inner = nullable;
        } else if let Some(item) = inner.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            wraps.push(TypeRef::List);
            inner = item;
        } else {
            let is_name = |part: &str| {
                !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            };
            let name = inner.split('.').all(is_name).then_some(inner)?;
            let base = TypeRef::builtin(name).unwrap_or_else(|| TypeRef::Schema(name.into()));
            return Some(wraps.into_iter().rev().fold(base, |of, wrap| wrap(Box::new(of))));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_reads_back_as_it_is_written() {
        for text in ["Long", "[String]?", "[[shop.Item?]]", "example.4.Item"] {
            assert_eq!(parse_type(text).expect(text).to_string(), text);
        }
    }

    #[test]
    fn an_invalid_type_is_refused() {
        let deep = format!("{}Long{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        for text in ["", "[", "[]", "Long??", "a..b", "[Long", "Long]", "a b", &deep] {
            assert_eq!(parse_type(text), None);
        }
    }
}

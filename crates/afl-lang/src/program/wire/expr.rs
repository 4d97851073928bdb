//! The JSON form of expressions.

use serde_json::{Value, json};

use super::{Definitions, Field, Json, JsonWriter, ObjectReader, WireError, WireValue};
use crate::program::{BinaryOp, Expr, ExprKind, InputRef, InputSource, Location, StepRef, UnaryOp};

/// Describes the kinds of expressions: a pattern, the `type`, the keys with their types and values, and
/// how the kind is made of the values read.
macro_rules! expressions {
    ($($kind:pat, $tag:literal { $($key:ident: $ty:ty = $value:expr),* } => $made:expr;)*) => {
        fn write_kind(kind: &ExprKind, out: &mut JsonWriter<'_>) {
            match kind {
                $($kind => {
                    out.tag($tag);
                    $($value.write_field(stringify!($key), out);)*
                })*
            }
        }

        /// Expressions nest, so every kind is read in a function of its own: this one's frame stays small.
        fn read_kind(fields: &mut ObjectReader<'_>) -> Result<ExprKind, WireError> {
            match &*fields.take_with("type", Json::text)? {
                $($tag => {
                    let read: fn(&mut ObjectReader<'_>) -> Result<ExprKind, WireError> = |_fields| {
                        $(let $key: $ty = _fields.take(stringify!($key))?;)*
                        Ok($made)
                    };
                    read(fields)
                })*
                other => Err(WireError::new(format!("`{other}` is not an expression"))),
            }
        }

        impl WireValue for Expr {
            fn write(&self, out: &mut JsonWriter<'_>) {
                out.object(|out| {
                    write_kind(&self.kind, out);
                    self.location.write_field("location", out);
                });
            }

            fn read(json: Json<'_>) -> Result<Self, WireError> {
                let mut fields = json.object()?;
                let kind = read_kind(&mut fields)?;
                finish(kind, fields)
            }

            fn schema(types: &mut Definitions) -> Value {
                types.define("Expr", |types| json!({"oneOf": [$(types.object($tag, |shape| {
                    shape.tag($tag);
                    $(shape.of::<$ty>(stringify!($key));)*
                    shape.of::<Option<Location>>("location");
                }),)*]}))
            }
        }
    };
}

expressions! {
    ExprKind::String(it), "String" { value: String = it } => ExprKind::String(value);
    ExprKind::Int(it), "Int" { value: i64 = it } => ExprKind::Int(value);
    ExprKind::Double(it), "Double" { value: f64 = it } => ExprKind::Double(value);
    ExprKind::Boolean(it), "Boolean" { value: bool = it } => ExprKind::Boolean(value);
    ExprKind::Null, "Null" {} => ExprKind::Null;
    ExprKind::Array(it), "ArrayLiteral" { elements: Vec<Expr> = it } => ExprKind::Array(elements);
    ExprKind::Map(it), "MapLiteral" { entries: Vec<(String, Expr)> = it } => ExprKind::Map(entries);
    ExprKind::Concat(it), "ConcatExpr" { operands: Vec<Expr> = it } => ExprKind::Concat(operands);
    ExprKind::Input(it), "InputRef" { path: Vec<String> = it.path, source: InputSource = it.source }
        => ExprKind::Input(InputRef { path, source });
    ExprKind::Step(it), "StepRef" { path: Vec<String> = it.path, clause: Option<u32> = it.clause }
        => ExprKind::Step(StepRef { path, clause });
    ExprKind::Binary(op, it), "BinaryExpr" { operator: BinaryOp = op, left: Expr = it[0], right: Expr = it[1] }
        => ExprKind::Binary(operator, Box::new([left, right]));
    ExprKind::Unary(op, it), "UnaryExpr" { operator: UnaryOp = op, operand: Expr = **it }
        => ExprKind::Unary(operator, Box::new(operand));
    ExprKind::Index(it), "IndexExpr" { base: Expr = it[0], index: Expr = it[1] }
        => ExprKind::Index(Box::new([base, index]));
}

fn finish(kind: ExprKind, mut fields: ObjectReader<'_>) -> Result<Expr, WireError> {
    let location = fields.take("location")?;
    fields.finish()?;
    Ok(Expr { kind, location })
}

impl InputSource {
    const ALL: [Self; 3] = [Self::Owner, Self::Foreach, Self::Caught];

    fn text(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Foreach => "foreach",
            Self::Caught => "caught",
        }
    }
}

/// A value of a fixed set, written as its text; `absent` is what a left-out key means.
macro_rules! choice {
    ($ty:ident, $what:literal, $choices:expr $(, absent $absent:expr)?) => {
        impl WireValue for $ty {
            fn write(&self, out: &mut JsonWriter<'_>) {
                out.text(self.text());
            }

            fn read(json: Json<'_>) -> Result<Self, WireError> {
                let text = json.text()?;
                let choice = $choices.find(|choice| choice.text() == text);
                choice.ok_or_else(|| WireError::new(format!("`{text}` is not a {}", $what)))
            }

            fn schema(_: &mut Definitions) -> Value {
                let texts: Vec<_> = $choices.map(Self::text).collect();
                json!({"enum": texts})
            }

            $(
                fn is_absent(&self) -> bool {
                    *self == $absent
                }

                fn when_absent() -> Option<Self> {
                    Some($absent)
                }
            )?
        }
    };
}

choice!(BinaryOp, "binary operator", Self::ALL.iter().copied());
choice!(UnaryOp, "unary operator", Self::ALL.iter().copied().filter(|op| op.is_compiled()));
choice!(InputSource, "source of an input", Self::ALL.into_iter(), absent Self::Owner);

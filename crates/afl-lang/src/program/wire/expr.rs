//! The JSON form of expressions.

use serde_json::{Value, json};

use super::{Definitions, Fields, Form, Json, Malformed, Shape, Wire, Writer};
use crate::program::{BinaryOp, Expr, ExprKind, InputRef, InputSource, Location, StepRef, UnaryOp};

impl Wire for Expr {
    fn write(&self, out: &mut Writer<'_>) {
        out.object(|out| {
            write_kind(&self.kind, out);
            out.field("location", &self.location);
        });
    }

    fn read(json: Json<'_>) -> Result<Self, Malformed> {
        let mut fields = json.object()?;
        let kind = read_kind(&mut fields)?;
        finish(kind, fields)
    }

    fn schema(types: &mut Definitions) -> Value {
        types.define("Expr", |types| {
            let describe = |(tag, describe): (&'static str, Describe)| {
                types.object(tag, |shape| {
                    shape.tag(tag);
                    describe(shape);
                    shape.of::<Option<Location>>("location");
                })
            };
            json!({"oneOf": KINDS.map(describe)})
        })
    }
}

fn write_kind(kind: &ExprKind, out: &mut Writer<'_>) {
    match kind {
        ExprKind::String(value) => write_part(out, "String", "value", value),
        ExprKind::Int(value) => write_part(out, "Int", "value", value),
        ExprKind::Double(value) => write_part(out, "Double", "value", value),
        ExprKind::Boolean(value) => write_part(out, "Boolean", "value", value),
        ExprKind::Null => out.tag("Null"),
        ExprKind::Array(elements) => write_part(out, "ArrayLiteral", "elements", elements),
        ExprKind::Map(entries) => write_part(out, "MapLiteral", "entries", entries),
        ExprKind::Concat(operands) => write_part(out, "ConcatExpr", "operands", operands),
        ExprKind::Input(input) => {
            write_part(out, "InputRef", "path", &input.path);
            out.field("source", &input.source);
        }
        ExprKind::Step(step) => {
            write_part(out, "StepRef", "path", &step.path);
            out.field("clause", &step.clause);
        }
        ExprKind::Binary(op, operands) => {
            write_part(out, "BinaryExpr", "operator", op);
            out.field("left", &operands[0]);
            out.field("right", &operands[1]);
        }
        ExprKind::Unary(op, operand) => {
            write_part(out, "UnaryExpr", "operator", op);
            out.field("operand", &**operand);
        }
        ExprKind::Index(parts) => {
            write_part(out, "IndexExpr", "base", &parts[0]);
            out.field("index", &parts[1]);
        }
    }
}

fn write_part(out: &mut Writer<'_>, tag: &str, key: &str, part: &impl Wire) {
    out.tag(tag);
    out.field(key, part);
}

/// Expressions nest, so every kind is read in a function of its own: this one's frame stays small.
fn read_kind(fields: &mut Fields<'_>) -> Result<ExprKind, Malformed> {
    match &*fields.take_with("type", Json::text)? {
        "String" => read_part(fields, "value", ExprKind::String),
        "Int" => read_part(fields, "value", ExprKind::Int),
        "Double" => read_part(fields, "value", ExprKind::Double),
        "Boolean" => read_part(fields, "value", ExprKind::Boolean),
        "Null" => Ok(ExprKind::Null),
        "ArrayLiteral" => read_part(fields, "elements", ExprKind::Array),
        "MapLiteral" => read_part(fields, "entries", ExprKind::Map),
        "ConcatExpr" => read_part(fields, "operands", ExprKind::Concat),
        "InputRef" => read_input(fields),
        "StepRef" => read_step(fields),
        "BinaryExpr" => read_binary(fields),
        "UnaryExpr" => read_unary(fields),
        "IndexExpr" => read_pair(fields, "base", "index").map(ExprKind::Index),
        other => Err(Malformed::new(format!("`{other}` is not an expression"))),
    }
}

fn read_part<T: Wire>(
    fields: &mut Fields<'_>,
    key: &'static str,
    kind: fn(T) -> ExprKind,
) -> Result<ExprKind, Malformed> {
    fields.take(key).map(kind)
}

fn read_input(fields: &mut Fields<'_>) -> Result<ExprKind, Malformed> {
    Ok(ExprKind::Input(InputRef { path: fields.take("path")?, source: fields.take("source")? }))
}

fn read_step(fields: &mut Fields<'_>) -> Result<ExprKind, Malformed> {
    Ok(ExprKind::Step(StepRef { path: fields.take("path")?, clause: fields.take("clause")? }))
}

fn read_binary(fields: &mut Fields<'_>) -> Result<ExprKind, Malformed> {
    Ok(ExprKind::Binary(fields.take("operator")?, read_pair(fields, "left", "right")?))
}

fn read_unary(fields: &mut Fields<'_>) -> Result<ExprKind, Malformed> {
    let op = fields.take("operator")?;
    Ok(ExprKind::Unary(op, read_boxed(fields, "operand")?))
}

fn read_pair(
    fields: &mut Fields<'_>,
    first: &'static str,
    second: &'static str,
) -> Result<Box<[Expr; 2]>, Malformed> {
    let first = read_boxed(fields, first)?;
    let second = read_boxed(fields, second)?;
    Ok(Box::new([*first, *second]))
}

fn read_boxed(fields: &mut Fields<'_>, key: &'static str) -> Result<Box<Expr>, Malformed> {
    fields.take(key).map(Box::new)
}

fn finish(kind: ExprKind, mut fields: Fields<'_>) -> Result<Expr, Malformed> {
    let location = fields.take("location")?;
    fields.finish()?;
    Ok(Expr { kind, location })
}

/// Describes one kind of expression.
type Describe = fn(&mut Shape<'_>);

const KINDS: [(&str, Describe); 13] = [
    ("String", |shape| shape.of::<String>("value")),
    ("Int", |shape| shape.of::<i64>("value")),
    ("Double", |shape| shape.of::<f64>("value")),
    ("Boolean", |shape| shape.of::<bool>("value")),
    ("Null", |_| {}),
    ("ArrayLiteral", |shape| shape.of::<Vec<Expr>>("elements")),
    ("MapLiteral", |shape| shape.of::<Vec<(String, Expr)>>("entries")),
    ("ConcatExpr", |shape| shape.of::<Vec<Expr>>("operands")),
    ("InputRef", |shape| {
        shape.field("path", |input: &InputRef| &input.path);
        shape.field("source", |input: &InputRef| &input.source);
    }),
    ("StepRef", |shape| {
        shape.field("path", |step: &StepRef| &step.path);
        shape.field("clause", |step: &StepRef| &step.clause);
    }),
    ("BinaryExpr", |shape| {
        shape.of::<BinaryOp>("operator");
        shape.of::<Expr>("left");
        shape.of::<Expr>("right");
    }),
    ("UnaryExpr", |shape| {
        shape.of::<UnaryOp>("operator");
        shape.of::<Expr>("operand");
    }),
    ("IndexExpr", |shape| {
        shape.of::<Expr>("base");
        shape.of::<Expr>("index");
    }),
];

impl Wire for BinaryOp {
    fn write(&self, out: &mut Writer<'_>) {
        out.text(self.text());
    }

    fn read(json: Json<'_>) -> Result<Self, Malformed> {
        read_choice(json, "binary operator", Self::from_text)
    }

    fn schema(_: &mut Definitions) -> Value {
        let texts: Vec<_> = Self::ALL.iter().map(|op| op.text()).collect();
        json!({"enum": texts})
    }
}

impl Wire for UnaryOp {
    fn write(&self, out: &mut Writer<'_>) {
        out.text(self.text());
    }

    fn read(json: Json<'_>) -> Result<Self, Malformed> {
        read_choice(json, "unary operator", |text| Self::from_text(text).filter(|op| op.is_compiled()))
    }

    fn schema(_: &mut Definitions) -> Value {
        let compiled = Self::ALL.iter().filter(|op| op.is_compiled());
        let texts: Vec<_> = compiled.map(|op| op.text()).collect();
        json!({"enum": texts})
    }
}

const INPUT_SOURCES: [InputSource; 3] = [InputSource::Owner, InputSource::Foreach, InputSource::Caught];

impl InputSource {
    fn text(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Foreach => "foreach",
            Self::Caught => "caught",
        }
    }
}

impl Wire for InputSource {
    fn write(&self, out: &mut Writer<'_>) {
        out.text(self.text());
    }

    fn read(json: Json<'_>) -> Result<Self, Malformed> {
        read_choice(json, "source of an input", |text| {
            INPUT_SOURCES.into_iter().find(|source| source.text() == text)
        })
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"enum": INPUT_SOURCES.map(Self::text)})
    }

    fn is_absent(&self, _: &Form<'_>) -> bool {
        *self == Self::Owner
    }

    fn when_absent() -> Option<Self> {
        Some(Self::Owner)
    }
}

fn read_choice<T>(json: Json<'_>, what: &str, from_text: fn(&str) -> Option<T>) -> Result<T, Malformed> {
    let text = json.text()?;
    from_text(&text).ok_or_else(|| Malformed::new(format!("`{text}` is not a {what}")))
}

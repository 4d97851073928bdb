//! Expressions as a reader would write them, for captions.

use std::fmt;

use crate::program::{BinaryOp, Expr, ExprKind, InputRef, InputSource};

/// Characters of a caption; a longer expression is cut.
const MAX_LENGTH: usize = 60;

pub(super) fn written(expr: &Expr) -> String {
    shortened(&Written(expr).to_string())
}

/// Cut to what fits into a caption.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_LENGTH) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// `$.a.b`, or `item.a` for the variable of a `foreach`.
pub(super) fn input(input: &InputRef) -> String {
    match input.source {
        InputSource::Foreach => input.path.join("."),
        InputSource::Owner | InputSource::Caught if input.path.is_empty() => "$".into(),
        InputSource::Owner | InputSource::Caught => format!("$.{}", input.path.join(".")),
    }
}

struct Written<'e>(&'e Expr);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.kind {
            ExprKind::String(value) => write!(f, "{value:?}"),
            ExprKind::Int(value) => write!(f, "{value}"),
            ExprKind::Double(value) => write!(f, "{value:?}"),
            ExprKind::Boolean(value) => write!(f, "{value}"),
            ExprKind::Null => f.write_str("null"),
            ExprKind::Input(reference) => f.write_str(&input(reference)),
            ExprKind::Step(step) => f.write_str(&step.path.join(".")),
            ExprKind::Array(items) => write!(f, "[{}]", Joined(items, ", ")),
            ExprKind::Map(entries) => write_map(f, entries),
            ExprKind::Concat(operands) => Joined(operands, " ++ ").fmt(f),
            ExprKind::Binary(op, operands) => {
                let [left, right] = &**operands;
                write!(f, "{} {} {}", Operand(left, Some(*op)), op.text(), Operand(right, Some(*op)))
            }
            ExprKind::Unary(op, operand) => write!(f, "{}{}", op.text(), Operand(operand, None)),
            ExprKind::Index(parts) => write!(f, "{}[{}]", Operand(&parts[0], None), Written(&parts[1])),
        }
    }
}

fn write_map(f: &mut fmt::Formatter<'_>, entries: &[(String, Expr)]) -> fmt::Result {
    f.write_str("#{")?;
    for (at, (key, value)) in entries.iter().enumerate() {
        let separator = if at == 0 { "" } else { ", " };
        write!(f, "{separator}{key:?}: {}", Written(value))?;
    }
    f.write_str("}")
}

struct Joined<'e>(&'e [Expr], &'e str);

impl fmt::Display for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, expr) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { self.1 };
            write!(f, "{separator}{}", Written(expr))?;
        }
        Ok(())
    }
}

/// An operand, in parentheses where it needs them: `a && b && c`, but `(a || b) && c`.
struct Operand<'e>(&'e Expr, Option<BinaryOp>);

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_loose = match (&self.0.kind, self.1) {
            (ExprKind::Binary(op, _), Some(around)) => {
                *op != around && !(around <= BinaryOp::And && *op > BinaryOp::And)
            }
            (ExprKind::Binary(..), None) | (ExprKind::Concat(_), _) => true,
            _ => false,
        };
        if is_loose { write!(f, "({})", Written(self.0)) } else { Written(self.0).fmt(f) }
    }
}

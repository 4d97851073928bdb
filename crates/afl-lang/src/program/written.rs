//! Expressions as a reader would write them, for captions and messages.

use std::fmt;

use super::{BinaryOp, Expr, ExprKind, InputRef, InputSource};
use crate::operator::{CONCAT, Precedence};

/// Characters of an expression that a caption or a message has room for.
const MAX_LENGTH: usize = 60;

/// Cut to the length of a caption or a message.
pub fn shortened(text: &str) -> String {
    cut(text, MAX_LENGTH)
}

/// The first characters of a text.
pub fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExprKind::String(value) => write!(f, "{value:?}"),
            ExprKind::Int(value) => write!(f, "{value}"),
            ExprKind::Double(value) => write!(f, "{value:?}"),
            ExprKind::Boolean(value) => write!(f, "{value}"),
            ExprKind::Null => f.write_str("null"),
            ExprKind::Input(reference) => reference.fmt(f),
            ExprKind::Step(step) => f.write_str(&step.path.join(".")),
            ExprKind::Array(items) => write!(f, "[{}]", SeparatedExprs(items, ", ")),
            ExprKind::Map(entries) => write_map(f, entries),
            ExprKind::Concat(operands) => SeparatedExprs(operands, &format!(" {CONCAT} ")).fmt(f),
            ExprKind::Binary(op, operands) => {
                let [left, right] = &**operands;
                write!(
                    f,
                    "{} {} {}",
                    Operand(left, OperandSide::Left(*op)),
                    op.text(),
                    Operand(right, OperandSide::Right(*op))
                )
            }
            ExprKind::Unary(op, operand) => {
                write!(f, "{}{}", op.text(), Operand(operand, OperandSide::Tight))
            }
            ExprKind::Index(parts) => write!(f, "{}[{}]", Operand(&parts[0], OperandSide::Tight), parts[1]),
        }
    }
}

/// `$.a.b`, or `item.a` for the variable of a `foreach`.
impl fmt::Display for InputRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.join(".");
        match self.source {
            InputSource::Foreach => f.write_str(&path),
            InputSource::Owner | InputSource::Caught if path.is_empty() => f.write_str("$"),
            InputSource::Owner | InputSource::Caught => write!(f, "$.{path}"),
        }
    }
}

fn write_map(f: &mut fmt::Formatter<'_>, entries: &[(String, Expr)]) -> fmt::Result {
    f.write_str("#{")?;
    for (at, (key, value)) in entries.iter().enumerate() {
        let separator = if at == 0 { "" } else { ", " };
        write!(f, "{separator}{key:?}: {value}")?;
    }
    f.write_str("}")
}

struct SeparatedExprs<'e>(&'e [Expr], &'e str);

impl fmt::Display for SeparatedExprs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, expr) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { self.1 };
            write!(f, "{separator}{expr}")?;
        }
        Ok(())
    }
}

/// An operand, in parentheses where it needs them: `a && b && c`, but `(a || b) && c` and `a - (b - c)`.
struct Operand<'e>(&'e Expr, OperandSide);

#[derive(Clone, Copy)]
enum OperandSide {
    Left(BinaryOp),
    Right(BinaryOp),
    /// Of an operator that binds tighter than any with two sides.
    Tight,
}

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_loose = match (&self.0.kind, self.1) {
            (ExprKind::Binary(op, _), OperandSide::Left(around)) => {
                !(splits(around, *op) || *op == around && chains(around))
            }
            (ExprKind::Binary(op, _), OperandSide::Right(around)) => !splits(around, *op),
            (ExprKind::Binary(..), OperandSide::Tight) | (ExprKind::Concat(_), _) => true,
            _ => false,
        };
        if is_loose { write!(f, "({})", self.0) } else { self.0.fmt(f) }
    }
}

/// Whether `a op b op c` can be written: comparisons stand alone.
fn chains(op: BinaryOp) -> bool {
    op.level() != Precedence::Compare
}

/// Whether everyone reads `a around b op c` as `a around (b op c)`.
fn splits(around: BinaryOp, op: BinaryOp) -> bool {
    around.level() <= Precedence::And && op.level() > Precedence::And
}

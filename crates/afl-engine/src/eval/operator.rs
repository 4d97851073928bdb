//! The operators with two sides, except those that may leave one unevaluated.

use std::borrow::Cow;
use std::cmp::Ordering;

use afl_lang::program::{BinaryOp, Expr};

use super::error::{EvalError, named};
use crate::value::{ArithmeticError, Number, Value, ValueKind, equal, order};

/// Why two operands do not go together.
enum OperandProblem {
    Arithmetic(ArithmeticError),
    /// The operator does not take operands of these kinds.
    Kinds,
}

impl From<ArithmeticError> for OperandProblem {
    fn from(error: ArithmeticError) -> Self {
        Self::Arithmetic(error)
    }
}

/// `expr` is the whole expression, for messages.
pub(super) fn apply(
    expr: &Expr,
    op: BinaryOp,
    left: Cow<'_, Value>,
    right: &Value,
) -> Result<Value, EvalError> {
    let kinds = (ValueKind::of(&left), ValueKind::of(right));
    result(op, left, right).map_err(|problem| match problem {
        OperandProblem::Arithmetic(problem) => EvalError::Arithmetic { problem, expr: named(expr) },
        OperandProblem::Kinds => EvalError::Operands { op, left: kinds.0, right: kinds.1, expr: named(expr) },
    })
}

fn result(op: BinaryOp, left: Cow<'_, Value>, right: &Value) -> Result<Value, OperandProblem> {
    Ok(Value::Bool(match op {
        BinaryOp::Add => return sum(left, right),
        BinaryOp::Subtract => return arithmetic(&left, right, Number::minus),
        BinaryOp::Multiply => return arithmetic(&left, right, Number::times),
        BinaryOp::Divide => return arithmetic(&left, right, Number::divided_by),
        BinaryOp::Modulo => return arithmetic(&left, right, Number::modulo),
        BinaryOp::Equal => are_equal(&left, right)?,
        BinaryOp::NotEqual => !are_equal(&left, right)?,
        BinaryOp::Less => in_order(&left, right)?.is_lt(),
        BinaryOp::LessEqual => in_order(&left, right)?.is_le(),
        BinaryOp::Greater => in_order(&left, right)?.is_gt(),
        BinaryOp::GreaterEqual => in_order(&left, right)?.is_ge(),
        BinaryOp::In => is_in(&left, right)?,
        BinaryOp::NotIn => !is_in(&left, right)?,
        BinaryOp::Contains => is_in(right, &left)?,
        BinaryOp::StartsWith => strings(&left, right, |text, part| text.starts_with(part))?,
        BinaryOp::EndsWith => strings(&left, right, |text, part| text.ends_with(part))?,
        BinaryOp::Or | BinaryOp::And => unreachable!("their right side is evaluated only when needed"),
    }))
}

/// Makes an intermediate string or list longer in place, so that a chain of sums copies each part once.
fn sum(left: Cow<'_, Value>, right: &Value) -> Result<Value, OperandProblem> {
    match (left.into_owned(), right) {
        (Value::Number(left), Value::Number(right)) => {
            Ok(Number::of(&left).plus(Number::of(right))?.to_value()?)
        }
        (Value::String(mut text), Value::String(more)) => {
            text.push_str(more);
            Ok(Value::String(text))
        }
        (Value::Array(mut elements), Value::Array(more)) => {
            elements.extend_from_slice(more);
            Ok(Value::Array(elements))
        }
        _ => Err(OperandProblem::Kinds),
    }
}

fn arithmetic(
    left: &Value,
    right: &Value,
    operation: fn(Number, Number) -> Result<Number, ArithmeticError>,
) -> Result<Value, OperandProblem> {
    let (Value::Number(left), Value::Number(right)) = (left, right) else {
        return Err(OperandProblem::Kinds);
    };
    Ok(operation(Number::of(left), Number::of(right))?.to_value()?)
}

/// The two sides must be of one kind, or one of them null; inside lists and maps anything may differ.
fn are_equal(left: &Value, right: &Value) -> Result<bool, OperandProblem> {
    let comparable = match (ValueKind::of(left), ValueKind::of(right)) {
        (ValueKind::Null, _)
        | (_, ValueKind::Null)
        | (ValueKind::Integer | ValueKind::Double, ValueKind::Integer | ValueKind::Double) => true,
        (left, right) => left == right,
    };
    if comparable { Ok(equal(left, right)) } else { Err(OperandProblem::Kinds) }
}

fn in_order(left: &Value, right: &Value) -> Result<Ordering, OperandProblem> {
    order(left, right).ok_or(OperandProblem::Kinds)
}

fn is_in(element: &Value, container: &Value) -> Result<bool, OperandProblem> {
    match (container, element) {
        (Value::Array(elements), element) => Ok(elements.iter().any(|other| equal(other, element))),
        (Value::Object(entries), Value::String(key)) => Ok(entries.contains_key(key)),
        (Value::String(text), Value::String(part)) => Ok(text.contains(part)),
        _ => Err(OperandProblem::Kinds),
    }
}

fn strings(left: &Value, right: &Value, compare: fn(&str, &str) -> bool) -> Result<bool, OperandProblem> {
    match (left, right) {
        (Value::String(text), Value::String(part)) => Ok(compare(text, part)),
        _ => Err(OperandProblem::Kinds),
    }
}

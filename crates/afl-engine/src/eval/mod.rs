//! Evaluates the expressions of a program (language definition, "Expressions").

mod error;
mod operator;
mod reference;

use std::borrow::Cow;

use afl_lang::program::{BinaryOp, Expr, ExprKind, InputSource, UnaryOp};

pub use error::EvalError;

use self::error::{named, operand};
use crate::value::{
    ArithmeticError, MAX_VALUE_DEPTH, MAX_VALUES_BYTES, Map, Number, Value, ValueKind, bytes,
    is_within_depth, push_text,
};

/// Answers the references of an expression. The engine's answers come from stored steps, without
/// putting their attributes together first.
pub trait Scope {
    /// One attribute; `None` where there is none of this name. An attribute that is null is there.
    fn attribute(&self, root: Root<'_>, name: &str) -> Option<&Value>;

    /// All attributes, for `$` and for a step named alone.
    fn record(&self, root: Root<'_>) -> Map<String, Value>;
}

/// The start of a reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Root<'r> {
    Input(InputSource),
    Step {
        name: &'r str,
        /// The earlier clause of the owner that holds the step; `None`: this block.
        clause: Option<u32>,
    },
}

/// Where nothing can be read, as in the defaults of a schema.
#[derive(Clone, Copy, Debug)]
pub struct NoScope;

impl Scope for NoScope {
    fn attribute(&self, _: Root<'_>, _: &str) -> Option<&Value> {
        None
    }

    fn record(&self, _: Root<'_>) -> Map<String, Value> {
        Map::new()
    }
}

/// The value of an expression.
pub fn eval(expr: &Expr, scope: &dyn Scope) -> Result<Value, EvalError> {
    let value = value_of(expr, scope)?;
    if let Cow::Owned(value) = &value {
        check_bytes(bytes(value), expr)?;
    }
    // One check is enough: intermediate values are higher only by the height of the expression.
    if is_within_depth(&value, MAX_VALUE_DEPTH) {
        Ok(value.into_owned())
    } else {
        Err(EvalError::TooDeep { expr: named(expr) })
    }
}

/// Whether a condition is true.
pub fn holds(condition: &Expr, scope: &dyn Scope) -> Result<bool, EvalError> {
    let value = value_of(condition, scope)?;
    value
        .as_bool()
        .ok_or_else(|| EvalError::NotBoolean { expr: named(condition), found: ValueKind::of(&value) })
}

/// Borrowed where the expression only points into something: reading one element of a long list must not
/// copy the list.
fn value_of<'v>(expr: &'v Expr, scope: &'v dyn Scope) -> Result<Cow<'v, Value>, EvalError> {
    let value = match &expr.kind {
        ExprKind::String(text) => Value::from(text.as_str()),
        ExprKind::Int(integer) => Value::from(*integer),
        ExprKind::Double(double) => in_arithmetic(expr, Number::double(*double).and_then(Number::to_value))?,
        ExprKind::Boolean(value) => Value::from(*value),
        ExprKind::Null => Value::Null,
        ExprKind::Array(elements) => elements
            .iter()
            .map(|element| value_of(element, scope).map(Cow::into_owned))
            .collect::<Result<Value, _>>()?,
        ExprKind::Map(entries) => {
            let entry =
                |(key, value): &'v (String, Expr)| Ok((key.clone(), value_of(value, scope)?.into_owned()));
            Value::Object(entries.iter().map(entry).collect::<Result<Map<_, _>, EvalError>>()?)
        }
        ExprKind::Input(input) => return reference::input(input, scope),
        ExprKind::Step(step) => return reference::step(step, scope),
        ExprKind::Index(parts) => return reference::index(parts, scope),
        ExprKind::Concat(operands) => concat(expr, operands, scope)?,
        ExprKind::Unary(op, operand) => unary(expr, *op, operand, scope)?,
        ExprKind::Binary(op @ BinaryOp::And, sides) => {
            Value::Bool(is_true(*op, &sides[0], scope)? && is_true(*op, &sides[1], scope)?)
        }
        ExprKind::Binary(op @ BinaryOp::Or, sides) => {
            Value::Bool(is_true(*op, &sides[0], scope)? || is_true(*op, &sides[1], scope)?)
        }
        ExprKind::Binary(op, operands) => {
            let [left, right] = &**operands;
            let (left, right) = (value_of(left, scope)?, value_of(right, scope)?);
            if *op == BinaryOp::Add {
                check_bytes(bytes(&left).saturating_add(bytes(&right)), expr)?;
            }
            operator::apply(expr, *op, left, &right)?
        }
    };
    Ok(Cow::Owned(value))
}

/// A few steps that double a text would otherwise fill all memory.
fn check_bytes(bytes: usize, expr: &Expr) -> Result<(), EvalError> {
    if bytes > MAX_VALUES_BYTES { Err(EvalError::TooLarge { bytes, expr: named(expr) }) } else { Ok(()) }
}

fn concat(expr: &Expr, operands: &[Expr], scope: &dyn Scope) -> Result<Value, EvalError> {
    let mut text = String::new();
    for operand in operands {
        let value = value_of(operand, scope)?;
        check_bytes(text.len().saturating_add(bytes(&value)), expr)?;
        push_text(&mut text, &value);
    }
    Ok(Value::String(text))
}

fn unary(expr: &Expr, op: UnaryOp, inner: &Expr, scope: &dyn Scope) -> Result<Value, EvalError> {
    let value = value_of(inner, scope)?;
    match (op, &*value) {
        (UnaryOp::Not, Value::Bool(value)) => Ok(Value::Bool(!value)),
        (UnaryOp::Negate, Value::Number(number)) => {
            in_arithmetic(expr, Number::of(number).negate().to_value())
        }
        (UnaryOp::Plus, Value::Number(_)) => Ok(value.into_owned()),
        (UnaryOp::Not | UnaryOp::Negate | UnaryOp::Plus, other) => {
            Err(operand(op.text(), &op.operand(), inner, other))
        }
    }
}

/// One side of `&&` or `||`.
fn is_true(op: BinaryOp, side: &Expr, scope: &dyn Scope) -> Result<bool, EvalError> {
    let value = value_of(side, scope)?;
    value.as_bool().ok_or_else(|| operand(op.text(), &op.operands(), side, &value))
}

fn in_arithmetic<T>(expr: &Expr, result: Result<T, ArithmeticError>) -> Result<T, EvalError> {
    result.map_err(|problem| EvalError::Arithmetic { problem, expr: named(expr) })
}

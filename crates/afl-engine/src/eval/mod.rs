//! Evaluates the expressions of a program (language definition, "Expressions").

mod error;
mod operator;
mod reference;

use std::borrow::Cow;
use std::cell::Cell;

use afl_lang::program::{BinaryOp, Expr, ExprKind, InputSource, UnaryOp};

pub use error::EvalError;

use self::error::{named, operand};
use crate::value::{
    ArithmeticError, MAX_VALUE_DEPTH, Map, Number, Value, ValueKind, ValueRoom, is_within_depth, push_text,
};

/// Answers the references of an expression. The engine's answers come from stored steps, without
/// putting their attributes together first.
pub trait Scope {
    /// One attribute; `None` where there is none of this name. An attribute that is null is there.
    fn attribute(&self, root: Root<'_>, name: &str) -> Option<&Value>;

    /// All attributes, for `$` and for a step named alone. Of two with one name the later counts.
    fn record(&self, root: Root<'_>) -> Vec<(&str, &Value)>;
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

    fn record(&self, _: Root<'_>) -> Vec<(&str, &Value)> {
        Vec::new()
    }
}

/// The value of an expression that stands alone.
pub fn eval(expr: &Expr, scope: &dyn Scope) -> Result<Value, EvalError> {
    eval_within(expr, scope, &mut ValueRoom::default())
}

/// The value of an expression that shares its room with others.
pub(crate) fn eval_within(expr: &Expr, scope: &dyn Scope, room: &mut ValueRoom) -> Result<Value, EvalError> {
    let site = BuildSite { scope, room: Cell::from_mut(room) };
    let value = value_of(expr, site)?;
    // One check is enough: intermediate values are higher only by the height of the expression.
    if is_within_depth(&value, MAX_VALUE_DEPTH) {
        site.own(value, expr)
    } else {
        Err(EvalError::TooDeep { expr: named(expr) })
    }
}

/// Whether a condition is true.
pub fn holds(condition: &Expr, scope: &dyn Scope) -> Result<bool, EvalError> {
    let room = Cell::new(ValueRoom::default());
    let value = value_of(condition, BuildSite { scope, room: &room })?;
    value
        .as_bool()
        .ok_or_else(|| EvalError::NotBoolean { expr: named(condition), found: ValueKind::of(&value) })
}

/// Where an expression reads, and the room for what it builds.
#[derive(Clone, Copy)]
struct BuildSite<'v> {
    scope: &'v dyn Scope,
    room: &'v Cell<ValueRoom>,
}

impl BuildSite<'_> {
    /// A value of its own, copied if there is room.
    fn own(self, value: Cow<'_, Value>, expr: &Expr) -> Result<Value, EvalError> {
        if let Cow::Borrowed(value) = &value {
            self.take(value, expr)?;
        }
        Ok(value.into_owned())
    }

    fn take(self, value: &Value, expr: &Expr) -> Result<(), EvalError> {
        let mut room = self.room.get();
        room.take(value).ok_or_else(|| too_large(expr))?;
        self.room.set(room);
        Ok(())
    }
}

fn too_large(expr: &Expr) -> EvalError {
    EvalError::TooLarge { expr: named(expr) }
}

/// Borrowed where the expression only points into something: reading one element of a long list must not
/// copy the list.
fn value_of<'v>(expr: &'v Expr, site: BuildSite<'v>) -> Result<Cow<'v, Value>, EvalError> {
    let value = match &expr.kind {
        ExprKind::String(text) => Value::from(text.as_str()),
        ExprKind::Int(integer) => Value::from(*integer),
        ExprKind::Double(double) => in_arithmetic(expr, Number::double(*double).and_then(Number::to_value))?,
        ExprKind::Boolean(value) => Value::from(*value),
        ExprKind::Null => Value::Null,
        ExprKind::Array(elements) => elements
            .iter()
            .map(|element| site.own(value_of(element, site)?, expr))
            .collect::<Result<Value, _>>()?,
        ExprKind::Map(entries) => {
            let entry =
                |(key, value): &'v (String, Expr)| Ok((key.clone(), site.own(value_of(value, site)?, expr)?));
            Value::Object(entries.iter().map(entry).collect::<Result<Map<_, _>, EvalError>>()?)
        }
        ExprKind::Input(input) => return reference::input(expr, input, site),
        ExprKind::Step(step) => return reference::step(expr, step, site),
        ExprKind::Index(parts) => return reference::index(parts, site),
        ExprKind::Concat(operands) => concat(expr, operands, site)?,
        ExprKind::Unary(op, operand) => unary(expr, *op, operand, site)?,
        ExprKind::Binary(op @ BinaryOp::And, sides) => {
            Value::Bool(is_true(*op, &sides[0], site)? && is_true(*op, &sides[1], site)?)
        }
        ExprKind::Binary(op @ BinaryOp::Or, sides) => {
            Value::Bool(is_true(*op, &sides[0], site)? || is_true(*op, &sides[1], site)?)
        }
        ExprKind::Binary(op, operands) => {
            let [left, right] = &**operands;
            let (mut left, right) = (value_of(left, site)?, value_of(right, site)?);
            if *op == BinaryOp::Add {
                site.take(&right, expr)?;
                left = Cow::Owned(site.own(left, expr)?);
            }
            operator::apply(expr, *op, left, &right)?
        }
    };
    Ok(Cow::Owned(value))
}

fn concat(expr: &Expr, operands: &[Expr], site: BuildSite<'_>) -> Result<Value, EvalError> {
    let mut text = String::new();
    for operand in operands {
        let value = value_of(operand, site)?;
        let mut room = site.room.get();
        // The JSON of a value is longer than the value only where texts are escaped.
        if !room.has_room_for(&value) {
            return Err(too_large(expr));
        }
        let before = text.len();
        push_text(&mut text, &value);
        room.take_bytes(text.len() - before).ok_or_else(|| too_large(expr))?;
        site.room.set(room);
    }
    Ok(Value::String(text))
}

fn unary(expr: &Expr, op: UnaryOp, inner: &Expr, site: BuildSite<'_>) -> Result<Value, EvalError> {
    let value = value_of(inner, site)?;
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
fn is_true(op: BinaryOp, operand_expr: &Expr, site: BuildSite<'_>) -> Result<bool, EvalError> {
    let value = value_of(operand_expr, site)?;
    value.as_bool().ok_or_else(|| operand(op.text(), &op.operands(), operand_expr, &value))
}

fn in_arithmetic<T>(expr: &Expr, result: Result<T, ArithmeticError>) -> Result<T, EvalError> {
    result.map_err(|problem| EvalError::Arithmetic { problem, expr: named(expr) })
}

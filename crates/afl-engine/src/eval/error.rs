//! Why an expression has no value.

use std::fmt;

use afl_lang::program::{BinaryOp, Expr, shortened};

use crate::value::{ArithmeticError, MAX_VALUE_DEPTH, MAX_VALUES_BYTES, Value, ValueKind};

/// Texts are parts of the program, shortened; values appear only by their kind, since they may be
/// anything and of any size.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum EvalError {
    #[error("{problem} in `{expr}`")]
    Arithmetic { problem: ArithmeticError, expr: String },
    #[error("`{}` takes {}, not {left} and {right}, in `{expr}`", op.text(), op.operands())]
    Operands { op: BinaryOp, left: ValueKind, right: ValueKind, expr: String },
    #[error("`{op}` takes {wanted}, but `{expr}` is {found}")]
    Operand { op: &'static str, wanted: String, found: ValueKind, expr: String },
    #[error("a condition must be Boolean, but `{expr}` is {found}")]
    NotBoolean { expr: String, found: ValueKind },
    #[error("`{base}` has no `{name}`")]
    Missing { base: String, name: String },
    #[error("`{base}` is {found}, so it has no `{name}`")]
    NoFields { base: String, found: ValueKind, name: String },
    #[error("index {index} is outside `{base}`, whose length is {length}")]
    OutOfRange { base: String, index: i128, length: usize },
    #[error("`{base}` is {found}, so it has no elements to index")]
    NotIndexed { base: String, found: ValueKind },
    #[error("the index of `{base}` must be {wanted}, but `{index}` is {found}")]
    WrongIndex { base: String, wanted: ValueKind, index: String, found: ValueKind },
    #[error(
        "`{expr}` takes too much memory: {MAX_VALUES_BYTES} bytes is the limit for all values of a step, so store \
         it elsewhere and pass a reference"
    )]
    TooLarge { expr: String },
    #[error("`{expr}` nests lists and maps deeper than {MAX_VALUE_DEPTH} levels")]
    TooDeep { expr: String },
}

pub(super) fn named(expr: &Expr) -> String {
    shortened(&expr.to_string())
}

pub(super) fn operand(op: &'static str, wanted: &dyn fmt::Display, expr: &Expr, found: &Value) -> EvalError {
    EvalError::Operand { op, wanted: wanted.to_string(), found: ValueKind::of(found), expr: named(expr) }
}

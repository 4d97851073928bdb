//! The expressions of a program.

use super::node::Location;
pub use crate::syntax::ast::{BinaryOp, UnaryOp};

#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub location: Option<Location>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum ExprKind {
    String(String),
    Int(i64),
    Double(f64),
    Boolean(bool),
    Null,
    Array(Vec<Expr>),
    Map(Vec<(String, Expr)>),
    Input(InputRef),
    Step(StepRef),
    Concat(Vec<Expr>),
    Binary(BinaryOp, Box<[Expr; 2]>),
    /// Only `Negate` and `Not`: a plus sign means nothing.
    Unary(UnaryOp, Box<Expr>),
    /// `base[index]`; `.field` behind anything but a reference is an index with a string.
    Index(Box<[Expr; 2]>),
}

/// `$.a.b`, or a `foreach` variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputRef {
    /// Empty for `$` alone.
    pub path: Vec<String>,
    pub source: InputSource,
}

/// Where the first name of an [`InputRef`] is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputSource {
    /// The owner's attributes: parameters, mixins, and an event's returns.
    Owner,
    /// The variable of an enclosing `foreach`.
    Foreach,
    /// `$.error` and `$.error_type` inside a `catch`.
    Caught,
}

/// `step.a.b`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepRef {
    /// The step's name, then the way into its attributes.
    pub path: Vec<String>,
    /// The earlier clause of the owner that holds the step; `None`: this block.
    pub clause: Option<u32>,
}

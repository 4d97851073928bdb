//! The expressions of a program.

use super::node::Location;
pub use crate::operator::{BinaryOp, UnaryOp};

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

impl Expr {
    /// Shows every expression in this one, itself first, in the order they are written.
    pub fn walk<'e>(&'e self, visit: &mut impl FnMut(&'e Self)) {
        visit(self);
        match &self.kind {
            ExprKind::String(_)
            | ExprKind::Int(_)
            | ExprKind::Double(_)
            | ExprKind::Boolean(_)
            | ExprKind::Null
            | ExprKind::Input(_)
            | ExprKind::Step(_) => {}
            ExprKind::Array(parts) | ExprKind::Concat(parts) => {
                for part in parts {
                    part.walk(visit);
                }
            }
            ExprKind::Map(entries) => {
                for (_, value) in entries {
                    value.walk(visit);
                }
            }
            ExprKind::Binary(_, parts) | ExprKind::Index(parts) => {
                let [first, second] = &**parts;
                first.walk(visit);
                second.walk(visit);
            }
            ExprKind::Unary(_, operand) => operand.walk(visit),
        }
    }
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

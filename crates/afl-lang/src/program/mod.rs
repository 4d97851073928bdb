//! The compiled program: every name resolved, every default and dependency in place.
//!
//! This is what a run is pinned to. The nodes follow the documents' names (`StepStmt`, `AndThenBlock`,
//! …) so that their readers find what they know; `load` reads and `emit` writes them.

mod expr;
mod node;

pub use expr::{BinaryOp, Expr, ExprKind, InputRef, InputSource, StepRef, UnaryOp};
pub use node::*;

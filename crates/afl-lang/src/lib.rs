//! AFL from text to a checked program.
//!
//! [`parse`](syntax::parse) gives a tree, `check` gives a [`Program`](program::Program), both with
//! [diagnostics](diagnostic::Diagnostic) and never with a failure. Nothing here reads a file, a clock or
//! a random number: the same text gives the same bytes.

mod check;
pub mod code;
mod compile;
pub mod diagnostic;
pub mod format;
pub mod graph;
pub mod limits;
mod names;
pub mod operator;
pub mod program;
pub mod render;
mod ring;
pub mod source;
pub mod suggest;
pub mod syntax;
pub mod timestamp;
pub mod types;

pub use check::check;
pub use compile::{Compilation, Validation, compile};

//! AFL from text to a checked program.
//!
//! [`parse`](syntax::parse) gives a tree, `check` gives a [`Program`](program::Program), both with
//! [diagnostics](diagnostic::Diagnostic) and never with a failure. Nothing here reads a file, a clock or
//! a random number: the same text gives the same bytes.

pub mod code;
pub mod diagnostic;
pub mod limits;
pub mod program;
pub mod render;
pub mod source;
pub mod suggest;
pub mod syntax;
pub mod types;

//! From text to tree. Parsing never fails: it gives a tree of what it understood, and diagnostics.

pub mod ast;
pub mod lexer;
pub mod literal;
mod parser;
mod script;
pub mod token;

pub use parser::{ParseResult, parse};

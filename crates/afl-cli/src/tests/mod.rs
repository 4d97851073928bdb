//! Tests of whole commands that need what only this crate sees: the command line, and runs driven in this process.

mod cases;
mod cost;
mod reference;

//! The compiled program: written, read, hashed and described.

mod emit;
mod load;
mod random;
mod round_trip;
mod schema;

use afl_lang::program::Program;
use afl_lang::source::Sources;
use afl_lang::{Validation, compile};

fn compiled(text: &str) -> Program {
    let compiled = compile(&Sources::one("main.afl", text), Validation::Require);
    compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

/// A small shop that has about everything a program can have.
fn shop() -> Program {
    compiled(include_str!("shop.afl"))
}

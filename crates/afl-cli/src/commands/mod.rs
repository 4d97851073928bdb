//! The commands, a file each.

pub(crate) mod check;
pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod explain;
pub(crate) mod fmt;
pub(crate) mod graph;
pub(crate) mod schema;

use afl_lang::render::Color;

use crate::cli::Command;
use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) fn run(command: Command, color: Color) -> Result<Exit, Failure> {
    match command {
        Command::Check(options) => check::run(&options, color),
        Command::Compile(options) => compile::run(&options, color),
        Command::Fmt(options) => fmt::run(&options, color),
        Command::Graph(options) => graph::run(&options, color),
        Command::Explain(options) => explain::run(&options),
        Command::Schema(options) => schema::run(&options),
        Command::Completions(options) => completions::run(&options),
    }
}

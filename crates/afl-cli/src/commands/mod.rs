//! The commands, a file each.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod explain;

use crate::cli::Command;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) fn run(command: Command, console: &Console) -> Result<Exit, Failure> {
    match command {
        Command::Check(options) => check::run(&options, console),
        Command::Explain(options) => explain::run(&options, console),
        Command::Completions(options) => completions::run(&options, console),
    }
}

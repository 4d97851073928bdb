//! The binary `afl`.

mod cli;
mod commands;
mod console;
mod exit;
mod failure;
mod input;
#[cfg(test)]
mod reference;
mod report;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::console::Console;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let console = Console::new(cli.color);
    let exit = commands::run(cli.command, &console).unwrap_or_else(|failure| {
        console.fail(&failure);
        failure.exit()
    });
    exit.into()
}

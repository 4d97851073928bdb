//! The binary `afl`.

mod cli;
mod color;
mod commands;
mod diff;
mod exit;
mod failure;
mod input;
mod output;
#[cfg(test)]
mod reference;
mod report;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let color = color::choose(cli.color);
    let exit = commands::run(cli.command, color).unwrap_or_else(|failure| {
        output::say(&failure.text(color));
        failure.exit()
    });
    exit.into()
}

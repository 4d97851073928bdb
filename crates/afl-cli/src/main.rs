//! The binary `afl`.

mod cli;
mod color;
mod commands;
mod complaint;
mod decide;
mod exit;
mod failure;
mod foreground;
mod handlers;
mod input;
mod inputs;
mod json_text;
mod launch;
mod local_handlers;
mod mock;
mod outcome;
mod output;
mod progress;
mod report;
mod shell;
mod shown;
mod states;
mod stop;
mod store;
mod stubs;
mod telemetry;
#[cfg(test)]
mod tests;
mod tree;
mod when;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use mimalloc::MiMalloc;

use crate::cli::Cli;
use crate::complaint::Complaint;

/// Records go from one thread to another all the time, which the system's allocator pays for with locks, the more so the
/// more there are.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let line = Cli::command().try_get_matches().unwrap_or_else(|error| complaint::refuse(&error));
    let complaint = Complaint::of(&line);
    let cli = Cli::from_arg_matches(&line).unwrap_or_else(|error| complaint::refuse(&error));
    let color = color::choose(cli.color);
    let exit = commands::run(cli.command, color).unwrap_or_else(|failure| complaint.tell(&failure, color));
    exit.into()
}

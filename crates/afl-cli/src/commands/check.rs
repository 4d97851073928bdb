//! `afl check`: finds the mistakes of a program.

use std::path::PathBuf;

use afl_lang::Validation;
use afl_lang::render::Color;
use clap::Args;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::output;
use crate::report::{self, DiagnosticFormat, Tally};

const EXAMPLES: &str = "\
Examples:
  afl check flow/                  check every .afl file below flow, as one program
  afl check billing.afl types.afl  check two files that use each other
  afl check --json - < draft.afl   check standard input, print one JSON object
  afl check --deny-warnings .      fail on warnings too, for a build server";

/// Find the mistakes of a program
///
/// All files of one call are one program. Warnings do not make the command fail.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Files, folders (every .afl file below), or `-` for standard input
    #[arg(required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// How to print the diagnostics
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: DiagnosticFormat,
    /// Print one JSON object, like `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Fail when there are warnings
    #[arg(long)]
    deny_warnings: bool,
}

pub(crate) fn run(options: &Options, color: Color) -> Result<Exit, Failure> {
    let sources = input::program(&options.files, &[])?;
    let diagnostics = afl_lang::compile(&sources, Validation::Require).diagnostics;
    let format = if options.json { DiagnosticFormat::Json } else { options.format };
    report::show(color, format, &sources, &diagnostics)?;
    let tally = Tally::of(&diagnostics);
    match format {
        DiagnosticFormat::Human | DiagnosticFormat::Github => {
            output::say(&format!("checked {}: {tally}\n", report::count(sources.0.len(), "file")));
            output::say(&report::explain_hint(&diagnostics));
        }
        // A program that asks for an object counts by itself, and may read both streams as one.
        DiagnosticFormat::Json => {}
    }
    let failed = tally.errors > 0 || (options.deny_warnings && tally.warnings > 0);
    Ok(if failed { Exit::Mistakes } else { Exit::Fine })
}

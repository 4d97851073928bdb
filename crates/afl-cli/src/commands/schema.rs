//! `afl schema`: the JSON Schemas of the formats.

use afl_lang::program;
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  afl schema program > program.schema.json  keep the schema of what `afl compile` writes";

/// Print the JSON Schema of a format
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The format to describe
    format: SchemaFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum SchemaFormat {
    /// The compiled program that `afl compile` writes
    Program,
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let schema = match options.format {
        SchemaFormat::Program => program::json_schema(),
    };
    output::data(&format!("{schema:#}\n"))
}

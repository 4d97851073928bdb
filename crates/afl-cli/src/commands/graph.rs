//! `afl graph`: draws the data flow of a workflow.

use std::path::PathBuf;

use afl_lang::render::Color;
use afl_lang::{Validation, graph};
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::input;
use crate::output::Target;
use crate::report;

const EXAMPLES: &str = "\
Examples:
  afl graph pay.afl --workflow Pay                      print a Mermaid diagram
  afl graph flow/ -w shop.Pay --format svg -o pay.svg   draw a picture
  afl graph pay.afl --format dot | dot -Tpdf > pay.pdf  hand it to Graphviz";

/// Draw the data flow of a workflow
///
/// All files of one call are one program.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Files, folders (every .afl file below), or `-` for standard input
    #[arg(required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// The workflow to draw; not needed if there is only one
    #[arg(short, long, value_name = "NAME")]
    workflow: Option<String>,
    /// How to draw it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: GraphFormatArg,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum GraphFormatArg {
    /// A diagram that Markdown pages show
    #[default]
    Mermaid,
    /// A graph for Graphviz
    Dot,
    /// Nodes and edges as data
    Json,
    /// A picture
    Svg,
}

pub(crate) fn run(options: &Options, color: Color) -> Result<(), Failure> {
    let sources = input::program(&options.files, &[])?;
    let (program, _) = report::compile(&sources, Validation::Require, "drawn", color)?;
    let graph = graph::of(&program, options.workflow.as_deref()).map_err(Failure::NoGraph)?;
    let drawn = graph.render(options.format.into());
    Target::new(options.output.as_deref()).write(|out| out.write_all(drawn.as_bytes()))
}

impl From<GraphFormatArg> for graph::GraphFormat {
    fn from(format: GraphFormatArg) -> Self {
        match format {
            GraphFormatArg::Mermaid => Self::Mermaid,
            GraphFormatArg::Dot => Self::Dot,
            GraphFormatArg::Json => Self::Json,
            GraphFormatArg::Svg => Self::Svg,
        }
    }
}

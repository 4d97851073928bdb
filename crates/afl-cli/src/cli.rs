//! What can be written behind `afl`.

use clap::builder::styling::{AnsiColor, Styles};
use clap::{ColorChoice, Parser, Subcommand};

use crate::commands::{check, compile, completions, explain, fmt, graph, schema};

const EXIT_CODES: &str = "\
Exit codes:
  0  all is well
  1  the program has mistakes
  2  the command line is wrong
  3  a file cannot be read or written";

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Check, compile, format and draw workflows written in AFL
#[derive(Parser)]
#[command(name = "afl", version, styles = STYLES, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    /// When to use colour; `auto` means on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, display_order = 900, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Check(check::Options),
    Compile(compile::Options),
    Fmt(fmt::Options),
    Graph(graph::Options),
    Explain(explain::Options),
    Schema(schema::Options),
    Completions(completions::Options),
}

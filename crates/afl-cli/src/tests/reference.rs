//! The page `docs/cli.md`, written from the definitions of the command line.

use std::path::Path;
use std::{env, fs};

use clap::{Command, CommandFactory};

use crate::cli::Cli;

const INTRODUCTION: &str = "\
# The command line

The commands of `afl` and their options, as `--help` prints them. Results go to standard output, messages to
standard error, and `-` stands for standard input wherever a file is read.

This page is generated: `UPDATE_DOCS=1 cargo test -p afl-cli reference` writes it.
";

/// The command that clap adds; it has no options of its own.
const HELP: &str = "help";

#[test]
fn the_reference_page_says_what_the_help_says() {
    let page = page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/cli.md is not up to date; run UPDATE_DOCS=1 cargo test -p afl-cli reference"
    );
}

fn page() -> String {
    let mut root = Cli::command().term_width(100);
    root.build();
    format!("{INTRODUCTION}{}", sections(&root))
}

/// A section for the command and for each command below it.
fn sections(command: &Command) -> String {
    let below = command.get_subcommands().filter(|command| command.get_name() != HELP);
    below.map(sections).fold(section(command.clone()), |page, section| page + &section)
}

fn section(mut command: Command) -> String {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let help = command.render_long_help().to_string();
    let lines: Vec<_> = help.trim_end().lines().map(str::trim_end).collect();
    format!("\n## {name}\n\n```text\n{}\n```\n", lines.join("\n"))
}

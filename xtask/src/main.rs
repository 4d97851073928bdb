//! Chores of the workspace: `cargo xtask test`, `tidy`, `requirements`, `bench`, `worlds` and `fuzz`.

mod bench;
mod conformance;
mod counts;
mod fuzz;
mod prose;
mod requirements;
mod services;
mod source;
mod stress;
mod test;
mod tidy;
mod workspace;
mod worlds;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::requirements::Detail;
use crate::tidy::TidyMode;
use crate::workspace::Workspace;

/// Chores of the AgentFlow workspace
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run all tests and print how many passed, failed and were skipped
    Test {
        /// Repeat the tests this often, beside a busy thread for each core, and list those that ever failed
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
        stress: Option<u32>,
        /// Hand these to the test runner, for example `-p afl-lang`; doc tests are then left out
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Check the rules that the compiler does not: direction, purity, lengths, names, words, citations, links
    Tidy {
        /// Lower the recorded counts in xtask/ratchet.txt to the present ones
        #[arg(long)]
        bless: bool,
        /// Show also the breaches that xtask/ratchet.txt tolerates
        #[arg(long, conflicts_with = "bless")]
        list: bool,
    },
    /// List the requirements that no test covers
    Requirements {
        /// Print the counts only
        #[arg(long)]
        summary: bool,
    },
    /// Run the benches in release
    Bench(bench::Options),
    /// Play fresh simulated worlds and print each that breaks a promise
    Worlds(worlds::Options),
    /// Search for texts and documents that break a promise of the language
    Fuzz {
        /// Run only the targets whose name contains this
        filter: Option<String>,
        /// Run for this many seconds
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
}

fn main() -> ExitCode {
    run(Arguments::parse().chore).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(chore: Chore) -> Result<ExitCode> {
    let workspace = Workspace::find()?;
    match chore {
        Chore::Test { stress: Some(rounds), args } => stress::run(&workspace, rounds, &args),
        Chore::Test { stress: None, args } => test::run(&workspace, &args),
        Chore::Tidy { bless: true, .. } => tidy::run(&workspace, TidyMode::Bless),
        Chore::Tidy { list: true, .. } => tidy::run(&workspace, TidyMode::List),
        Chore::Tidy { .. } => tidy::run(&workspace, TidyMode::Check),
        Chore::Requirements { summary } => {
            requirements::run(&workspace, if summary { Detail::TestCounts } else { Detail::Ids })
        }
        Chore::Bench(options) => bench::run(&workspace, &options),
        Chore::Worlds(options) => worlds::run(&workspace, &options),
        Chore::Fuzz { filter, seconds } => fuzz::run(&workspace, seconds, filter.as_deref()),
    }
}

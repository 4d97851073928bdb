//! `cargo xtask worlds`: plays fresh simulated worlds on all cores and prints each that breaks a promise.
//!
//! The tests always play the same worlds, so that they never flicker. This chore plays others. A seed that fails here
//! joins the regressions in `crates/afl-runtime/tests/simulation/main.rs` together with its mend.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};

use crate::workspace::Workspace;

/// Worlds of one call of the test binary: a few seconds, so that a failure is shown soon.
const CHUNK: u64 = 1_000;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many worlds to play
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// The first seed; a fresh one by default
    #[arg(long, value_name = "SEED")]
    from: Option<u64>,
}

pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode> {
    let from = options.from.map_or_else(fresh_seed, Ok)?;
    let to = from.checked_add(options.count).context("the seeds end at 2^64")?;
    println!("worlds {from}..{to}; repeat one with AFL_SEED=n cargo test -p afl-runtime --test simulation");
    let mut failed = 0;
    let mut begin = from;
    while begin < to {
        let end = to.min(begin.saturating_add(CHUNK));
        let report = play(workspace, begin, end)?;
        failed += report.iter().filter(|line| is_verdict(line)).count();
        for line in &report {
            println!("{line}");
        }
        begin = end;
        eprintln!("{} of {} worlds played", begin - from, options.count);
    }
    println!("{} passed, {failed} failed", options.count - failed as u64);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The findings of the worlds that failed, each followed by its verdict.
fn play(workspace: &Workspace, begin: u64, end: u64) -> Result<Vec<String>> {
    let mut cargo = workspace.cargo();
    cargo.args([
        "test",
        "--quiet",
        "--profile",
        "worlds",
        "--package",
        "afl-runtime",
        "--test",
        "simulation",
    ]);
    cargo.env("AFL_WORLDS", format!("{begin}..{end}")).env("RUST_BACKTRACE", "0");
    let done = cargo.output().with_context(|| format!("cannot start {cargo:?}"))?;
    let printed = String::from_utf8_lossy(&done.stdout);
    let report: Vec<String> = printed.lines().filter(|line| is_finding(line)).map(str::to_owned).collect();
    let is_explained = done.status.success() || report.iter().any(|line| is_verdict(line));
    ensure!(is_explained, "the simulation did not run\n{printed}{}", String::from_utf8_lossy(&done.stderr));
    Ok(report)
}

/// Written by the simulation for each world that failed.
fn is_verdict(line: &str) -> bool {
    line.starts_with("seed ") && line.contains(" fails; ")
}

fn is_finding(line: &str) -> bool {
    is_verdict(line)
        || ["assertion ", "  left: ", " right: ", "attempt to "].iter().any(|it| line.starts_with(it))
}

/// Other worlds each time, far from the fixed ones.
fn fresh_seed() -> Result<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    Ok(since.as_secs() * 1_000)
}

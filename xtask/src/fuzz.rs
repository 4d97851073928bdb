//! `cargo xtask fuzz`: the fuzz targets for a given time, in release and without a fuzzer.
//!
//! The tests run each target for a number of executions; this chore runs them for a time. With a nightly compiler and
//! `cargo-fuzz`, `cargo +nightly fuzz run TARGET` finds more in the same time.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// The variable by which the tests know how long to run.
const SECONDS: &str = "AFL_FUZZ_SECONDS";

pub(crate) fn run(workspace: &Workspace, seconds: u64, filter: Option<&str>) -> Result<ExitCode> {
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--release", "--package", "afl-lang", "--test", "fuzz", "--"]);
    cargo.args(filter).arg("--nocapture").env(SECONDS, seconds.to_string());
    let status = cargo.status().with_context(|| format!("cannot start {cargo:?}"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

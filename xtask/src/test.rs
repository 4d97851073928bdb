//! `cargo xtask test`: all tests of the workspace, and one line that says how they went.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::thread;

use anyhow::{Context, Result};

use crate::counts::{TestCounts, failed_of_libtest, failed_of_nextest};
use crate::services::Services;
use crate::workspace::Workspace;

/// A program that runs tests, and how its summary reads.
#[derive(Clone, Copy)]
enum Runner {
    Nextest,
    Libtest,
}

/// The result of one run of all selected tests.
pub(crate) struct RunOutput {
    pub(crate) counts: TestCounts,
    /// The names of the tests that failed.
    pub(crate) failed: BTreeSet<String>,
    /// Whether every runner said so.
    pub(crate) all_succeeded: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<ExitCode> {
    let services = Services::start()?;
    let RunOutput { counts, all_succeeded, .. } = run_all(workspace, args, &services)?;
    drop(services);
    if counts.ran() == 0 {
        eprintln!("no test ran");
    } else if !all_succeeded && counts.failed == 0 {
        eprintln!("a test runner failed although no test did; see above");
    }
    println!("{counts}");
    let good = all_succeeded && counts.failed == 0 && counts.ran() > 0;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the selected tests once.
pub(crate) fn run_all(workspace: &Workspace, args: &[String], services: &Services) -> Result<RunOutput> {
    let mut run = RunOutput { counts: TestCounts::default(), failed: BTreeSet::new(), all_succeeded: true };
    for (runner, mut command) in commands(workspace, args) {
        command.args(args).envs(services.variables());
        let (status, output) = run_shown(&mut command)?;
        run.all_succeeded &= status.success();
        let (counts, failed) = match runner {
            Runner::Nextest => (TestCounts::of_nextest(&output), failed_of_nextest(&output)),
            Runner::Libtest => (TestCounts::of_libtest(&output), failed_of_libtest(&output)),
        };
        run.counts += counts;
        run.failed.extend(failed);
    }
    Ok(run)
}

/// Nextest runs no doc tests, so `cargo test` does; not when a selection is asked for, whose arguments are nextest's.
fn commands(workspace: &Workspace, args: &[String]) -> Vec<(Runner, Command)> {
    let cargo = |arguments: &[&str]| {
        let mut command = workspace.cargo();
        command.args(arguments).arg("--no-fail-fast");
        if io::stderr().is_terminal() {
            command.args(["--color", "always"]);
        }
        command
    };
    if !has_nextest(workspace) {
        return vec![(Runner::Libtest, cargo(&["test"]))];
    }
    let mut commands = vec![(Runner::Nextest, cargo(&["nextest", "run", "--no-tests=pass"]))];
    if args.is_empty() {
        commands.push((Runner::Libtest, cargo(&["test", "--doc"])));
    }
    commands
}

fn has_nextest(workspace: &Workspace) -> bool {
    let version = workspace.cargo().args(["nextest", "--version"]).output();
    version.is_ok_and(|version| version.status.success())
}

/// Runs a command, passing its output on while keeping it.
fn run_shown(command: &mut Command) -> Result<(ExitStatus, String)> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let stdout = child.stdout.take().context("stdout is piped")?;
    let stderr = child.stderr.take().context("stderr is piped")?;
    let errors = thread::spawn(|| pass_on(stderr, io::stderr()));
    let mut output = pass_on(stdout, io::stdout())?;
    output += &errors.join().expect("passing output on does not panic")?;
    Ok((child.wait()?, output))
}

fn pass_on(from: impl Read, mut to: impl Write) -> io::Result<String> {
    let mut from = BufReader::new(from);
    let mut kept = String::new();
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        kept += &String::from_utf8_lossy(&line);
        line.clear();
    }
    Ok(kept)
}

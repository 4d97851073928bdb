//! `cargo xtask tidy`: the rules of the project that the compiler and clippy do not know.

mod comments;
mod direction;
mod length;
mod modules;
mod patterns;
mod prose;
mod purity;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::conformance;
use crate::source::Source;
use crate::workspace::Workspace;

#[derive(Clone, Copy)]
pub(crate) enum Mode {
    Check,
    Bless,
}

/// One broken rule: where, what, and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    /// Counted from one; nothing when the finding is about the whole file.
    line: Option<usize>,
    message: String,
}

/// What a check found, and what it wants people to know when all is well.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) findings: Vec<Finding>,
    pub(crate) notes: Vec<String>,
}

pub(crate) fn run(workspace: &Workspace, mode: Mode) -> Result<ExitCode> {
    let files = workspace.files()?;
    let sources = rust_sources(workspace, &files)?;

    let mut report = Report::default();
    for source in &sources {
        report.findings.extend(patterns::check(source));
        report.findings.extend(modules::check(source));
    }
    report.notes.push(patterns::count_expectations(&sources));
    report.add(comments::check(&sources));
    report.findings.extend(length::check(workspace, &sources, mode)?);
    report.findings.extend(prose::check(workspace, &files)?);
    let packages = workspace.packages()?;
    report.findings.extend(direction::check(&packages));
    report.findings.extend(purity::check(workspace, &packages)?);
    report.add(conformance::check(workspace)?);
    Ok(report.print())
}

const RUST: &str = "rs";

fn rust_sources(workspace: &Workspace, files: &[String]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in files.iter().filter(|path| Path::new(path).extension().is_some_and(|ending| ending == RUST)) {
        if let Some(text) = workspace.text(path)? {
            sources.push(Source::new(path, text));
        }
    }
    Ok(sources)
}

impl Finding {
    pub(crate) fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: Some(line), message: message.into() }
    }

    pub(crate) fn on(path: &str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

impl Report {
    fn add(&mut self, other: Report) {
        self.findings.extend(other.findings);
        self.notes.extend(other.notes);
    }

    fn print(mut self) -> ExitCode {
        self.findings.sort();
        for note in &self.notes {
            println!("{note}");
        }
        for finding in &self.findings {
            eprintln!("{finding}");
        }
        if self.findings.is_empty() {
            println!("tidy");
            return ExitCode::SUCCESS;
        }
        eprintln!("not tidy: {} findings", self.findings.len());
        ExitCode::FAILURE
    }
}

/// The findings as people read them, for the tests of the rules.
#[cfg(test)]
fn shown(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

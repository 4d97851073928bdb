//! `cargo xtask tidy`: the rules of the project that the compiler and clippy do not know.

mod citations;
mod comments;
mod dialect;
mod direction;
mod documents;
mod hints;
mod length;
mod links;
mod machine_paths;
mod modules;
mod patterns;
mod predicates;
mod purity;
mod ratchet;
mod type_names;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::source::RustFile;
use crate::workspace::Workspace;
use crate::{conformance, requirements};

#[derive(Clone, Copy)]
pub(crate) enum TidyMode {
    Check,
    /// Lowers what the ratchet records.
    Bless,
    /// Shows what the ratchet tolerates too.
    List,
}

/// One broken rule: where, what, and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Breach {
    path: String,
    /// Counted from one; nothing when the finding is about the whole file.
    line: Option<usize>,
    message: String,
}

/// The breaches that a check found, and the figures that it prints in any case.
#[derive(Default)]
pub(crate) struct TidyReport {
    pub(crate) findings: Vec<Breach>,
    pub(crate) notes: Vec<String>,
}

pub(crate) fn run(workspace: &Workspace, mode: TidyMode) -> Result<ExitCode> {
    let files = workspace.files()?;
    let sources = rust_sources(workspace, &files)?;

    let mut report = TidyReport::default();
    for source in &sources {
        report.findings.extend(patterns::check(source));
        report.findings.extend(modules::check(source));
        report.findings.extend(hints::check(source));
    }
    report.notes.push(patterns::count_expectations(&sources));
    report.add(comments::check(&sources));
    report.findings.extend(machine_paths::check(workspace, &files)?);
    report.findings.extend(requirements::check(workspace, &files)?);
    report.findings.extend(links::check(workspace, &files)?);
    report.add(measured(workspace, &files, &sources, mode)?);
    let packages = workspace.packages()?;
    report.findings.extend(direction::check(&packages));
    report.findings.extend(purity::check(workspace, &packages)?);
    report.add(conformance::check(workspace)?);
    Ok(report.print())
}

/// The rules whose breaches are counted.
fn measured(
    workspace: &Workspace,
    files: &[String],
    sources: &[RustFile],
    mode: TidyMode,
) -> Result<TidyReport> {
    let mut report = TidyReport::default();
    let mut measures = length::measure(sources);
    let (types, types_report) = type_names::measure(sources);
    measures.push(types);
    report.add(types_report);
    let (dialect, dialect_report) = dialect::measure(workspace, files, sources)?;
    measures.extend(dialect);
    report.add(dialect_report);
    measures.push(dialect::measure_test_names(sources));
    measures.extend(documents::measure(workspace, files)?);
    measures.push(citations::measure(workspace, files, sources)?);
    measures.push(predicates::measure(sources));
    measures.push(type_names::participles(sources));
    report.findings = ratchet::check(workspace, measures, mode)?;
    Ok(report)
}

const RUST: &str = "rs";
const MARKDOWN: &str = "md";

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

fn rust_sources(workspace: &Workspace, files: &[String]) -> Result<Vec<RustFile>> {
    let mut sources = Vec::new();
    for path in files.iter().filter(|path| has_extension(path, RUST)) {
        if let Some(text) = workspace.text(path)? {
            sources.push(RustFile::new(path, text));
        }
    }
    Ok(sources)
}

impl Breach {
    pub(crate) fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: Some(line), message: message.into() }
    }

    pub(crate) fn on(path: &str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, message: message.into() }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

impl TidyReport {
    fn add(&mut self, other: TidyReport) {
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
pub(crate) fn shown(findings: &[Breach]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

//! The whole way: texts in, a program and diagnostics out.

use crate::check::check;
use crate::diagnostic::{self, Diagnostic};
use crate::program::Program;
use crate::source::{Role, Sources};
use crate::syntax::parse;

/// Whether a program with mistakes is given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Validation {
    #[default]
    Require,
    /// Mistakes in names and types are reported, but do not withhold the program.
    Skip,
}

#[derive(Debug)]
pub struct Compilation {
    /// `None` where errors withhold it.
    pub program: Option<Program>,
    /// Errors and warnings, in source order.
    pub diagnostics: Vec<Diagnostic>,
}

pub fn compile(sources: &Sources, validation: Validation) -> Compilation {
    let parsed: Vec<_> = sources.iter().map(|(file, source)| parse(file, &source.text)).collect();
    let (trees, syntax): (Vec<_>, Vec<_>) = parsed.into_iter().map(|one| (one.tree, one.diagnostics)).unzip();
    let mut diagnostics: Vec<Diagnostic> = syntax.into_iter().flatten().collect();
    let broken = diagnostics.iter().any(Diagnostic::is_error);
    let (program, mut found) = check(sources, &trees);
    if broken {
        // A name that seems unused or missing may stand in the text that could not be read.
        found.retain(Diagnostic::is_error);
    }
    let wrong = found.iter().any(Diagnostic::is_error);
    diagnostics.extend(found);
    diagnostics.retain(|diagnostic| diagnostic.is_error() || !in_library(sources, diagnostic));
    diagnostic::sort(&mut diagnostics);
    diagnostic::limit(&mut diagnostics);
    let withheld = broken || wrong && validation == Validation::Require;
    Compilation { program: (!withheld).then_some(program), diagnostics }
}

/// The author of a program cannot act on a warning about a library.
fn in_library(sources: &Sources, diagnostic: &Diagnostic) -> bool {
    sources.get(diagnostic.place.file).role == Role::Library
}

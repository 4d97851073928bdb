//! The report of a command about a program.

use std::fmt;

use afl_lang::code::Code;
use afl_lang::diagnostic::{Diagnostic, Severity};
use afl_lang::program::Program;
use afl_lang::render::{self, Color};
use afl_lang::source::Sources;
use afl_lang::{Compilation, Validation};
use clap::ValueEnum;

use crate::failure::Failure;
use crate::output;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum DiagnosticFormat {
    /// Sentences with the lines they are about, on standard error
    #[default]
    Human,
    /// One object, on standard output
    Json,
    /// Workflow commands that GitHub shows beside the lines, on standard output
    Github,
}

/// More is not readable; `--json` prints all of them. Above the limit of one text, which has its own message.
const MAX_SHOWN: usize = 2_000;

pub(crate) fn show(
    color: Color,
    format: DiagnosticFormat,
    sources: &Sources,
    diagnostics: &[Diagnostic],
) -> Result<(), Failure> {
    match format {
        DiagnosticFormat::Human => {
            let (shown, hidden) = diagnostics.split_at(diagnostics.len().min(MAX_SHOWN));
            if !shown.is_empty() {
                output::say(&format!("{}\n", render::human(sources, shown, color)));
            }
            if !hidden.is_empty() {
                output::say(&format!("{} more are not shown\n", hidden.len()));
            }
            Ok(())
        }
        DiagnosticFormat::Json => output::data(&format!("{}\n", render::json(sources, diagnostics))),
        DiagnosticFormat::Github => output::data(&render::github(sources, diagnostics)),
    }
}

/// Compiles a program, or reports its mistakes and that nothing is `done` with it.
pub(crate) fn compile(
    sources: &Sources,
    validation: Validation,
    done: &str,
    color: Color,
) -> Result<(Program, Vec<Diagnostic>), Failure> {
    let Compilation { program, diagnostics } = afl_lang::compile(sources, validation);
    if let Some(program) = program {
        return Ok((program, diagnostics));
    }
    show(color, DiagnosticFormat::Human, sources, &diagnostics)?;
    let tally = Tally::of(&diagnostics).to_string();
    output::say(&format!("nothing is {done}: {tally}\n"));
    output::say(&explain_hint(&diagnostics));
    Err(Failure::Mistakes { tally })
}

/// How many mistakes there are; shown as `2 errors, 1 warning`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
}

impl Tally {
    pub(crate) fn of(diagnostics: &[Diagnostic]) -> Self {
        diagnostics.iter().fold(Self::default(), |tally, diagnostic| match diagnostic.severity() {
            Severity::Error => Self { errors: tally.errors + 1, ..tally },
            Severity::Warning => Self { warnings: tally.warnings + 1, ..tally },
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (errors, warnings) = (count(self.errors, "error"), count(self.warnings, "warning"));
        match (self.errors, self.warnings) {
            (0, 0) => f.write_str("no mistakes"),
            (_, 0) => f.write_str(&errors),
            (0, _) => f.write_str(&warnings),
            (_, _) => write!(f, "{errors}, {warnings}"),
        }
    }
}

pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Where to read more, as a line of its own: about the first error, or else the first warning.
pub(crate) fn explain_hint(diagnostics: &[Diagnostic]) -> String {
    let first = diagnostics.iter().find(|diagnostic| diagnostic.is_error()).or(diagnostics.first());
    let hint = |code: Code| format!("for more about a message, run `afl explain {}`\n", code.text());
    first.map(|diagnostic| hint(diagnostic.code)).unwrap_or_default()
}

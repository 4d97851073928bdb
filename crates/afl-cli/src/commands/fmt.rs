//! `afl fmt`: writes sources in the canonical style.

use std::path::PathBuf;
use std::time::Duration;

use afl_lang::format;
use afl_lang::render::Color;
use afl_lang::source::Sources;
use clap::Args;
use similar::{ChangeTag, TextDiff};

use crate::color::{self, paint};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Finder, Input};
use crate::output::{self, Target};
use crate::report::{self, DiagnosticFormat, count};

const EXAMPLES: &str = "\
Examples:
  afl fmt flow/               rewrite every .afl file below flow
  afl fmt --check .           fail if a file is not formatted, for a build server
  afl fmt --stdin < pay.afl   print the formatted text, for an editor";

/// Format sources in the one style of AFL
///
/// Print the names of the files that change. Comments stay, and a file with errors is left as it is.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Files, folders (every .afl file below), or `-` for standard input
    #[arg(required_unless_present = "stdin", value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// Change nothing; print the names of the files that would change, and fail if there are any
    #[arg(long)]
    check: bool,
    /// Format standard input and print it, like `-`
    #[arg(long, conflicts_with = "files")]
    stdin: bool,
}

pub(crate) fn run(options: &Options, color: Color) -> Result<Exit, Failure> {
    let inputs = if options.stdin { vec![Input::Stdin] } else { Finder::default().find(&options.files)? };
    if inputs.len() > 1 && inputs.contains(&Input::Stdin) {
        return Err(Failure::StdinNotAlone);
    }
    // All are read before one is written: a wrong name changes nothing.
    let texts = inputs.iter().map(Input::read).collect::<Result<Vec<_>, _>>()?;
    let mut broken = 0;
    let mut different = 0;
    for (input, text) in inputs.iter().zip(texts) {
        match format::format(&text) {
            Err(errors) => {
                report::show(color, DiagnosticFormat::Human, &Sources::one(input.name(), text), &errors)?;
                broken += 1;
            }
            Ok(formatted) => {
                different += usize::from(formatted != text);
                let change = FormatChange { input, text: &text, formatted: &formatted };
                if options.check { change.show(color)? } else { change.write()? }
            }
        }
    }
    let all = count(inputs.len(), "file");
    if broken > 0 {
        output::say(&format!("left alone because of errors: {broken} of {all}\n"));
    }
    if options.check && different > 0 {
        output::say(&format!("not formatted: {different} of {all}; run `afl fmt` to format\n"));
    }
    let failed = broken > 0 || (options.check && different > 0);
    Ok(if failed { Exit::Mistakes } else { Exit::Fine })
}

struct FormatChange<'t> {
    input: &'t Input,
    text: &'t str,
    formatted: &'t str,
}

impl FormatChange<'_> {
    fn show(&self, color: Color) -> Result<(), Failure> {
        if self.formatted == self.text {
            return Ok(());
        }
        output::data(&format!("{}\n", self.input.name()))?;
        output::say(&diff(self.text, self.formatted, color));
        Ok(())
    }

    fn write(&self) -> Result<(), Failure> {
        match self.input {
            Input::Stdin => output::data(self.formatted),
            Input::File(_) if self.formatted == self.text => Ok(()),
            Input::File(path) => {
                Target::File(path.clone()).write(|out| out.write_all(self.formatted.as_bytes()))?;
                output::data(&format!("{}\n", self.input.name()))
            }
        }
    }
}

/// A diff beyond this is cut: the formatter shows the rest better than a diff does.
const MAX_LINES: usize = 40;

const CONTEXT_LINES: usize = 1;

/// The best diff found in this time is good enough.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Changed lines with `-` and `+` and a little around them, each on a line of its own.
fn diff(old: &str, new: &str, color: Color) -> String {
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_lines(old, new);
    let mut lines = Vec::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT_LINES).iter_hunks() {
        lines.push(hunk.header().to_string());
        lines.extend(hunk.iter_changes().map(|change| {
            let line = format!("{}{}", change.tag(), change.value().trim_end_matches(['\r', '\n']));
            match change.tag() {
                ChangeTag::Delete => paint(&line, color::REMOVED, color),
                ChangeTag::Insert => paint(&line, color::ADDED, color),
                ChangeTag::Equal => line,
            }
        }));
    }
    if lines.len() > MAX_LINES {
        let more = format!("... {} more lines", lines.len() - MAX_LINES);
        lines.truncate(MAX_LINES);
        lines.push(more);
    }
    lines.iter().fold(String::new(), |text, line| text + line + "\n")
}

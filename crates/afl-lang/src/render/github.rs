//! Diagnostics as workflow commands, which GitHub shows beside the lines of a pull request.

use std::fmt::Write;

use super::{Positions, shortened};
use crate::diagnostic::Diagnostic;
use crate::source::Sources;

/// One line for each diagnostic.
pub fn github(sources: &Sources, diagnostics: &[Diagnostic]) -> String {
    let positions = Positions::new(sources);
    diagnostics.iter().fold(String::new(), |text, diagnostic| text + &command(&positions, diagnostic))
}

fn command(positions: &Positions<'_>, diagnostic: &Diagnostic) -> String {
    let (start, end) = (positions.start(diagnostic.place), positions.end(diagnostic.place));
    let mut text = format!(
        "::{} file={},line={}",
        diagnostic.severity().name(),
        property(positions.name(diagnostic.place.file)),
        start.line
    );
    // GitHub refuses columns on a range of several lines.
    let range = if start.line == end.line {
        write!(text, ",col={},endLine={},endColumn={}", start.column, end.line, end.column)
    } else {
        write!(text, ",endLine={}", end.line)
    };
    range.expect("a string takes any text");
    let message = match &diagnostic.help {
        Some(help) => format!("{}\nhelp: {}", shortened(&diagnostic.message), shortened(help)),
        None => shortened(&diagnostic.message).into_owned(),
    };
    text + &format!(",title={}::{}\n", diagnostic.code.text(), data(&message))
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

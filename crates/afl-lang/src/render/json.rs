//! Diagnostics for programs: one JSON object.

use serde::Serialize;

use super::Positions;
use crate::diagnostic::{Diagnostic, Label};
use crate::source::{FileSpan, Sources};

/// Lines and columns count from one, columns count characters, and an end is the position behind the
/// last character. Ends without a line break.
pub fn json(sources: &Sources, diagnostics: &[Diagnostic]) -> String {
    let positions = Positions::new(sources);
    let diagnostics =
        diagnostics.iter().map(|diagnostic| JsonDiagnostic::new(&positions, diagnostic)).collect();
    serde_json::to_string_pretty(&JsonReport { diagnostics }).expect("strings and numbers are always JSON")
}

#[derive(Serialize)]
struct JsonReport<'a> {
    diagnostics: Vec<JsonDiagnostic<'a>>,
}

#[derive(Serialize)]
struct JsonDiagnostic<'a> {
    code: &'static str,
    severity: &'static str,
    message: &'a str,
    help: Option<&'a str>,
    #[serde(flatten)]
    range: Range<'a>,
    labels: Vec<LabelEntry<'a>>,
}

#[derive(Serialize)]
struct LabelEntry<'a> {
    message: &'a str,
    #[serde(flatten)]
    range: Range<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Range<'a> {
    file: &'a str,
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
}

impl<'a> JsonDiagnostic<'a> {
    fn new(positions: &Positions<'a>, diagnostic: &'a Diagnostic) -> Self {
        let label = |label: &'a Label| LabelEntry {
            message: &label.message,
            range: Range::new(positions, label.place),
        };
        Self {
            code: diagnostic.code.text(),
            severity: diagnostic.severity().name(),
            message: &diagnostic.message,
            help: diagnostic.help.as_deref(),
            range: Range::new(positions, diagnostic.place),
            labels: diagnostic.related.iter().map(label).collect(),
        }
    }
}

impl<'a> Range<'a> {
    fn new(positions: &Positions<'a>, place: FileSpan) -> Self {
        let (start, end) = (positions.start(place), positions.end(place));
        Self {
            file: positions.name(place.file),
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
        }
    }
}

//! What formatting would change, short enough to read.

use std::time::Duration;

use afl_lang::render::Color;
use similar::{ChangeTag, TextDiff};

use crate::color::{self, paint};

/// A diff beyond this is cut: the formatter shows the rest better than a diff does.
const MAX_LINES: usize = 40;

const CONTEXT_LINES: usize = 1;

/// The best diff found in this time is good enough.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Changed lines with `-` and `+` and a little around them, each on a line of its own.
pub(crate) fn lines(old: &str, new: &str, color: Color) -> String {
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

//! The notes of a handler at work: log lines, progress, partial results, signs of life.

use afl_runtime::agent::LogLine;
use serde::{Deserialize, Serialize};

use super::Object;

/// A longer line is cut: one line must not fill the log.
pub const MAX_LINE_BYTES: usize = 16 << 10;

/// How much may wait for the reader. Lines beyond it are counted and dropped, so that a flood blocks no other work.
const MAX_LINES: usize = 10_000;
const MAX_BYTES: usize = 8 << 20;

/// All notes since the last read.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Notes {
    pub lines: Vec<LogLine>,
    /// Lines that had no room; they came after [`Notes::lines`].
    pub dropped_lines: u64,
    /// The latest.
    pub progress: Option<Progress>,
    /// The updates, merged in their order.
    pub update: Option<Object>,
    /// Whether any sign of life came.
    pub alive: bool,
    line_bytes: usize,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// From 0 to 1, where the handler knows.
    #[serde(default)]
    pub fraction: Option<f64>,
    #[serde(default)]
    pub message: String,
}

impl Notes {
    pub(super) fn is_empty(&self) -> bool {
        !self.alive && self.lines.is_empty() && self.dropped_lines == 0
    }

    pub(super) fn push(&mut self, mut line: LogLine) {
        if self.lines.len() >= MAX_LINES || self.line_bytes >= MAX_BYTES {
            self.dropped_lines += 1;
            return;
        }
        cut(&mut line.text);
        self.line_bytes += line.text.len();
        self.lines.push(line);
    }
}

pub(super) fn cut(text: &mut String) {
    if text.len() > MAX_LINE_BYTES {
        let end = text.floor_char_boundary(MAX_LINE_BYTES);
        text.truncate(end);
        text.push('…');
    }
}

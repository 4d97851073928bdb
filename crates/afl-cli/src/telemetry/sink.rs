//! The file of telemetry, which may refuse what it is given and take it again later.

use std::fs::File;
use std::io::{self, ErrorKind, Write};

use afl_engine::time::Millis;
use afl_runtime::TraceRecord;
use serde::Serialize;

use super::Warn;
use crate::shown::Moment;

pub(super) struct Sink {
    pub(super) warn: Warn,
    pub(super) lines: Lines,
    /// Not there before the first line, and after a refusal.
    file: Option<File>,
    /// Whether the user knows that it cannot be written.
    is_reported: bool,
}

/// The gap at the end of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Lines {
    /// How many are missing, which the file does not say yet.
    pub(super) lost: u64,
    /// Whether the last one is not whole.
    is_torn: bool,
}

/// Stands in the place of lines that are missing.
#[derive(Serialize)]
struct LostRecords {
    time: Millis,
    trace: &'static str,
    count: u64,
}

impl Sink {
    pub(super) fn new(warn: Warn) -> Self {
        Self { warn, lines: Lines::default(), file: None, is_reported: false }
    }

    /// Writes what it can, and counts the rest.
    pub(super) fn write(&mut self, batch: &[TraceRecord]) {
        let mut text = self.lines.gap(Moment::now().0);
        let gap = text.len();
        for traced in batch {
            push(&mut text, traced);
        }
        if text.is_empty() {
            return;
        }
        let (written, outcome) = self.put(&text);
        self.lines.wrote(&text, gap, written);
        match outcome {
            Ok(()) => self.is_reported = false,
            Err(source) => {
                self.file = None;
                if !std::mem::replace(&mut self.is_reported, true) {
                    self.warn.unwritable(source);
                }
            }
        }
    }

    /// How much of a text the file took. It is opened again after each refusal.
    fn put(&mut self, text: &[u8]) -> (usize, io::Result<()>) {
        let file = match &mut self.file {
            Some(file) => file,
            // Several processes may add to one file.
            none => match File::options().append(true).create(true).open(&self.warn.file) {
                Ok(file) => none.insert(file),
                Err(source) => return (0, Err(source)),
            },
        };
        let mut written = 0;
        while written < text.len() {
            match file.write(&text[written..]) {
                Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }
}

impl Lines {
    /// The text before the next lines: a line end, and the number of missing lines.
    fn gap(self, time: Millis) -> Vec<u8> {
        let mut text = Vec::new();
        if self.is_torn {
            text.push(b'\n');
        }
        if self.lost > 0 {
            push(&mut text, &LostRecords { time, trace: "missed", count: self.lost });
        }
        text
    }

    /// So much was written of a text that begins with a gap.
    fn wrote(&mut self, text: &[u8], gap: usize, written: usize) {
        if written >= gap {
            self.lost = 0;
        }
        let rest = &text[written.max(gap)..];
        self.lost += rest.split_inclusive(|byte| *byte == b'\n').count() as u64;
        if let Some(last) = text[..written].last() {
            self.is_torn = *last != b'\n';
        }
    }
}

fn push(text: &mut Vec<u8>, line: &impl Serialize) {
    serde_json::to_writer(&mut *text, line).expect("a record has a JSON form");
    text.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file after it took so many bytes of each text, and its gap.
    fn written(parts: &[(&str, usize)]) -> (String, Lines) {
        let (mut file, mut lines) = (Vec::new(), Lines::default());
        for (part, takes) in parts {
            let mut text = lines.gap(Millis(7));
            let gap = text.len();
            text.extend(part.bytes());
            let takes = text.len().min(*takes);
            file.extend(&text[..takes]);
            lines.wrote(&text, gap, takes);
        }
        (String::from_utf8(file).expect("it is text"), lines)
    }

    #[test]
    fn lines_that_a_file_did_not_take_are_reported_where_they_are_missing() {
        let all = usize::MAX;
        let (file, lines) = written(&[("a\n", all), ("b\nc\n", 0), ("d\n", 0), ("e\n", all)]);
        assert_eq!(file, "a\n{\"time\":7,\"trace\":\"missed\",\"count\":3}\ne\n");
        assert_eq!(lines, Lines::default());
        let (file, lines) = written(&[("a\nb\n", 2), ("", all)]);
        assert_eq!(file, "a\n{\"time\":7,\"trace\":\"missed\",\"count\":1}\n");
        assert_eq!(lines, Lines::default());
    }

    #[test]
    fn a_torn_line_stands_alone_and_counts_as_missing() {
        let all = usize::MAX;
        let (file, _) = written(&[("abc\nd\n", 2), ("e\n", all)]);
        assert_eq!(file, "ab\n{\"time\":7,\"trace\":\"missed\",\"count\":2}\ne\n");
        // The line with the count may be torn itself.
        let (file, lines) = written(&[("abc\n", 1), ("d\n", 5), ("e\n", all)]);
        assert_eq!(file, "a\n{\"ti\n{\"time\":7,\"trace\":\"missed\",\"count\":2}\ne\n");
        assert_eq!(lines, Lines::default());
    }
}

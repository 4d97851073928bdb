//! Source texts and positions in them.

use std::ops::Range;

/// A half-open range of bytes in one source text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The smallest span that covers both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Which of a program's source texts; an index into [`Sources`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FileId(pub u32);

/// A span in one of a program's source texts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileSpan {
    pub file: FileId,
    pub span: Span,
}

/// The part that a source text plays in the program it is compiled into.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Role {
    #[default]
    Primary,
    /// Declarations that the primary texts use; nothing in it is warned about.
    Library,
}

/// One source text with the name that messages call it by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    pub name: String,
    pub text: String,
    pub role: Role,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), role: Role::Primary }
    }

    pub fn library(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), role: Role::Library }
    }
}

/// The source texts of one program, in the order they were given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sources(pub Vec<Source>);

impl Sources {
    pub fn one(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self(vec![Source::new(name, text)])
    }

    pub fn get(&self, file: FileId) -> &Source {
        &self.0[file.0 as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = (FileId, &Source)> {
        self.0.iter().enumerate().map(|(index, source)| (FileId(index as u32), source))
    }
}

/// A position for people: lines and columns count from one, columns count characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LineColumn {
    pub line: u32,
    pub column: u32,
}

/// Finds lines and columns in one text.
#[derive(Clone, Debug)]
pub struct LineIndex<'s> {
    text: &'s str,
    starts: Vec<u32>,
    /// Characters before every [`STRIDE`] bytes, because a line may be as long as the text; empty where
    /// bytes are characters.
    characters: Vec<u32>,
}

/// Counting so many bytes costs little, and keeping a number for each of them too.
const STRIDE: usize = 256;

impl<'s> LineIndex<'s> {
    pub fn new(text: &'s str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at as u32 + 1)).collect();
        let characters = if text.is_ascii() { Vec::new() } else { count_characters(text) };
        Self { text, starts, characters }
    }

    pub fn position(&self, offset: u32) -> LineColumn {
        self.on_line(self.starts.partition_point(|start| *start <= offset) - 1, offset)
    }

    /// Like [`position`](Self::position), faster where offsets come in about the order of the text:
    /// `near` is the zero-based line of the last answer.
    pub fn position_near(&self, near: usize, offset: u32) -> LineColumn {
        let is_on = |line: usize| {
            self.starts.get(line).is_some_and(|start| *start <= offset)
                && self.starts.get(line + 1).is_none_or(|next| offset < *next)
        };
        match (near..near + 3).find(|line| is_on(*line)) {
            Some(line) => self.on_line(line, offset),
            None => self.position(offset),
        }
    }

    /// The text of a line that [`position`](Self::position) gave, without its line break.
    pub fn line(&self, line: u32) -> Span {
        let start = self.starts[line as usize - 1];
        let end = self.starts.get(line as usize).map_or(self.text.len(), |next| *next as usize - 1);
        let text = &self.text[start as usize..end];
        Span::new(start, start + text.strip_suffix('\r').unwrap_or(text).len() as u32)
    }

    fn on_line(&self, line: usize, offset: u32) -> LineColumn {
        let start = self.starts[line];
        let column = self.characters_before(offset) - self.characters_before(start);
        LineColumn { line: line as u32 + 1, column: column + 1 }
    }

    fn characters_before(&self, offset: u32) -> u32 {
        let stride = offset as usize / STRIDE;
        match self.characters.get(stride) {
            None => offset,
            Some(before) => before + characters_in(&self.text.as_bytes()[stride * STRIDE..offset as usize]),
        }
    }
}

fn count_characters(text: &str) -> Vec<u32> {
    let mut before = 0;
    let mut counts = Vec::with_capacity(text.len() / STRIDE + 1);
    for stride in text.as_bytes().chunks(STRIDE) {
        counts.push(before);
        before += characters_in(stride);
    }
    counts.push(before);
    counts
}

/// A character counts where it begins.
fn characters_in(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let index = LineIndex::new("aé\nb");
        assert_eq!(index.position(3), LineColumn { line: 1, column: 3 });
        assert_eq!(index.position(4), LineColumn { line: 2, column: 1 });
        assert_eq!(index.position_near(1, 5), LineColumn { line: 2, column: 2 });
        assert_eq!(index.position_near(1, 0), LineColumn { line: 1, column: 1 });
    }

    #[test]
    fn a_line_ends_before_its_line_break() {
        let index = LineIndex::new("ab\r\ncd\n");
        let lines: Vec<_> = (1..=3).map(|line| index.line(line).range()).collect();
        assert_eq!(lines, [0..2, 4..6, 7..7]);
    }

    #[test]
    fn columns_of_a_long_line_are_counted_from_its_start() {
        let text = format!("a\n{}", "é".repeat(1_000));
        let index = LineIndex::new(&text);
        for column in [1, 126, 127, 128, 129, 500, 1_001] {
            assert_eq!(index.position(2 * column), LineColumn { line: 2, column });
        }
    }
}

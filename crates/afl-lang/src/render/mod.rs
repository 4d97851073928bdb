//! Diagnostics as text: for a person, for a program, for an annotated pull request.
//!
//! Nothing here prints; the caller owns the terminal.

mod excerpt;
mod github;
mod human;
mod json;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cell::OnceCell;

pub use github::github;
pub use human::{Color, human};
pub use json::json;

use crate::source::{FileId, FileSpan, LineColumn, LineIndex, Sources};

/// Finds lines and columns in the texts of a program; a text that no diagnostic names costs nothing.
struct Positions<'s> {
    sources: &'s Sources,
    indices: Vec<OnceCell<LineIndex<'s>>>,
}

impl<'s> Positions<'s> {
    fn new(sources: &'s Sources) -> Self {
        Self { sources, indices: sources.iter().map(|_| OnceCell::new()).collect() }
    }

    fn name(&self, file: FileId) -> &'s str {
        &self.sources.get(file).name
    }

    fn index(&self, file: FileId) -> &LineIndex<'s> {
        self.indices[file.0 as usize].get_or_init(|| LineIndex::new(&self.sources.get(file).text))
    }

    fn start(&self, place: FileSpan) -> LineColumn {
        self.index(place.file).position(place.span.start)
    }

    /// Where the place ends: the position behind its last character.
    fn end(&self, place: FileSpan) -> LineColumn {
        self.index(place.file).position(place.span.end)
    }
}

/// A message of more bytes than this quotes a text too long to read.
const MAX_MESSAGE_BYTES: usize = 400;
const HEAD_BYTES: usize = 200;
const TAIL_BYTES: usize = 100;

/// The message, cut in the middle where it is too long: its end often names the mistake.
fn shortened(message: &str) -> Cow<'_, str> {
    if message.len() <= MAX_MESSAGE_BYTES {
        return Cow::Borrowed(message);
    }
    let head = &message[..message.floor_char_boundary(HEAD_BYTES)];
    let tail = &message[message.ceil_char_boundary(message.len() - TAIL_BYTES)..];
    Cow::Owned(format!("{head}...{tail}"))
}

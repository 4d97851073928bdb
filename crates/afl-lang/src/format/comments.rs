//! The comments of a text, in order, each until it is printed.

use crate::source::Span;
use crate::syntax::ast::{Comment, CommentKind};

#[derive(Debug)]
pub(super) struct Comments<'t> {
    text: &'t str,
    rest: &'t [Comment],
    /// Where the next one starts; beyond the text when there is none.
    next_start: u32,
    /// The first line end that was not before the last place asked for.
    line_end: usize,
}

/// The code on the line of a comment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CommentPosition {
    /// None.
    Alone,
    /// Before the comment.
    Trailing,
    /// Behind the comment.
    Leading,
    /// With both.
    Between,
}

impl<'t> Comments<'t> {
    pub(super) fn new(text: &'t str, comments: &'t [Comment]) -> Self {
        Self { text, rest: comments, next_start: start_of(comments), line_end: 0 }
    }

    pub(super) fn is_any_before(&self, offset: u32) -> bool {
        self.next_start < offset
    }

    /// Whether a doc comment comes before this offset. It has a line of its own among entries.
    pub(super) fn is_doc_before(&self, offset: u32) -> bool {
        let mut before = self.rest.iter().take_while(|comment| comment.span.start < offset);
        before.any(|comment| comment.kind == CommentKind::Doc)
    }

    pub(super) fn peek_before(&self, offset: u32) -> Option<Comment> {
        if self.is_any_before(offset) { self.rest.first().copied() } else { None }
    }

    pub(super) fn pop(&mut self) {
        self.rest = &self.rest[1..];
        self.next_start = start_of(self.rest);
    }

    pub(super) fn slice(&self, span: Span) -> &'t str {
        &self.text[span.range()]
    }

    pub(super) fn stand(&self, comment: Comment) -> CommentPosition {
        let blanks = self.blanks_before(comment.span.start);
        let starts_line = line_ends(blanks) > 0 || blanks.len() == comment.span.start as usize;
        let ends_line = match comment.kind {
            CommentKind::Line => true,
            CommentKind::Block | CommentKind::Doc => {
                let mut behind = self.text[comment.span.end as usize..].bytes();
                behind.find(|byte| !matches!(byte, b' ' | b'\t' | b'\r')).is_none_or(|byte| byte == b'\n')
            }
        };
        match (starts_line, ends_line) {
            (true, true) => CommentPosition::Alone,
            (false, true) => CommentPosition::Trailing,
            (true, false) => CommentPosition::Leading,
            (false, false) => CommentPosition::Between,
        }
    }

    /// Whether a line ends between a comment and an offset. Remembers the line end, since a line may
    /// hold any number of comments.
    pub(super) fn line_ends_between(&mut self, comment: Comment, offset: u32) -> bool {
        let from = comment.span.end as usize;
        if self.line_end < from {
            self.line_end = self.text[from..].find('\n').map_or(self.text.len(), |length| from + length);
        }
        self.line_end < offset as usize
    }

    /// Whether the user left a line empty before this offset.
    pub(super) fn is_blank_line_before(&self, offset: u32) -> bool {
        line_ends(self.blanks_before(offset)) > 1
    }

    /// Whether a separator or an opening bracket stands before this offset.
    pub(super) fn is_separated_before(&self, offset: u32) -> bool {
        let before = &self.text[..offset as usize];
        before.trim_end_matches(is_blank).ends_with([',', ';', '(', '[', '{'])
    }

    fn blanks_before(&self, offset: u32) -> &'t str {
        let before = &self.text[..offset as usize];
        &before[before.trim_end_matches(is_blank).len()..]
    }
}

fn start_of(comments: &[Comment]) -> u32 {
    comments.first().map_or(u32::MAX, |comment| comment.span.start)
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n' | '\u{feff}')
}

fn line_ends(blanks: &str) -> usize {
    blanks.bytes().filter(|byte| *byte == b'\n').count()
}

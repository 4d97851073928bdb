//! Writes a tree into a layout, and each comment before the first thing that stands behind it.
//!
//! Every name, literal and bracket is announced with its offset in the source. Since the comments are a
//! queue and an announcement empties it up to that offset, no comment can be lost or change its order.

use super::comments::{CommentPosition, Comments};
use super::layout::{Break, FormatLayout};
use crate::source::Span;
use crate::syntax::ast::{Comment, CommentKind, Ident, QName, SyntaxTree};

#[derive(Debug)]
pub(super) struct Printer<'t> {
    pub(super) text: &'t str,
    pub(super) comments: Comments<'t>,
    pub(super) layout: FormatLayout<'t>,
}

impl<'t> Printer<'t> {
    pub(super) fn new(text: &'t str, tree: &'t SyntaxTree<'t>) -> Self {
        // Indentation and breaks make most texts a little longer.
        let capacity = text.len() + text.len() / 8;
        Self { text, comments: Comments::new(text, &tree.comments), layout: FormatLayout::new(capacity) }
    }

    /// Prints the comments that stand before an offset, among the parts of a declaration or statement.
    pub(super) fn reach(&mut self, offset: u32) {
        while let Some(comment) = self.comments.peek_before(offset) {
            match self.comments.stand(comment) {
                CommentPosition::Alone => {
                    self.layout.break_line(Break::Hard);
                    self.comment(comment);
                    self.layout.end_line();
                }
                CommentPosition::Trailing | CommentPosition::Leading | CommentPosition::Between => {
                    self.comment(comment);
                }
            }
        }
    }

    /// Prints the comments before an opening bracket whose offset the tree does not have. The bracket
    /// is behind `from` and encloses `inner`.
    pub(super) fn reach_bracket(&mut self, mut from: u32, bracket: char, inner: u32) {
        while let Some(comment) = self.comments.peek_before(inner) {
            if self.text[Span::new(from, comment.span.start).range()].contains(bracket) {
                return;
            }
            from = comment.span.end;
            self.reach(comment.span.start + 1);
        }
    }

    /// Prints the next comment here.
    pub(super) fn comment(&mut self, comment: Comment) {
        self.comments.pop();
        let text = self.comments.slice(comment.span);
        let mut lines = text.split('\n').map(str::trim_end);
        self.layout.comment(lines.next().unwrap_or_default());
        let starred = text.split('\n').skip(1).all(|line| line.trim_start().starts_with('*'));
        for line in lines {
            if starred {
                self.layout.comment_line(Break::Hard, " ", line.trim_start());
            } else {
                self.layout.comment_line(Break::Raw, "", line);
            }
        }
        if comment.kind == CommentKind::Line {
            self.layout.end_line();
        }
    }

    /// A word or bracket that begins at an offset.
    pub(super) fn token(&mut self, start: u32, text: &'t str) {
        self.reach(start);
        self.layout.text(text);
    }

    pub(super) fn ident(&mut self, ident: &Ident<'t>) {
        self.token(ident.span.start, ident.text);
    }

    pub(super) fn qname(&mut self, name: &'t QName<'t>) {
        // A comment inside a name goes before it: behind it, it could become that of a declaration.
        self.token(name.span.end, &name.text);
    }

    /// Something printed exactly as it was written.
    pub(super) fn literal(&mut self, span: Span) {
        self.reach(span.start);
        self.layout.verbatim(&self.text[span.range()]);
    }

    /// Prints something that goes on a new line, indented, only if comments before `start` force it to.
    pub(super) fn hanging(&mut self, start: u32, print: impl FnOnce(&mut Self)) {
        if !self.comments.is_any_before(start) {
            return print(self);
        }
        self.layout.indent();
        self.reach(start);
        print(self);
        self.layout.dedent();
    }

    pub(super) fn is_on_one_line(&self, span: Span) -> bool {
        !self.text[span.range()].contains('\n')
    }
}

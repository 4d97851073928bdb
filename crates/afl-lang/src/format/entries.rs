//! The gaps between things that have lines of their own: items, statements, fields, cases.

use super::comments::CommentPosition;
use super::layout::{Break, LayoutMark};
use super::printer::Printer;
use crate::source::Span;
use crate::syntax::ast::{Comment, CommentKind};

/// Where an entry stands among those in the same braces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Position {
    First,
    Later,
}

/// How an entry was set off from the one before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    first_line_end: LayoutMark,
    has_blank_line: bool,
}

impl<'t> Printer<'t> {
    /// Ends the line before the entry at `start`, with the comments around the line end.
    pub(super) fn enter(&mut self, start: u32, position: Position) -> Gap {
        while let Some(comment) = self.comments.peek_before(start) {
            if !self.belongs_to_previous(comment, start, position) {
                break;
            }
            self.comment(comment);
        }
        let mut gap = Gap { first_line_end: self.layout.mark(), has_blank_line: false };
        let mut position = position;
        let mut line_end = LineEnd::Free;
        while let Some(comment) = self.comments.peek_before(start) {
            gap.has_blank_line |= self.end_line_before(comment.span.start, position, line_end);
            position = Position::Later;
            line_end = match (comment.kind, self.comments.stand(comment)) {
                (CommentKind::Doc, _) => LineEnd::Tight,
                (_, CommentPosition::Leading | CommentPosition::Between) => LineEnd::None,
                (_, CommentPosition::Alone | CommentPosition::Trailing) => LineEnd::Free,
            };
            self.comment(comment);
        }
        gap.has_blank_line |= self.end_line_before(start, position, line_end);
        gap
    }

    /// Prints the comments before a closing brace.
    pub(super) fn leave(&mut self, close: u32, mut position: Position) {
        while let Some(comment) = self.comments.peek_before(close) {
            if let CommentPosition::Alone | CommentPosition::Leading = self.comments.stand(comment) {
                self.end_line_before(comment.span.start, position, LineEnd::Free);
                position = Position::Later;
            }
            self.comment(comment);
        }
    }

    /// Braces with entries on their own lines; the span covers the braces.
    pub(super) fn braces<E>(
        &mut self,
        span: Span,
        entries: &'t [E],
        start: impl Fn(&E) -> u32,
        mut print: impl FnMut(&mut Self, &'t E),
    ) {
        if entries.is_empty() {
            return self.empty_braces(span);
        }
        self.long_braces(span, Position::Later, |printer| {
            let mut position = Position::First;
            for entry in entries {
                printer.enter(start(entry), position);
                print(printer, entry);
                position = Position::Later;
            }
        });
    }

    /// Braces whose contents stand on one line if they fit there.
    pub(super) fn short_braces(&mut self, span: Span, print: impl FnOnce(&mut Self)) {
        self.token(span.start, "{");
        let group = self.layout.open();
        self.layout.indent();
        print(self);
        self.reach(span.end - 1);
        self.layout.dedent();
        self.layout.break_line(Break::Space);
        self.layout.text("}");
        self.layout.close(group);
    }

    /// Braces with nothing but comments between them.
    pub(super) fn empty_braces(&mut self, span: Span) {
        self.reach(span.start);
        if !self.comments.is_any_before(span.end - 1) {
            self.layout.text("{}");
        } else if self.is_on_one_line(span) {
            self.short_braces(span, |printer| printer.layout.break_line(Break::Space));
        } else {
            self.long_braces(span, Position::First, |_| {});
        }
    }

    /// Braces on lines of their own; what `print` writes and the comments behind it stand between them.
    pub(super) fn long_braces(&mut self, span: Span, last: Position, print: impl FnOnce(&mut Self)) {
        self.token(span.start, "{");
        self.layout.indent();
        print(self);
        self.leave(span.end - 1, last);
        self.layout.dedent();
        self.layout.break_line(Break::Hard);
        self.layout.text("}");
    }

    /// Makes sure that an empty line is in the gap, above the comments that lead its entry.
    pub(super) fn set_off(&mut self, gap: Gap) {
        if !gap.has_blank_line {
            self.layout.leave_blank(gap.first_line_end);
        }
    }

    fn belongs_to_previous(&mut self, comment: Comment, next: u32, position: Position) -> bool {
        match (comment.kind, self.comments.stand(comment)) {
            // A doc comment is that of the next declaration, wherever it was written.
            (CommentKind::Doc, _) | (_, CommentPosition::Alone | CommentPosition::Leading) => false,
            (_, CommentPosition::Trailing) => true,
            (_, CommentPosition::Between) => {
                let separated = self.comments.is_separated_before(comment.span.start);
                position == Position::Later && !separated || self.comments.line_ends_between(comment, next)
            }
        }
    }

    /// Whether it left a line empty, as the user did.
    fn end_line_before(&mut self, offset: u32, position: Position, line_end: LineEnd) -> bool {
        let blank = position == Position::Later
            && line_end == LineEnd::Free
            && self.comments.is_blank_line_before(offset);
        match line_end {
            LineEnd::None => {}
            LineEnd::Free | LineEnd::Tight => {
                self.layout.break_line(if blank { Break::Blank } else { Break::Hard });
            }
        }
        blank
    }
}

/// How a line may end before something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LineEnd {
    /// Not at all.
    None,
    /// Without an empty line.
    Tight,
    /// With one if the user left one.
    Free,
}

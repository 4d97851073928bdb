//! Lists in brackets: on one line, or with a line for each element.

use super::comments::CommentPosition;
use super::layout::{Break, LayoutMark};
use super::printer::Printer;
use crate::source::Span;
use crate::syntax::ast::{
    Arg, Args, CommentKind, ExprSyntax, ExprSyntaxKind, MapEntry, MapKey, Param, Params, Wholeness,
};

/// An element of a list.
pub(super) trait Element<'t> {
    fn span(&self) -> Span;

    fn print(&'t self, printer: &mut Printer<'t>);

    /// The value at its end, which may share its brackets' lines with the list's.
    fn value(&self) -> Option<&ExprSyntax<'t>> {
        None
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Brackets {
    open: &'static str,
    close: &'static str,
}

const PARENTHESES: Brackets = Brackets { open: "(", close: ")" };
pub(super) const SQUARE: Brackets = Brackets { open: "[", close: "]" };
pub(super) const MAP: Brackets = Brackets { open: "#{", close: "}" };

impl<'t> Printer<'t> {
    pub(super) fn args(&mut self, args: &'t Args<'t>) {
        assert_eq!(args.wholeness, Wholeness::Whole, "arguments were lost without an error");
        self.list(PARENTHESES, &args.list, args.span);
    }

    /// Parameters or returns. Gives their group.
    pub(super) fn params(&mut self, params: &'t Params<'t>) -> LayoutMark {
        assert_eq!(params.wholeness, Wholeness::Whole, "parameters were lost without an error");
        self.list(PARENTHESES, &params.list, params.span)
    }

    /// A list whose span covers the brackets. Gives its group.
    pub(super) fn list<E: Element<'t>>(
        &mut self,
        brackets: Brackets,
        elements: &'t [E],
        span: Span,
    ) -> LayoutMark {
        self.token(span.start, brackets.open);
        let close = span.end - 1;
        let group = self.layout.open();
        match elements {
            [] if !self.comments.is_any_before(close) => {}
            [only] if self.hugs(only) => {
                only.print(self);
                self.reach(close);
            }
            [..] => self.elements(elements, close),
        }
        self.layout.text(brackets.close);
        self.layout.close(group);
        group
    }

    fn hugs<E: Element<'t>>(&self, only: &E) -> bool {
        let has_lines = match only.value().map(|value| (&value.kind, value.span)) {
            Some((ExprSyntaxKind::Array(elements), _)) => !elements.is_empty(),
            Some((ExprSyntaxKind::Map(entries), _)) => !entries.is_empty(),
            Some((ExprSyntaxKind::String(_), span)) => !self.is_on_one_line(span),
            _ => false,
        };
        has_lines && !self.comments.is_any_before(only.span().start)
    }

    fn elements<E: Element<'t>>(&mut self, elements: &'t [E], close: u32) {
        self.layout.indent();
        let mut line_end = Break::Soft;
        let mut rest = elements.iter();
        while let Some(element) = rest.next() {
            self.before_element(element.span().start, line_end);
            element.print(self);
            if let Some(next) = rest.as_slice().first() {
                self.before_separator(next.span().start);
                self.layout.text(",");
            } else {
                self.before_separator(close);
                self.layout.if_broken(",");
            }
            line_end = Break::Space;
        }
        self.before_closing(close);
        self.layout.dedent();
        self.layout.break_line(Break::Soft);
    }

    /// Ends the line, or not, before the element at `start`.
    pub(super) fn before_element(&mut self, start: u32, line_end: Break) {
        self.behind_separator(start);
        let alone = |comment| self.comments.stand(comment) == CommentPosition::Alone;
        if self.comments.peek_before(start).is_some_and(alone) {
            self.layout.end_line();
        }
        self.layout.break_line(line_end);
        self.reach(start);
    }

    /// A comment behind the last element ends its line only if the list is broken anyway, for then it
    /// is printed so.
    fn before_closing(&mut self, close: u32) {
        while let Some(comment) = self.comments.peek_before(close) {
            if let CommentPosition::Alone | CommentPosition::Leading = self.comments.stand(comment) {
                self.layout.break_line(Break::Hard);
            }
            self.comment(comment);
        }
    }

    /// Prints the comments that stand between an element and its comma, and do not need the line's rest.
    pub(super) fn before_separator(&mut self, next: u32) {
        while let Some(comment) = self.comments.peek_before(next) {
            let behind =
                matches!(self.comments.stand(comment), CommentPosition::Trailing | CommentPosition::Between)
                    && !self.comments.is_separated_before(comment.span.start);
            if !behind || comment.kind == CommentKind::Line {
                break;
            }
            self.comment(comment);
        }
    }

    /// Prints the comments behind a comma or an opening bracket that end their line.
    fn behind_separator(&mut self, next: u32) {
        while let Some(comment) = self.comments.peek_before(next) {
            match self.comments.stand(comment) {
                CommentPosition::Trailing => {
                    self.comment(comment);
                    self.layout.end_line();
                    // The next token stood on a later line, before the comma or behind it.
                    break;
                }
                CommentPosition::Between if self.comments.line_ends_between(comment, next) => {
                    self.comment(comment);
                }
                CommentPosition::Between | CommentPosition::Alone | CommentPosition::Leading => break,
            }
        }
    }
}

impl<'t> Element<'t> for Param<'t> {
    fn span(&self) -> Span {
        self.span
    }

    fn print(&'t self, printer: &mut Printer<'t>) {
        printer.param(self);
    }
}

impl<'t> Element<'t> for Arg<'t> {
    fn span(&self) -> Span {
        self.name.span.to(self.value.span)
    }

    fn print(&'t self, printer: &mut Printer<'t>) {
        printer.ident(&self.name);
        printer.assigned(&self.value);
    }

    fn value(&self) -> Option<&ExprSyntax<'t>> {
        Some(&self.value)
    }
}

impl<'t> Element<'t> for ExprSyntax<'t> {
    fn span(&self) -> Span {
        self.span
    }

    fn print(&'t self, printer: &mut Printer<'t>) {
        printer.expr(self);
    }

    fn value(&self) -> Option<&ExprSyntax<'t>> {
        Some(self)
    }
}

impl<'t> Element<'t> for MapEntry<'t> {
    fn span(&self) -> Span {
        let key = match &self.key {
            MapKey::Name(name) => name.span,
            MapKey::String(literal) => literal.span,
        };
        key.to(self.value.span)
    }

    fn print(&'t self, printer: &mut Printer<'t>) {
        match &self.key {
            MapKey::Name(name) => printer.ident(name),
            MapKey::String(literal) => printer.literal(literal.span),
        }
        printer.layout.text(":");
        printer.value(&self.value);
    }

    fn value(&self) -> Option<&ExprSyntax<'t>> {
        Some(&self.value)
    }
}

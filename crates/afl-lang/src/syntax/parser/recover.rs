//! Reports a mistake once, and finds the token at which parsing resumes.

use super::{Parser, is_segment};
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::limits::MAX_DIAGNOSTICS;
use crate::program::cut;
use crate::source::{FileSpan, Span};
use crate::syntax::ast::Wholeness;
use crate::syntax::token::{Token, TokenKind, Word};

/// Bounds how far the beginning of a line is looked for.
const MAX_LINE_BYTES: usize = 400;

impl Parser<'_> {
    pub(super) fn place(&self, span: Span) -> FileSpan {
        FileSpan { file: self.file, span }
    }

    pub(super) fn report(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        detail: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        // One more than are shown, so that it is known that there are more.
        if self.diagnostics.len() <= MAX_DIAGNOSTICS {
            self.diagnostics.push(detail(Diagnostic::new(code, self.place(span), message)));
        }
    }

    /// Reports that `what` should stand here.
    pub(super) fn expected(&mut self, what: &str) {
        self.expected_with(what, |d| d);
    }

    pub(super) fn expected_with(&mut self, what: &str, detail: impl FnOnce(Diagnostic) -> Diagnostic) {
        self.missing(Code::Expected, what, detail);
    }

    /// Like [`expected`](Self::expected), where the token here takes the place of the expected one.
    pub(super) fn expected_here(&mut self, what: &str, detail: impl FnOnce(Diagnostic) -> Diagnostic) {
        let message = format!("expected {what}, found {}", self.found());
        self.syntax_error(Code::Expected, message, detail);
    }

    /// Reports the token in the place of a `=>`; consumes `->` and `:`, which other languages write.
    pub(super) fn expected_arrow(&mut self, detail: impl FnOnce(Diagnostic) -> Diagnostic) {
        if self.at_thin_arrow() {
            let span = self.span().to(self.ahead[1].span);
            self.report(Code::Expected, span, "expected `=>`, found `->`", detail);
            self.bump();
            self.bump();
        } else {
            self.expected_with("`=>`", detail);
            self.eat(TokenKind::Colon);
        }
    }

    pub(super) fn at_thin_arrow(&self) -> bool {
        self.at(TokenKind::MINUS)
            && self.ahead[1].kind == TokenKind::GREATER
            && self.ahead[1].span.start == self.span().end
    }

    /// Reports that `what` is missing: where a line ends too early, at its end rather than on the next one.
    pub(super) fn missing(&mut self, code: Code, what: &str, detail: impl FnOnce(Diagnostic) -> Diagnostic) {
        if self.after_bad_token() {
            return;
        }
        let line_ends = self.at(TokenKind::Eof) || self.on_new_line() && self.previous_end > 0;
        let (span, on_new_line) = match self.kind() {
            TokenKind::Eof => (self.last_character(), ""),
            _ if line_ends => (self.last_character(), " on a new line"),
            _ => (self.span(), ""),
        };
        let message = format!("expected {what}, found {}{on_new_line}", self.found());
        self.report(code, span, message, detail);
    }

    fn last_character(&self) -> Span {
        let before = self.text[..self.previous_end as usize].chars().next_back();
        let length = before.map_or(0, char::len_utf8) as u32;
        Span::new(self.previous_end - length, self.previous_end)
    }

    /// Reports at the current token, unless the text before it was no AFL and has been reported.
    pub(super) fn syntax_error(
        &mut self,
        code: Code,
        message: impl Into<String>,
        detail: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        if !self.after_bad_token() {
            self.report(code, self.span(), message, detail);
        }
    }

    /// Whether the token before is no AFL: it explains an unexpected token here.
    pub(super) fn after_bad_token(&self) -> bool {
        let here = self.previous_end..=self.span().start;
        self.bad_tokens.iter().rev().take(self.ahead.len()).any(|end| here.contains(end))
    }

    pub(super) fn found(&self) -> String {
        match self.kind() {
            TokenKind::Eof => "the end of the file".to_owned(),
            TokenKind::String | TokenKind::TextBlock | TokenKind::OpenString => "a string".to_owned(),
            _ => format!("`{}`", self.slice(self.span())),
        }
    }

    pub(super) fn report_bad_token(&mut self, token: Token, code: Code) {
        let text = self.slice(token.span);
        if code == Code::UnterminatedComment {
            self.report(code, token.span, "this comment never ends", |d| d.help("close it with `*/`"));
            return;
        }
        let message = match text.chars().next() {
            Some(c) if !c.is_control() => format!("`{}` is not used in AFL", cut(text, 12)),
            _ => "this is not text".to_owned(),
        };
        let help = match text {
            "#" => Some("write comments with `//`"),
            "&" => Some("write `&&`"),
            "|" => Some("write `||`"),
            "'" => Some("write strings in double quotes"),
            _ if text.chars().all(char::is_alphanumeric) => {
                Some("names use the letters a-z and A-Z, digits and `_`")
            }
            _ => None,
        };
        if help.is_some() && text.starts_with('#') {
            self.lexer.skip_line();
        } else {
            self.bad_tokens.push(token.span.end);
        }
        self.report(code, token.span, message, |d| d.help_if(help));
    }

    pub(super) fn report_misquoted(&mut self, span: Span) {
        let written = self.slice(span);
        let plain = if written.starts_with('\'') { "" } else { "plain " };
        let mut inner = written.chars();
        inner.next();
        inner.next_back();
        let inner = if inner.as_str().contains(['"', '\\']) { "…" } else { inner.as_str() };
        let message = format!("strings are written in {plain}double quotes");
        let help = format!("write `\"{inner}\"`");
        self.report(Code::UnexpectedCharacter, span, message, |d| d.help(help));
    }

    pub(super) fn report_open_string(&mut self, span: Span) {
        self.open_string.get_or_insert(self.lexer.suspect(span.start));
        self.bad_tokens.push(span.end);
        self.report(Code::UnterminatedString, span, "this string has no closing quote", |d| {
            d.help("close it with `\"`")
        });
    }

    /// Reports that the bracket at `open` is not closed where it should be.
    pub(super) fn unclosed(&mut self, open: Span, close: TokenKind) {
        let close = close.expected();
        let opening = self.slice(open);
        let place = self.place(open);
        self.missing(Code::Unclosed, close, |d| {
            d.related(place, format!("this `{opening}` is not closed")).help(format!("add {close}"))
        });
    }

    /// Reads entries up to the closing brace, and reports where that is missing.
    pub(super) fn braced(
        &mut self,
        open: Span,
        separators: &[TokenKind],
        is_cut_off: impl Fn(&Self) -> bool,
        mut entry: impl FnMut(&mut Self),
    ) -> Wholeness {
        loop {
            if self.eat(TokenKind::RBrace).is_some() {
                return Wholeness::Whole;
            } else if separators.contains(&self.kind()) {
                self.bump();
            } else if self.at(TokenKind::Eof) || is_cut_off(self) {
                self.unclosed(open, TokenKind::RBrace);
                return Wholeness::Broken;
            } else {
                entry(self);
            }
        }
    }

    /// Consumes one token, or a whole pair of brackets, remembering its words.
    pub(super) fn skip_brackets(&mut self) {
        let mut depth = 0_u32;
        loop {
            match self.kind() {
                TokenKind::Eof => return,
                TokenKind::LParen | TokenKind::LBrace | TokenKind::LBracket | TokenKind::HashBrace => {
                    depth += 1;
                }
                TokenKind::RParen | TokenKind::RBrace | TokenKind::RBracket => {
                    depth = depth.saturating_sub(1);
                }
                TokenKind::Ident => self.lost.push(self.slice(self.span())),
                TokenKind::OpenString => self.report_open_string(self.span()),
                _ => {}
            }
            self.bump();
            if depth == 0 {
                return;
            }
        }
    }

    /// How far the line of `span` is indented; nothing where the line is too long to look for its start.
    pub(super) fn indentation(&self, span: Span) -> usize {
        let end = span.start as usize;
        let before = &self.text.as_bytes()[end.saturating_sub(MAX_LINE_BYTES)..end];
        let line = match before.iter().rposition(|byte| *byte == b'\n') {
            Some(line_end) => &before[line_end + 1..],
            None if before.len() == end => before,
            None => return 0,
        };
        line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
    }

    /// At the first words of a declaration, wherever the parser is.
    pub(super) fn at_declaration(&self) -> bool {
        let named = self.ahead[1].kind == TokenKind::Ident;
        match self.word(0) {
            Word::Facet | Word::Workflow => named && self.ahead[2].kind == TokenKind::LParen,
            Word::Schema => named && self.ahead[2].kind == TokenKind::LBrace,
            Word::Event => self.word(1) == Word::Facet,
            Word::Implicit => named && self.ahead[2].kind == TokenKind::Assign,
            Word::Namespace => {
                is_segment(self.ahead[1].kind)
                    && matches!(self.ahead[2].kind, TokenKind::LBrace | TokenKind::Dot)
            }
            _ => false,
        }
    }

    /// At something that can only begin a statement, a clause or a declaration.
    pub(super) fn at_statement(&self) -> bool {
        let assigned = self.at(TokenKind::Ident) && self.ahead[1].kind == TokenKind::Assign;
        assigned && self.on_new_line()
            || self.at_yield()
            || self.at_declaration()
            || self.word(0) == Word::AndThen
    }

    pub(super) fn at_yield(&self) -> bool {
        self.word(0) == Word::Yield && self.ahead[1].kind == TokenKind::Ident
    }

    /// Skips the rest of a broken element of a list, up to its comma or the end of the list.
    pub(super) fn skip_element(&mut self) {
        loop {
            match self.kind() {
                TokenKind::Comma
                | TokenKind::RParen
                | TokenKind::RBracket
                | TokenKind::RBrace
                | TokenKind::LBrace
                | TokenKind::Eof => return,
                _ if self.at_statement() => return,
                _ => self.skip_brackets(),
            }
        }
    }

    /// Skips the rest of a broken statement.
    pub(super) fn skip_statement(&mut self) {
        loop {
            match self.kind() {
                TokenKind::RBrace | TokenKind::Semicolon | TokenKind::Eof => return,
                TokenKind::Ident if self.on_new_line() && self.starts_statement_line() => return,
                _ if self.at_declaration() => return,
                _ => self.skip_brackets(),
            }
        }
    }

    fn starts_statement_line(&self) -> bool {
        self.ahead[1].kind == TokenKind::Assign || self.at_yield() || self.word(0) == Word::Sys
    }

    pub(super) fn skip_line(&mut self) {
        self.skip_brackets();
        while !self.on_new_line() && !matches!(self.kind(), TokenKind::RBrace | TokenKind::Eof) {
            self.skip_brackets();
        }
    }

    /// Skips to the next declaration or the brace that ends the namespace.
    pub(super) fn skip_declaration(&mut self) {
        self.skip_brackets();
        while !self.at_declaration() && !matches!(self.kind(), TokenKind::RBrace | TokenKind::Eof) {
            if matches!(self.word(0), Word::Use | Word::Uses | Word::Namespace)
                && is_segment(self.ahead[1].kind)
                && self.on_new_line()
            {
                return;
            }
            self.skip_brackets();
        }
    }
}

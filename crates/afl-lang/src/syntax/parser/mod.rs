//! Recursive descent over the grammar, with recovery after every kind of broken part.

mod block;
mod body;
mod call;
mod expr;
mod item;
mod recover;
mod signature;

use std::borrow::Cow;

use super::ast::{Comment, CommentKind, Ident, ItemSyntax, QName, StringLit, SyntaxTree};
use super::lexer::Lexer;
use super::literal::{self, EscapeFault};
use super::token::{Token, TokenKind, Word};
use crate::code::Code;
use crate::diagnostic::{self, Diagnostic};
use crate::limits::{MAX_NESTING, MAX_SOURCE_BYTES};
use crate::source::{FileId, FileSpan, Span};

/// How often a text may be read in vain for the ends of its scripts.
const MAX_VAIN_READS: usize = 16;

/// The parser's result for one text.
#[derive(Debug)]
pub struct ParseResult<'s> {
    pub tree: SyntaxTree<'s>,
    /// In source order.
    pub diagnostics: Vec<Diagnostic>,
}

pub fn parse(file: FileId, text: &str) -> ParseResult<'_> {
    if text.len() > MAX_SOURCE_BYTES {
        return too_large(file, text);
    }
    let mut parser = Parser::new(file, text, None);
    parser.parse_file();
    // A string that swallows the rest of the file ends at the wrong quote: the one that lacks its
    // quote is most likely the last one before it that spans lines.
    if let Some(suspect) = parser.open_string {
        let mut again = Parser::new(file, text, Some(suspect));
        again.parse_file();
        if again.open_string.is_none_or(|other| other == suspect) {
            parser = again;
        }
    }
    parser.finish()
}

fn too_large(file: FileId, text: &str) -> ParseResult<'_> {
    let place = FileSpan { file, span: Span::new(0, 0) };
    let message = format!("this text has {} bytes; at most {MAX_SOURCE_BYTES} can be compiled", text.len());
    let diagnostic =
        Diagnostic::new(Code::SourceTooLarge, place, message).help("split it into several files");
    ParseResult { tree: SyntaxTree::default(), diagnostics: vec![diagnostic] }
}

#[derive(Default)]
struct Parser<'s> {
    file: FileId,
    text: &'s str,
    lexer: Lexer<'s>,
    /// The current token and the two behind it, comments left out.
    ahead: [Token; 3],
    /// Where the last consumed token ends.
    previous_end: u32,
    comments: Vec<Comment>,
    diagnostics: Vec<Diagnostic>,
    /// The ends of tokens that are no AFL; the parser reports no second error right behind one.
    bad_tokens: Vec<u32>,
    /// Where a string begins that is never closed.
    open_string: Option<u32>,
    items: Vec<ItemSyntax<'s>>,
    lost: Vec<&'s str>,
    /// How many scripts have been found to never end.
    open_scripts: u32,
    /// How many bytes may still be read in vain to find the ends of scripts.
    patience: usize,
    nesting: u32,
    /// How many `when` are open around the current token.
    whens: u32,
    /// How high the tree of the last parsed expression is.
    height: u32,
}

impl<'s> Parser<'s> {
    fn new(file: FileId, text: &'s str, open_string: Option<u32>) -> Self {
        let (lexer, patience) = (Lexer::new(text, open_string), text.len().saturating_mul(MAX_VAIN_READS));
        let mut parser = Self { file, text, lexer, patience, ..Self::default() };
        parser.refill();
        parser
    }

    fn finish(mut self) -> ParseResult<'s> {
        diagnostic::sort(&mut self.diagnostics);
        let tree = SyntaxTree { items: self.items, comments: self.comments, lost: self.lost };
        ParseResult { tree, diagnostics: self.diagnostics }
    }

    // Tokens.

    fn refill(&mut self) {
        self.ahead = [self.fetch(), self.fetch(), self.fetch()];
    }

    /// The next token that the grammar knows; comments are kept aside, the rest is reported.
    fn fetch(&mut self) -> Token {
        loop {
            let token = self.lexer.next_token();
            match token.kind {
                TokenKind::LineComment => {
                    self.comments.push(Comment { kind: CommentKind::Line, span: token.span });
                }
                TokenKind::BlockComment => {
                    self.comments.push(Comment { kind: CommentKind::Block, span: token.span });
                }
                TokenKind::DocComment => {
                    self.comments.push(Comment { kind: CommentKind::Doc, span: token.span });
                }
                TokenKind::OpenComment => self.report_bad_token(token, Code::UnterminatedComment),
                TokenKind::Unknown => self.report_bad_token(token, Code::UnexpectedCharacter),
                _ => return token,
            }
        }
    }

    fn bump(&mut self) -> Token {
        let token = self.ahead[0];
        self.previous_end = token.span.end;
        self.ahead = [self.ahead[1], self.ahead[2], self.fetch()];
        token
    }

    fn kind(&self) -> TokenKind {
        self.ahead[0].kind
    }

    fn span(&self) -> Span {
        self.ahead[0].span
    }

    fn slice(&self, span: Span) -> &'s str {
        &self.text[span.range()]
    }

    fn word(&self, ahead: usize) -> Word {
        self.ahead[ahead].word
    }

    /// The name at `ahead` as written; empty where there is no name.
    fn spelling(&self, ahead: usize) -> &'s str {
        match self.ahead[ahead].kind {
            TokenKind::Ident => self.slice(self.ahead[ahead].span),
            _ => "",
        }
    }

    fn at(&self, kind: TokenKind) -> bool {
        self.kind() == kind
    }

    /// At this word used as a keyword: a name would be followed by `=` or `:`.
    fn at_keyword(&self, keyword: Word) -> bool {
        self.word(0) == keyword && !matches!(self.ahead[1].kind, TokenKind::Assign | TokenKind::Colon)
    }

    fn eat(&mut self, kind: TokenKind) -> Option<Token> {
        self.at(kind).then(|| self.bump())
    }

    /// The span from `start` to the end of the last consumed token.
    fn since(&self, start: Span) -> Span {
        Span::new(start.start, self.previous_end.max(start.start))
    }

    /// A span for something that should stand at the current token.
    fn here(&self) -> Span {
        Span::new(self.span().start, self.span().start)
    }

    fn on_new_line(&self) -> bool {
        self.text[self.previous_end as usize..self.span().start as usize].contains('\n')
    }

    // Names and literals.

    fn ident(&mut self, what: &str) -> Option<Ident<'s>> {
        if self.at(TokenKind::Ident) {
            let span = self.bump().span;
            return Some(Ident { text: self.slice(span), span });
        }
        self.expected(what);
        None
    }

    /// A dotted name. Segments behind a dot may begin with a digit, because namespaces may.
    fn qualified(&mut self, what: &str) -> Option<QName<'s>> {
        let digits = is_segment(self.kind()) && self.ahead[1].kind == TokenKind::Dot;
        let first = if digits { self.segment() } else { self.ident(what)? };
        let mut span = first.span;
        let mut text = Cow::Borrowed(first.text);
        while self.at(TokenKind::Dot) && is_segment(self.ahead[1].kind) {
            let dot = self.bump().span;
            let segment = self.bump().span;
            if dot.start == span.end && segment.start == dot.end && matches!(text, Cow::Borrowed(_)) {
                text = Cow::Borrowed(self.slice(span.to(segment)));
            } else {
                let owned = text.to_mut();
                owned.push('.');
                owned.push_str(self.slice(segment));
            }
            span = span.to(segment);
        }
        Some(QName { text, span })
    }

    fn segment(&mut self) -> Ident<'s> {
        let span = self.bump().span;
        Ident { text: self.slice(span), span }
    }

    fn missing_name(&self) -> QName<'s> {
        QName { text: Cow::Borrowed(""), span: self.span() }
    }

    fn string(&mut self) -> Option<StringLit<'s>> {
        match self.kind() {
            TokenKind::String | TokenKind::TextBlock => {
                let span = self.bump().span;
                let literal = StringLit { raw: self.slice(span), span };
                self.report_faults(&literal);
                Some(literal)
            }
            TokenKind::OpenString => {
                let span = self.bump().span;
                self.report_open_string(span);
                None
            }
            TokenKind::Misquoted => {
                let span = self.bump().span;
                self.report_misquoted(span);
                None
            }
            _ => {
                self.expected("a string");
                None
            }
        }
    }

    fn report_faults(&mut self, literal: &StringLit<'s>) {
        if !literal.raw.contains('\\') {
            return;
        }
        for fault in literal::faults(literal) {
            match fault {
                EscapeFault::BadEscape(span) => {
                    let message = format!("`{}` is not a whole escape", self.slice(span));
                    self.report(Code::BadEscape, span, message, |d| {
                        d.help("write `\\u00e9` or `\\u{1F600}`")
                    });
                }
                EscapeFault::UnknownEscape(span) => {
                    let escape = self.slice(span);
                    let message = format!("`{escape}` is not an escape, so the backslash stays in the text");
                    let help = format!("write `\\{escape}` for a backslash, or leave the backslash out");
                    self.report(Code::UnknownEscape, span, message, |d| d.help(help));
                }
            }
        }
    }

    // Nesting.

    /// Runs `inner` one level deeper, or reports that this is too deep and skips the contents of the brackets.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.nesting >= MAX_NESTING {
            let span = self.span();
            let message = format!("this is nested more than {MAX_NESTING} levels deep");
            self.report(Code::TooDeep, span, message, |d| d.help("give a part of it a name of its own"));
            self.skip_brackets();
            return None;
        }
        self.nesting += 1;
        let result = inner(self);
        self.nesting -= 1;
        Some(result)
    }
}

fn is_segment(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Ident | TokenKind::Int | TokenKind::Double | TokenKind::NumberWord)
}

#[cfg(test)]
mod tests;

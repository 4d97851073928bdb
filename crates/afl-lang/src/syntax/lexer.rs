//! Text to tokens, one at a time: the parser decides when braces hold a script instead of AFL.

use super::token::{Token, TokenKind, Word};
use crate::operator::OperatorSymbol;
use crate::source::Span;

/// Quotes that word processors make; all begin with the same byte.
const CURLY_QUOTES: &[char] = &['“', '”', '„', '‘', '’', '‚'];

#[derive(Clone, Debug, Default)]
pub struct Lexer<'s> {
    text: &'s str,
    bytes: &'s [u8],
    at: usize,
    /// Where a string begins that is known to lack its closing quote; it ends with its line.
    open_string: Option<u32>,
    /// Where the last string that spans lines begins: the likely culprit when a later one never ends.
    multi_line: Option<u32>,
    /// How many strings and comments have been found to never end.
    open_ends: u32,
}

/// After so many strings and comments without an end no more ends are looked for beyond the line: each
/// search costs the rest of the text.
const MAX_OPEN_ENDS: u32 = 16;

impl<'s> Lexer<'s> {
    pub fn new(text: &'s str, open_string: Option<u32>) -> Self {
        let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self { text, bytes: text.as_bytes(), at, open_string, ..Self::default() }
    }

    pub fn offset(&self) -> u32 {
        self.at as u32
    }

    pub fn seek(&mut self, offset: u32) {
        self.at = offset as usize;
    }

    /// Where a string begins that most likely lacks its closing quote, given that one at `start` does.
    pub fn suspect(&self, start: u32) -> u32 {
        self.multi_line.unwrap_or(start)
    }

    /// The next token, comments included. At the end: `Eof`, again and again.
    pub fn next_token(&mut self) -> Token {
        self.skip_blanks();
        let start = self.at;
        let kind = self.scan();
        let word = match kind {
            TokenKind::Ident => Word::of(&self.text[start..self.at]),
            _ => Word::Other,
        };
        Token { kind, word, span: Span::new(start as u32, self.at as u32) }
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(0), b' ' | b'\n' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    /// The byte `ahead` of the current one; zero past the end.
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn scan(&mut self) -> TokenKind {
        let Some(first) = self.bytes.get(self.at).copied() else { return TokenKind::Eof };
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                self.skip_word();
                TokenKind::Ident
            }
            b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b'\'' => self.misquoted(&['\'']),
            0xe2 => self.misquoted(CURLY_QUOTES),
            b'/' if self.peek(1) == b'/' => {
                self.skip_line();
                TokenKind::LineComment
            }
            b'/' if self.peek(1) == b'*' => self.block_comment(),
            _ => self.punctuation(first),
        }
    }

    fn skip_word(&mut self) {
        while is_word(self.peek(0)) {
            self.at += 1;
        }
    }

    fn number(&mut self) -> TokenKind {
        let mut kind = TokenKind::Int;
        self.skip_digits();
        if self.peek(0) == b'.' && self.peek(1).is_ascii_digit() {
            kind = TokenKind::Double;
            self.at += 1;
            self.skip_digits();
        }
        let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
        if matches!(self.peek(0), b'e' | b'E') && self.peek(1 + sign).is_ascii_digit() {
            kind = TokenKind::Double;
            self.at += 1 + sign;
            self.skip_digits();
        }
        if is_word(self.peek(0)) {
            self.skip_word();
            kind = TokenKind::NumberWord;
        }
        kind
    }

    fn skip_digits(&mut self) {
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    fn string(&mut self) -> TokenKind {
        let start = self.at;
        if self.open_string == Some(start as u32) {
            return self.cut_at_line_end();
        }
        let one_line = self.open_ends >= MAX_OPEN_ENDS;
        if !one_line && self.bytes[start..].starts_with(br#"""""#) {
            return self.text_block();
        }
        self.at += 1;
        let mut lines = false;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => self.at += 1,
                Some(b'\n') if !one_line => lines = true,
                None | Some(b'\n') => {
                    self.at = start;
                    return self.cut_at_line_end();
                }
                Some(_) => {}
            }
            self.at += 1;
        }
        self.at += 1;
        if lines {
            self.multi_line = Some(start as u32);
        }
        TokenKind::String
    }

    fn text_block(&mut self) -> TokenKind {
        let start = self.at;
        self.at += 3;
        while self.at < self.bytes.len() {
            if self.bytes[self.at..].starts_with(br#"""""#) {
                self.at += 3;
                return TokenKind::TextBlock;
            }
            self.at += if self.bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at = start;
        self.cut_at_line_end()
    }

    fn cut_at_line_end(&mut self) -> TokenKind {
        self.open_ends += 1;
        self.skip_line();
        TokenKind::OpenString
    }

    /// To the line feed, or to the end of the text.
    pub fn skip_line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }

    /// A string in one of these quotes, closed on its line.
    fn misquoted(&mut self, quotes: &[char]) -> TokenKind {
        let rest = &self.text[self.at..];
        let Some(behind) = rest.strip_prefix(quotes) else { return self.unknown() };
        // Up to the nearest quote, and no further: a line may be as long as the text.
        let stop = behind.find(|c: char| c == '\n' || quotes.contains(&c));
        let close = stop.and_then(|at| behind[at..].chars().next().map(|c| (at, c)));
        match close {
            Some((at, quote)) if quote != '\n' => {
                self.at += rest.len() - behind.len() + at + quote.len_utf8();
                TokenKind::Misquoted
            }
            _ => self.unknown(),
        }
    }

    fn block_comment(&mut self) -> TokenKind {
        let rest = &self.bytes[self.at + 2..];
        // `/**/` is an empty comment, not the start of a doc comment.
        let kind = match rest {
            [b'*', b'/', ..] => TokenKind::BlockComment,
            [b'*', ..] => TokenKind::DocComment,
            _ => TokenKind::BlockComment,
        };
        let search = if self.open_ends < MAX_OPEN_ENDS { rest } else { &[] };
        if let Some(length) = search.windows(2).position(|pair| pair == b"*/") {
            self.at += length + 4;
            return kind;
        }
        self.open_ends += 1;
        self.skip_line();
        TokenKind::OpenComment
    }

    fn punctuation(&mut self, first: u8) -> TokenKind {
        use TokenKind as T;
        let (kind, length) = match (first, self.peek(1)) {
            (b'(', _) => (T::LParen, 1),
            (b')', _) => (T::RParen, 1),
            (b'{', _) => (T::LBrace, 1),
            (b'}', _) => (T::RBrace, 1),
            (b'[', _) => (T::LBracket, 1),
            (b']', _) => (T::RBracket, 1),
            (b'#', b'{') => (T::HashBrace, 2),
            (b',', _) => (T::Comma, 1),
            (b';', _) => (T::Semicolon, 1),
            (b':', _) => (T::Colon, 1),
            (b'.', _) => (T::Dot, 1),
            (b'$', _) => (T::Dollar, 1),
            (b'?', _) => (T::Question, 1),
            (b'=', b'>') => (T::Arrow, 2),
            _ => match OperatorSymbol::at_start_of(&self.text[self.at..]) {
                Some((symbol, length)) => (T::Operator(symbol), length),
                None if first == b'=' => (T::Assign, 1),
                None => return self.unknown(),
            },
        };
        self.at += length;
        kind
    }

    /// A run of characters that no token begins with, so that garbage is one mistake, not hundreds.
    fn unknown(&mut self) -> TokenKind {
        let rest = &self.text[self.at..];
        let mut characters = rest.chars();
        let first = characters.next().map_or(0, char::len_utf8);
        let more: usize = characters
            .take_while(|c| !c.is_ascii() || c.is_control() && !c.is_whitespace())
            .map(char::len_utf8)
            .sum();
        self.at += first
            + if rest.is_char_boundary(first) && !rest.as_bytes()[0].is_ascii_graphic() { more } else { 0 };
        TokenKind::Unknown
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

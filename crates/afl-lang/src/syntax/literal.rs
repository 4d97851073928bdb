//! The meaning of string literals: escapes, and the indentation of text blocks.

use std::borrow::Cow;

use super::ast::StringLit;
use crate::source::Span;

/// A fault in a literal; the span is in the source text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EscapeFault {
    /// `\u` without the digits of a character.
    BadEscape(Span),
    /// A backslash before a character that needs none; both are kept.
    UnknownEscape(Span),
}

/// The text that a literal stands for.
pub fn value<'s>(literal: &StringLit<'s>) -> Cow<'s, str> {
    match content(literal.raw) {
        LiteralContent::Quoted(text) if !text.contains('\\') => Cow::Borrowed(text),
        LiteralContent::Quoted(text) => Cow::Owned(unescape(text, 0, &mut Vec::new())),
        LiteralContent::Block(text) => Cow::Owned(unescape(&strip_indentation(text), 0, &mut Vec::new())),
    }
}

pub fn faults(literal: &StringLit<'_>) -> Vec<EscapeFault> {
    let (text, offset) = match content(literal.raw) {
        LiteralContent::Quoted(text) => (text, 1),
        LiteralContent::Block(text) => (text, 3),
    };
    let mut faults = Vec::new();
    if text.contains('\\') {
        unescape(text, literal.span.start + offset, &mut faults);
    }
    faults
}

enum LiteralContent<'s> {
    Quoted(&'s str),
    Block(&'s str),
}

fn content(raw: &str) -> LiteralContent<'_> {
    let block = raw.strip_prefix(r#"""""#).and_then(|rest| rest.strip_suffix(r#"""""#));
    match block {
        Some(text) => LiteralContent::Block(text),
        None => LiteralContent::Quoted(
            raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(raw),
        ),
    }
}

fn unescape(text: &str, offset: u32, faults: &mut Vec<EscapeFault>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(backslash) = rest.find('\\') {
        result.push_str(&rest[..backslash]);
        let escape = &rest[backslash..];
        let start = offset + (text.len() - escape.len()) as u32;
        let length = match read_escape(escape) {
            Escape::Character(character, length) => {
                result.push(character);
                length
            }
            Escape::Unknown(length) => {
                faults.push(EscapeFault::UnknownEscape(Span::new(start, start + length as u32)));
                result.push_str(&escape[..length]);
                length
            }
            Escape::Bad(length) => {
                faults.push(EscapeFault::BadEscape(Span::new(start, start + length as u32)));
                length
            }
        };
        rest = &escape[length..];
    }
    result.push_str(rest);
    result
}

enum Escape {
    Character(char, usize),
    Unknown(usize),
    Bad(usize),
}

fn read_escape(escape: &str) -> Escape {
    let character = match escape[1..].chars().next() {
        Some('\\') => '\\',
        Some('"') => '"',
        Some('/') => '/',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('0') => '\0',
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('u') => return read_unicode(escape),
        Some(other) => return Escape::Unknown(1 + other.len_utf8()),
        None => return Escape::Unknown(1),
    };
    Escape::Character(character, 2)
}

fn read_unicode(escape: &str) -> Escape {
    let digits = &escape[2..];
    let (hex, length) = if let Some(braced) = digits.strip_prefix('{') {
        match braced.find(|c: char| !c.is_ascii_hexdigit()) {
            Some(end @ 1..=6) if braced[end..].starts_with('}') => (&braced[..end], end + 4),
            end => return Escape::Bad(3 + end.unwrap_or(braced.len())),
        }
    } else {
        match digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len()) {
            found @ 0..4 => return Escape::Bad(2 + found),
            _ => (&digits[..4], 6),
        }
    };
    let code = u32::from_str_radix(hex, 16).ok();
    // JSON writes characters beyond the first plane as a pair of surrogates.
    if let (Some(high @ 0xd800..0xdc00), Some(low)) = (code, low_surrogate(&escape[length..])) {
        let pair = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        if let Some(character) = char::from_u32(pair) {
            return Escape::Character(character, length + 6);
        }
    }
    match code.and_then(char::from_u32) {
        Some(character) => Escape::Character(character, length),
        None => Escape::Bad(length),
    }
}

fn low_surrogate(text: &str) -> Option<u32> {
    let low = u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()?;
    (0xdc00..0xe000).contains(&low).then_some(low)
}

/// Drops the line break behind the opening quotes, the blanks that all lines share, and blanks at line
/// ends. The line of the closing quotes counts for the shared blanks, as in Java.
fn strip_indentation(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let Some((first, body)) = text.split_once('\n') else { return text };
    if !first.trim().is_empty() {
        return text;
    }
    let lines: Vec<&str> = body.split('\n').collect();
    let last = lines.len() - 1;
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let counted = lines.iter().enumerate().filter(|(at, line)| *at == last || !line.trim().is_empty());
    let shared = counted.map(|(_, line)| indent(line)).min().unwrap_or(0);
    let strip = |line: &&str| line.get(shared..).unwrap_or_default().trim_end_matches([' ', '\t']).to_owned();
    lines.iter().map(strip).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, expected: &str) {
        let literal = StringLit { raw, span: Span::new(0, raw.len() as u32) };
        assert_eq!(value(&literal), expected);
        assert_eq!(faults(&literal), []);
    }

    fn check_faults(raw: &str, expected: &[EscapeFault]) {
        assert_eq!(faults(&StringLit { raw, span: Span::new(10, 10 + raw.len() as u32) }), expected);
    }

    #[test]
    fn escapes_stand_for_their_characters() {
        check(r#""a\n\t\"\\\/\u00e9\u{1F600}\0""#, "a\n\t\"\\/é😀\0");
        check(r#""\ud83d\ude00!""#, "😀!");
    }

    #[test]
    fn a_text_block_loses_the_indentation_its_lines_share() {
        check("\"\"\"\n    one\n      two\n\n    three\n    \"\"\"", "one\n  two\n\nthree\n");
        check("\"\"\"\n    one\n    two\"\"\"", "one\ntwo");
        check(r#""""same line""""#, "same line");
    }

    #[test]
    fn faults_have_the_span_of_the_escape() {
        check_faults(r#""\u12""#, &[EscapeFault::BadEscape(Span::new(11, 15))]);
        check_faults(r#""a\u{zz}""#, &[EscapeFault::BadEscape(Span::new(12, 15))]);
        check_faults(r#""\ud83d""#, &[EscapeFault::BadEscape(Span::new(11, 17))]);
        check_faults(r#""a\qb""#, &[EscapeFault::UnknownEscape(Span::new(12, 14))]);
    }
}

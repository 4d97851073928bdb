//! One slip gives one message: what happens when a single token of an example is missing.

#![expect(clippy::disallowed_methods, reason = "the crate reads no file, its tests read fixtures")]

mod fixture;

use std::ops::Range;

use afl_lang::Validation;
use afl_lang::source::Sources;

/// Of a hundred slips so many give at most one error. The rest are read another way than they were
/// meant: without the `}` before it, `andThen` belongs to the step above.
const MIN_PERCENT: usize = 96;
const MAX_ERRORS: usize = 8;

/// The marks of two characters.
const MARKS: [&str; 7] = ["=>", "==", "<=", "++", "&&", "||", "#{"];

#[test]
fn a_missing_token_gives_one_error() {
    let (mut slips, mut single) = (0, 0);
    for example in fixture::read("../../examples", "afl") {
        for token in tokens(&example.text) {
            let (before, after) = (&example.text[..token.start], &example.text[token.end..]);
            let sources = Sources::one("slip.afl", format!("{before} {after}"));
            let diagnostics = afl_lang::compile(&sources, Validation::Require).diagnostics;
            let errors = diagnostics.iter().filter(|one| one.is_error()).count();
            let slip = &example.text[token];
            assert!(errors <= MAX_ERRORS, "{errors} errors in {} without {slip}", example.name);
            slips += 1;
            single += usize::from(errors <= 1);
        }
    }
    assert!(single * 100 >= slips * MIN_PERCENT, "only {single} of {slips} slips give one error");
}

/// Where words, numbers and marks are; comments and the insides of strings are left out.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let through = |start: &str, end: &str| {
            let inner = &rest[start.len()..];
            start.len() + inner.find(end).map_or(inner.len(), |found| found + end.len())
        };
        let (length, is_token) = match first {
            _ if rest.starts_with("//") => (through("//", "\n"), false),
            _ if rest.starts_with("/*") => (through("/*", "*/"), false),
            _ if rest.starts_with("\"\"\"") => (through("\"\"\"", "\"\"\""), true),
            '"' => (through("\"", "\""), true),
            _ if MARKS.iter().any(|mark| rest.starts_with(mark)) => (2, true),
            _ if is_word(first) => (rest.find(|c| !is_word(c)).unwrap_or(rest.len()), true),
            _ => (first.len_utf8(), !first.is_whitespace()),
        };
        if is_token {
            tokens.push(at..at + length);
        }
        at += length;
    }
    tokens
}

//! Splits Rust text into code and comments without parsing it.
//!
//! Both layers keep every line and column, so that a place found in one is a place in the file.

use std::ops::Range;

pub(super) struct Layers {
    pub(super) code: String,
    pub(super) comments: String,
    /// Where the contents of each string literal stand.
    pub(super) strings: Vec<Range<usize>>,
}

pub(super) fn split(text: &str) -> Layers {
    let mut layers = Layers { code: String::new(), comments: String::new(), strings: Vec::new() };
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, length) = first_piece(rest);
        let (head, tail) = rest.split_at(length);
        match piece {
            Piece::Code => {
                layers.code.push_str(head);
                blank(head, &mut layers.comments);
            }
            Piece::Comment => {
                blank(head, &mut layers.code);
                layers.comments.push_str(head);
            }
            Piece::Literal { quote } => {
                let contents = contents(head, quote);
                if quote == STRING_QUOTE {
                    let start = layers.code.len();
                    layers.strings.push(start + contents.start..start + contents.end);
                }
                layers.code.push_str(&head[..contents.start]);
                blank(&head[contents.clone()], &mut layers.code);
                layers.code.push_str(&head[contents.end..]);
                blank(head, &mut layers.comments);
            }
        }
        rest = tail;
    }
    layers
}

const STRING_QUOTE: char = '"';

#[derive(Clone, Copy)]
enum Piece {
    Code,
    Comment,
    Literal { quote: char },
}

/// The kind and the length in bytes of the piece at the start of `rest`, which is not empty.
fn first_piece(rest: &str) -> (Piece, usize) {
    if rest.starts_with("//") {
        return (Piece::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Piece::Comment, block_comment_length(rest));
    }
    if let Some(length) = string_length(rest) {
        return (Piece::Literal { quote: STRING_QUOTE }, length);
    }
    if let Some(length) = char_length(rest) {
        return (Piece::Literal { quote: '\'' }, length);
    }
    // A whole identifier, so that the `r` at the end of `for` never opens a raw string.
    let word = rest.strip_prefix("r#").unwrap_or(rest);
    let word_length = word.find(|letter| !is_word(letter)).unwrap_or(word.len());
    if word_length > 0 {
        return (Piece::Code, rest.len() - word.len() + word_length);
    }
    (Piece::Code, rest.chars().next().map_or(0, char::len_utf8))
}

pub(crate) fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(found) = rest[at..].find(['/', '*']) {
        at += found;
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn string_length(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        rest.strip_prefix(prefix).is_some_and(|after| {
            let after = if prefix.ends_with('r') { after.trim_start_matches('#') } else { after };
            after.starts_with('"')
        })
    })?;
    let opening = rest.find('"')? + 1;
    let contents = &rest[opening..];
    if prefix.ends_with('r') {
        let closing = format!("\"{}", "#".repeat(opening - 1 - prefix.len()));
        return Some(contents.find(&closing).map_or(rest.len(), |at| opening + at + closing.len()));
    }
    Some(opening + escaped_length(contents, '"').unwrap_or(contents.len()))
}

/// A lifetime opens with the same quote, but no quote follows its first letter.
fn char_length(rest: &str) -> Option<usize> {
    let contents = rest.strip_prefix('\'')?;
    let first = contents.chars().next()?;
    let after_first = &contents[first.len_utf8()..];
    match first {
        '\\' => escaped_length(contents, '\'').map(|length| length + 1),
        _ if after_first.starts_with('\'') => Some(first.len_utf8() + 2),
        _ => None,
    }
}

/// The length up to and including the first `quote` that no backslash escapes.
fn escaped_length(contents: &str, quote: char) -> Option<usize> {
    let mut letters = contents.char_indices();
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == quote {
            return Some(at + 1);
        }
    }
    None
}

/// Where the text between the quotes of a literal stands in it.
fn contents(literal: &str, quote: char) -> Range<usize> {
    let opening = literal.find(quote).map_or(0, |at| at + 1);
    let closing = literal[opening..].rfind(quote).map_or(literal.len(), |at| opening + at);
    opening..closing
}

fn blank(text: &str, into: &mut String) {
    for letter in text.chars() {
        match letter {
            '\n' => into.push('\n'),
            _ => into.extend(std::iter::repeat_n(' ', letter.len_utf8())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, code: &str, comments: &str) {
        let layers = split(text);
        assert_eq!(layers.code, code);
        assert_eq!(layers.comments, comments);
    }

    #[test]
    fn comments_leave_the_code() {
        check("a // b\nc", "a     \nc", "  // b\n ");
        check("a /* b /* c */ */ d", "a                 d", "  /* b /* c */ */  ");
    }

    #[test]
    fn literals_keep_their_quotes_only() {
        check(r#"x == "a\"b" // c"#, r#"x == "    "     "#, "            // c");
        check(r##"r#"a"b"# + 1"##, r##"r#"   "# + 1"##, "            ");
        check("('\"', '\\'', 'é')", "(' ', '  ', '  ')", "                 ");
    }

    #[test]
    fn a_lifetime_opens_no_literal() {
        check("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}", &" ".repeat(23));
    }

    #[test]
    fn an_unterminated_literal_reaches_the_end() {
        check("a \"b\nc", "a \" \n ", "    \n ");
    }
}

//! Finds the end of a script body in braces.

use super::token::Word;

/// The length of the body behind an opening brace, up to its closing brace; `None` if it never closes.
///
/// Braces nest. In Python, braces in strings and comments do not count, unless counting them is the
/// only way to find an end, or the comment ends a script of one line. `patience` is how many bytes may
/// still be read as Python in vain.
pub(super) fn body_length(text: &str, language: Option<&str>, patience: &mut usize) -> Option<usize> {
    let is_python = matches!(language, None | Some("python"));
    if is_python && *patience > 0 {
        match python_length(text.as_bytes()) {
            Ok(length) => return Some(length),
            Err(NoEnd { read }) => *patience = patience.saturating_sub(read),
        }
    }
    plain_length(text.as_bytes())
}

/// No closing brace was found in so many bytes.
struct NoEnd {
    read: usize,
}

/// How far a body without an end most likely goes: to the first line that begins a declaration.
pub(super) fn until_declaration(text: &str) -> usize {
    let mut lines = text.split_inclusive('\n');
    let mut length = lines.next().map_or(0, str::len);
    for line in lines {
        if begins_declaration(line.trim_start()) {
            break;
        }
        length += line.len();
    }
    length
}

fn begins_declaration(line: &str) -> bool {
    let Some((word, rest)) = line.split_once(' ') else { return false };
    let declares = match Word::of(word) {
        Word::Namespace | Word::Facet | Word::Workflow | Word::Schema | Word::Implicit => true,
        Word::Event => rest.starts_with("facet "),
        _ => false,
    };
    declares && rest.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn plain_length(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn python_length(bytes: &[u8]) -> Result<usize, NoEnd> {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'{' => depth += 1,
            b'}' if depth == 0 => return Ok(at),
            b'}' => depth -= 1,
            b'#' => {
                let line =
                    bytes[at..].split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
                // A comment behind a script of one line must not hide its closing brace.
                if depth == 0 && line.ends_with(b"}") && !bytes[..at].contains(&b'\n') {
                    return Ok(at + line.len() - 1);
                }
                at += bytes[at..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len() - at);
            }
            quote @ (b'"' | b'\'') => at = string_end(bytes, at, quote)?,
            _ => {}
        }
        at += 1;
    }
    Err(NoEnd { read: bytes.len() })
}

/// The position of the last quote of the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize, quote: u8) -> Result<usize, NoEnd> {
    let triple = bytes[start..].starts_with(&[quote; 3]);
    let mut at = start + if triple { 3 } else { 1 };
    loop {
        match *bytes.get(at).ok_or(NoEnd { read: bytes.len() })? {
            b'\\' => at += 1,
            b'\n' if !triple => return Err(NoEnd { read: at }),
            byte if byte == quote && !triple => return Ok(at),
            byte if byte == quote && bytes[at..].starts_with(&[quote; 3]) => return Ok(at + 2),
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, language: Option<&str>, body: Option<&str>) {
        let mut patience = usize::MAX;
        let length = body_length(text, language, &mut patience);
        assert_eq!(length.map(|length| &text[..length]), body, "{text}");
    }

    #[test]
    fn reading_python_in_vain_uses_patience_up() {
        let mut patience = 20;
        for left in [9, 0, 0] {
            assert_eq!(body_length(" {'}' } '}'", None, &mut patience), Some(6));
            assert_eq!(patience, left);
        }
    }

    #[test]
    fn braces_nest() {
        check(" a = {1: {2}} } tail", None, Some(" a = {1: {2}} "));
        check(" f({) ", None, None);
    }

    #[test]
    fn a_body_without_an_end_goes_to_the_next_declaration() {
        let body = "\n  event = 1\n  facet = 2\n";
        for next in ["event facet F()", "workflow W()", "  namespace a {"] {
            assert_eq!(until_declaration(&format!("{body}{next}\n")), body.len(), "{next}");
        }
        assert_eq!(until_declaration(body), body.len());
    }

    #[test]
    fn braces_in_python_strings_and_comments_do_not_count() {
        check(
            "\n x = '}' # don't }\n y = \"\"\"}\"\"\" } tail",
            None,
            Some("\n x = '}' # don't }\n y = \"\"\"}\"\"\" "),
        );
        check(" # it's fine } tail", None, Some(" # it's fine "));
        check(" x # note }\n // it's AFL\n facet F() andThen { }", None, Some(" x # note "));
        check(" let s = '{'; } }", Some("js"), Some(" let s = '{'; } "));
    }
}

//! Damage to texts: tokens and bytes removed, repeated, swapped, replaced and cut off.

use afl_lang::syntax::lexer::Lexer;
use afl_lang::syntax::token::TokenKind;

use super::dice::Dice;

/// The words that the damage puts in: each means something somewhere.
const WORDS: [&str; 60] = [
    "namespace",
    "use",
    "facet",
    "event facet",
    "workflow",
    "schema",
    "implicit",
    "test",
    "with",
    "as",
    "andThen",
    "foreach",
    "in",
    "when",
    "case",
    "_",
    "catch",
    "script",
    "prompt",
    "yield",
    "sys.log(",
    "sys.assert(",
    "not",
    "contains",
    "startsWith",
    "true",
    "null",
    "$",
    "$.",
    ".",
    ",",
    ";",
    ":",
    "=",
    "=>",
    "==",
    "++",
    "+",
    "-",
    "!",
    "*",
    "/",
    "%",
    "&&",
    "||",
    "<",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "#{",
    "\"",
    "\"\"\"",
    "\\",
    "//",
    "/*",
    "*/",
    "'",
];

/// Pieces that are odd anywhere.
const ODDITIES: [&str; 16] = [
    "é",
    "🦀",
    "\u{feff}",
    "\0",
    "\r",
    "\u{2028}",
    "9223372036854775808",
    "1e999",
    "4b",
    "\"\\u12\"",
    "\"\\ud83d\"",
    "\"\\q\"",
    "§",
    "0x1F",
    "->",
    "#",
];

/// The texts that may stand between any two tokens without a change to the program.
const FILLERS: [&str; 10] = [
    " ",
    "\n",
    "\n\n\n",
    "\r\n",
    " // line\n",
    "\n// own line\n",
    " /* block */",
    "\n/* own block */\n",
    " /* over\n   lines */ ",
    "\n\n/**\n   * doc\n   */\n",
];

/// The same program in another layout, if scripts are spared.
pub(crate) fn relaid(text: &str, dice: &mut Dice<'_>) -> String {
    let mut tokens = tokens(text);
    for _ in 0..=dice.below(6) {
        let at = dice.below(tokens.len() + 1);
        tokens.insert(at, dice.pick(&FILLERS));
    }
    tokens.concat()
}

/// A text with one to four damages.
pub(crate) fn damaged(text: &str, dice: &mut Dice<'_>) -> String {
    (0..=dice.below(4)).fold(text.to_owned(), |text, _| damage(&text, dice))
}

fn damage(text: &str, dice: &mut Dice<'_>) -> String {
    match dice.below(3) {
        0 => damage_bytes(text, dice),
        _ => damage_tokens(text, dice),
    }
}

fn damage_tokens(text: &str, dice: &mut Dice<'_>) -> String {
    let mut tokens = tokens(text);
    if tokens.is_empty() {
        return dice.pick(&WORDS).to_owned();
    }
    let at = dice.below(tokens.len());
    match dice.below(7) {
        0 => {
            tokens.remove(at);
        }
        1 => tokens.insert(at, tokens[at]),
        2 => {
            let other = dice.below(tokens.len());
            tokens.swap(at, other);
        }
        3 => tokens[at] = dice.pick(&WORDS),
        4 => tokens.insert(at, dice.pick(&WORDS)),
        5 => tokens.insert(at, dice.pick(&ODDITIES)),
        // Brackets that are closed too early or too late make all that follows odd.
        _ => {
            let end = tokens.len().min(at + 1 + dice.below(8));
            tokens.drain(at..end);
        }
    }
    tokens.concat()
}

/// The tokens and the texts between them.
fn tokens(text: &str) -> Vec<&str> {
    let mut lexer = Lexer::new(text, None);
    let mut tokens = Vec::new();
    let mut end = 0;
    loop {
        let token = lexer.next_token();
        let span = token.span.range();
        tokens.extend(
            [&text[end..span.start], &text[span.clone()]].into_iter().filter(|part| !part.is_empty()),
        );
        end = span.end;
        if token.kind == TokenKind::Eof {
            return tokens;
        }
    }
}

fn damage_bytes(text: &str, dice: &mut Dice<'_>) -> String {
    String::from_utf8_lossy(&bytes(text.as_bytes(), dice)).into_owned()
}

/// Bytes with one damage.
pub(crate) fn bytes(bytes: &[u8], dice: &mut Dice<'_>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.is_empty() {
        return dice.pick(&WORDS).into();
    }
    let start = dice.below(bytes.len());
    let end = bytes.len().min(start + 1 + dice.below(16));
    match dice.below(6) {
        0 => {
            bytes.drain(start..end);
        }
        1 => {
            let part = bytes[start..end].to_vec();
            let to = dice.below(bytes.len());
            bytes.splice(to..to, part);
        }
        2 => bytes[start] = dice.below(256) as u8,
        3 => bytes[start] ^= 1 << dice.below(8),
        4 => bytes.truncate(start),
        _ => {
            let other = dice.below(bytes.len());
            bytes.swap(start, other);
        }
    }
    bytes
}

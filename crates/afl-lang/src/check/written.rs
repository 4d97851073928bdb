//! An expression as text, the same however it was laid out.

use crate::syntax::lexer::Lexer;
use crate::syntax::token::{Token, TokenKind as T, Word};

/// The tokens of `source` with the blanks of the canonical style, comments and trailing commas left out.
pub(super) fn written(source: &str) -> String {
    let mut lexer = Lexer::new(source, None);
    let tokens = std::iter::from_fn(|| Some(lexer.next_token()).filter(|token| token.kind != T::Eof));
    let tokens: Vec<_> = tokens
        .filter(|token| !matches!(token.kind, T::LineComment | T::BlockComment | T::DocComment))
        .collect();
    let mut text = String::with_capacity(source.len());
    for (at, token) in tokens.iter().enumerate() {
        let closes =
            tokens.get(at + 1).is_some_and(|next| matches!(next.kind, T::RParen | T::RBracket | T::RBrace));
        if token.kind == T::Comma && closes {
            continue;
        }
        let sign = at >= 1 && is_sign(tokens[at - 1].kind) && (at < 2 || ends_operator(tokens[at - 2].kind));
        let glued = at == 0 || sign || opens(tokens[at - 1].kind) || clings(token.kind, tokens[at - 1]);
        if !glued {
            text.push(' ');
        }
        text.push_str(&source[token.span.range()]);
    }
    text
}

/// Nothing stands between it and what follows.
fn opens(kind: T) -> bool {
    matches!(kind, T::LParen | T::LBracket | T::HashBrace | T::Dollar | T::Dot | T::Bang)
}

/// Nothing stands between it and what is before it.
fn clings(kind: T, before: Token) -> bool {
    let operator = matches!(before.word, Word::In | Word::Contains | Word::StartsWith | Word::EndsWith);
    let value = matches!(before.kind, T::Ident | T::RParen | T::RBracket | T::String) && !operator;
    matches!(kind, T::RParen | T::RBracket | T::RBrace | T::Comma | T::Dot | T::Colon)
        || kind == T::LBracket && value
}

fn is_sign(kind: T) -> bool {
    matches!(kind, T::Minus | T::Plus)
}

/// Behind it a sign belongs to what follows.
fn ends_operator(kind: T) -> bool {
    !matches!(
        kind,
        T::Ident | T::Int | T::Double | T::String | T::TextBlock | T::RParen | T::RBracket | T::RBrace
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_does_not_show() {
        let check = |source: &str, expected: &str| assert_eq!(written(source), expected);
        check("$.n>0 /* more */\n  && ! ( a . b [ 0 ]==- 1 )", "$.n > 0 && !(a.b[0] == -1)");
        check("x in [ 1,2 , ]", "x in [1, 2]");
        check("s startsWith \"a  b\"", "s startsWith \"a  b\"");
    }
}

//! The kinds of tokens, and what messages call them.

use crate::source::Span;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind {
    Ident,
    Int,
    Double,
    /// Digits with letters behind them: a namespace segment such as `4b`, and nothing else.
    NumberWord,
    String,
    TextBlock,
    /// A string that reaches the end of the text, cut off at the end of its line.
    OpenString,
    /// `'…'`, which is no AFL.
    SingleQuoted,
    LineComment,
    BlockComment,
    DocComment,
    OpenComment,
    LParen,
    RParen,
    LBrace,
    RBrace,
    LBracket,
    RBracket,
    HashBrace,
    Comma,
    Semicolon,
    Colon,
    Dot,
    Dollar,
    Question,
    Arrow,
    Assign,
    EqualEqual,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Plus,
    PlusPlus,
    Minus,
    Star,
    Slash,
    Percent,
    Bang,
    AndAnd,
    OrOr,
    Unknown,
    Eof,
}

impl TokenKind {
    /// How a message names a token that it expects.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Ident => "a name",
            Self::LParen => "`(`",
            Self::RParen => "`)`",
            Self::LBrace => "`{`",
            Self::RBrace => "`}`",
            Self::RBracket => "`]`",
            Self::Colon => "`:`",
            Self::Assign => "`=`",
            Self::Arrow => "`=>`",
            _ => unreachable!("no rule of the grammar expects a lone {self:?}"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

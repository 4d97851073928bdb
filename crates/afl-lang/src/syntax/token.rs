//! The kinds of tokens, and what messages call them.

use crate::operator::{BinaryOp, OperatorSymbol, UnaryOp};
use crate::source::Span;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
    /// `'…'` or `“…”`, which is no AFL.
    Misquoted,
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
    /// An operator in symbols; those in words are an `Ident` until the parser expects one.
    Operator(OperatorSymbol),
    Unknown,
    #[default]
    Eof,
}

impl TokenKind {
    pub(super) const MINUS: Self = Self::Operator(OperatorSymbol::Binary(BinaryOp::Subtract));
    pub(super) const LESS: Self = Self::Operator(OperatorSymbol::Binary(BinaryOp::Less));
    pub(super) const GREATER: Self = Self::Operator(OperatorSymbol::Binary(BinaryOp::Greater));
    pub(super) const CONCAT: Self = Self::Operator(OperatorSymbol::Concat);
    pub(super) const NOT: Self = Self::Operator(OperatorSymbol::Unary(UnaryOp::Not));

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

macro_rules! words {
    ($($name:ident = $text:literal,)*) => {
        /// The words that the grammar knows. Each is an ordinary name wherever the grammar expects one.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub enum Word {
            $($name,)*
            /// Any other name, or no name at all.
            #[default]
            Other,
        }

        impl Word {
            pub(super) fn of(text: &str) -> Self {
                match text {
                    $($text => Self::$name,)*
                    _ => Self::Other,
                }
            }
        }
    };
}

words! {
    Namespace = "namespace",
    Use = "use",
    Uses = "uses",
    Facet = "facet",
    Event = "event",
    Workflow = "workflow",
    Schema = "schema",
    Implicit = "implicit",
    Test = "test",
    With = "with",
    As = "as",
    AndThen = "andThen",
    Foreach = "foreach",
    In = "in",
    When = "when",
    Case = "case",
    Script = "script",
    Prompt = "prompt",
    Catch = "catch",
    Yield = "yield",
    Sys = "sys",
    Log = "log",
    Assert = "assert",
    Not = "not",
    True = "true",
    False = "false",
    Null = "null",
    Underscore = "_",
    // Not words of AFL; the lexer knows them so that messages can treat them differently from names.
    And = "and",
    Or = "or",
    Default = "default",
    Else = "else",
    For = "for",
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Token {
    pub kind: TokenKind,
    pub word: Word,
    pub span: Span,
}

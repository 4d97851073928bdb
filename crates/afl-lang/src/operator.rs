//! Every operator in one table: lexer, parser, checker, formatter, printer, evaluator and compiled form
//! read it.
//!
//! A new operator is a row here and an arm in the evaluator (`afl-engine`, `eval/operator`), which does
//! not compile without it. `tests/properties.rs` takes every row from text to JSON and back.

use std::fmt;

/// How tightly an operator binds, the loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Precedence {
    Or,
    And,
    /// Comparisons do not associate: `a < b < c` is a mistake.
    Compare,
    Concat,
    Sum,
    Product,
    Unary,
}

impl Precedence {
    /// The level of a right operand: all operators associate to the left.
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Or => Self::And,
            Self::And => Self::Compare,
            Self::Compare => Self::Concat,
            Self::Concat => Self::Sum,
            Self::Sum => Self::Product,
            Self::Product | Self::Unary => Self::Unary,
        }
    }
}

/// The operands that a binary operator takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryOperands {
    Booleans,
    Numbers,
    Strings,
    /// Two numbers or two strings.
    Ordered,
    /// Two numbers, two strings or two lists.
    Summands,
    /// Values of one kind, or null on either side.
    OneKind,
    /// The left operand is looked for in the right one.
    ElementIn,
    /// The right operand is looked for in the left one.
    ContainerOf,
}

impl fmt::Display for BinaryOperands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Booleans => "Booleans",
            Self::Numbers => "numbers",
            Self::Strings => "strings",
            Self::Ordered => "two numbers or two strings",
            Self::Summands => "two numbers, two strings or two lists",
            Self::OneKind => "values of one kind",
            Self::ElementIn | Self::ContainerOf => "a list and an element, a map and a key or two strings",
        })
    }
}

/// The operand that a unary operator takes; its result has the same type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnaryOperand {
    Boolean,
    Number,
}

impl fmt::Display for UnaryOperand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "a Boolean",
            Self::Number => "a number",
        })
    }
}

/// The type of a binary operator's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultType {
    Boolean,
    Double,
    /// The type that both operands fit.
    Joined,
}

macro_rules! operators {
    ($(#[$doc:meta])* $type:ident $($name:ident $text:literal)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $type { $($name,)* }

        impl $type {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// As written.
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            pub fn from_text(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

macro_rules! binary_operators {
    ($($name:ident $text:literal $level:ident $operands:ident $result:ident;)*) => {
        operators! {
            /// An operator between two operands.
            BinaryOp $($name $text)*
        }

        impl BinaryOp {
            pub fn level(self) -> Precedence {
                match self { $(Self::$name => Precedence::$level,)* }
            }

            pub fn operands(self) -> BinaryOperands {
                match self { $(Self::$name => BinaryOperands::$operands,)* }
            }

            pub fn result(self) -> ResultType {
                match self { $(Self::$name => ResultType::$result,)* }
            }
        }
    };
}

binary_operators! {
    Or           "||"          Or       Booleans     Boolean;
    And          "&&"          And      Booleans     Boolean;
    Equal        "=="          Compare  OneKind      Boolean;
    NotEqual     "!="          Compare  OneKind      Boolean;
    Less         "<"           Compare  Ordered      Boolean;
    LessEqual    "<="          Compare  Ordered      Boolean;
    Greater      ">"           Compare  Ordered      Boolean;
    GreaterEqual ">="          Compare  Ordered      Boolean;
    In           "in"          Compare  ElementIn    Boolean;
    NotIn        "not in"      Compare  ElementIn    Boolean;
    Contains     "contains"    Compare  ContainerOf  Boolean;
    StartsWith   "startsWith"  Compare  Strings      Boolean;
    EndsWith     "endsWith"    Compare  Strings      Boolean;
    Add          "+"           Sum      Summands     Joined;
    Subtract     "-"           Sum      Numbers      Joined;
    Multiply     "*"           Product  Numbers      Joined;
    Divide       "/"           Product  Numbers      Double;
    Modulo       "%"           Product  Numbers      Joined;
}

macro_rules! unary_operators {
    ($($name:ident $text:literal $operand:ident;)*) => {
        operators! {
            /// An operator before its operand.
            UnaryOp $($name $text)*
        }

        impl UnaryOp {
            pub fn operand(self) -> UnaryOperand {
                match self { $(Self::$name => UnaryOperand::$operand,)* }
            }
        }
    };
}

unary_operators! {
    Negate  "-"  Number;
    Plus    "+"  Number;
    Not     "!"  Boolean;
}

impl UnaryOp {
    /// Whether a compiled program can contain it: a plus sign means nothing and is left out.
    pub fn is_compiled(self) -> bool {
        self != Self::Plus
    }
}

/// Joins any number of operands to text, so it is no [`BinaryOp`] but a node of its own.
pub const CONCAT: &str = "++";

/// An operator that is written with symbols, as the lexer finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperatorSymbol {
    /// Also one that is unary before an operand, as `-` is.
    Binary(BinaryOp),
    Concat,
    /// Only before an operand.
    Unary(UnaryOp),
}

impl OperatorSymbol {
    /// Bytes of the longest symbol.
    const MAX_LENGTH: usize = 2;

    /// The longest symbol that `text` begins with, and its length.
    pub(crate) fn at_start_of(text: &str) -> Option<(Self, usize)> {
        (1..=Self::MAX_LENGTH).rev().find_map(|length| {
            let symbol = text.get(..length)?;
            let found = match BinaryOp::from_text(symbol) {
                Some(op) => Self::Binary(op),
                None if symbol == CONCAT => Self::Concat,
                None => Self::Unary(UnaryOp::from_text(symbol)?),
            };
            Some((found, length))
        })
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Binary(op) => op.text(),
            Self::Concat => CONCAT,
            Self::Unary(op) => op.text(),
        }
    }
}

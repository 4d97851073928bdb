//! Expressions, by precedence climbing.

use super::Parser;
use crate::code::Code;
use crate::limits::MAX_EXPRESSION_HEIGHT;
use crate::operator::{BinaryOp, OperatorSymbol, Precedence, UnaryOp};
use crate::source::Span;
use crate::syntax::ast::{ExprSyntax, ExprSyntaxKind, Ident, MapEntry, MapKey};
use crate::syntax::token::{TokenKind, Word};

#[derive(Clone, Copy)]
enum Operator {
    Concat,
    Binary(BinaryOp),
}

impl Operator {
    fn level(self) -> Precedence {
        match self {
            Self::Concat => Precedence::Concat,
            Self::Binary(op) => op.level(),
        }
    }
}

#[derive(Clone, Copy)]
enum ComparisonChain {
    Legal,
    Reported,
}

impl<'s> Parser<'s> {
    pub(super) fn expr(&mut self) -> ExprSyntax<'s> {
        self.binary(Precedence::Or)
    }

    fn binary(&mut self, lowest: Precedence) -> ExprSyntax<'s> {
        let mut left = self.unary();
        let mut height = self.height;
        while let Some(operator) = self.operator() {
            if operator.level() < lowest {
                break;
            }
            self.bump_operator(operator);
            left = match operator {
                Operator::Concat => {
                    let joined = self.concat(left);
                    height = height.max(self.height) + 1;
                    joined
                }
                Operator::Binary(op) => {
                    let right = self.binary(op.level().next());
                    height = height.max(self.height) + 1;
                    let span = left.span.to(right.span);
                    let kind = match self.check_chain(op) {
                        ComparisonChain::Legal => ExprSyntaxKind::Binary(op, Box::new([left, right])),
                        ComparisonChain::Reported => ExprSyntaxKind::Broken,
                    };
                    ExprSyntax { kind, span }
                }
            };
            (left, height) = self.bounded(left, height);
        }
        self.height = height;
        left
    }

    /// The operands of a chain of `++`, the first `++` consumed.
    fn concat(&mut self, first: ExprSyntax<'s>) -> ExprSyntax<'s> {
        let start = first.span;
        let mut operands = vec![first];
        let mut height = self.height;
        loop {
            operands.push(self.binary(Precedence::Sum));
            height = height.max(self.height);
            if !self.at(TokenKind::CONCAT) {
                break;
            }
            self.bump();
        }
        self.height = height;
        ExprSyntax { kind: ExprSyntaxKind::Concat(operands), span: self.since(start) }
    }

    /// The operator here, if there is one.
    fn operator(&self) -> Option<Operator> {
        match self.kind() {
            TokenKind::MINUS if self.at_thin_arrow() => None,
            TokenKind::Operator(OperatorSymbol::Binary(op)) => Some(Operator::Binary(op)),
            TokenKind::Operator(OperatorSymbol::Concat) => Some(Operator::Concat),
            // A word is an operator only where no name can stand: a name is followed by `=` or `:`.
            TokenKind::Ident if !matches!(self.ahead[1].kind, TokenKind::Assign | TokenKind::Colon) => {
                self.word_operator().map(Operator::Binary)
            }
            _ => None,
        }
    }

    fn word_operator(&self) -> Option<BinaryOp> {
        match self.word(0) {
            Word::Not => BinaryOp::from_text(&format!("not {}", self.spelling(1))),
            Word::And if !self.on_new_line() => Some(BinaryOp::And),
            Word::Or if !self.on_new_line() => Some(BinaryOp::Or),
            _ => BinaryOp::from_text(self.spelling(0)),
        }
    }

    fn bump_operator(&mut self, operator: Operator) {
        if let (Word::And | Word::Or, Operator::Binary(op)) = (self.word(0), operator) {
            self.expected_here(&format!("`{}`", op.text()), |d| d);
        }
        // Of `not in`, the first word.
        if self.word(0) == Word::Not {
            self.bump();
        }
        self.bump();
    }

    /// Comparisons do not associate: `a < b < c` is a mistake.
    fn check_chain(&mut self, first: BinaryOp) -> ComparisonChain {
        let is_comparison = |op: &BinaryOp| op.level() == Precedence::Compare;
        if !is_comparison(&first) {
            return ComparisonChain::Legal;
        }
        let second = match self.operator() {
            Some(Operator::Binary(second)) if is_comparison(&second) => second,
            _ => return ComparisonChain::Legal,
        };
        let message = format!("`{}` and `{}` cannot be chained", first.text(), second.text());
        self.syntax_error(Code::ComparisonChain, message, |d| {
            d.help("compare twice and join with `&&`, or use parentheses")
        });
        ComparisonChain::Reported
    }

    /// Reports an expression that is too high, and lets go of it.
    fn bounded(&mut self, expr: ExprSyntax<'s>, height: u32) -> (ExprSyntax<'s>, u32) {
        if height <= MAX_EXPRESSION_HEIGHT {
            return (expr, height);
        }
        // A long chain passes the limit again and again, always from the same start.
        let again = self
            .diagnostics
            .last()
            .is_some_and(|last| last.code == Code::TooDeep && last.place.span.start == expr.span.start);
        if !again {
            let message = format!("this expression is more than {MAX_EXPRESSION_HEIGHT} levels high");
            self.report(Code::TooDeep, expr.span, message, |d| d.help("give a part of it a step of its own"));
        }
        (ExprSyntax { kind: ExprSyntaxKind::Broken, span: expr.span }, 1)
    }

    fn unary(&mut self) -> ExprSyntax<'s> {
        let op = match self.kind() {
            TokenKind::Operator(symbol) => match UnaryOp::from_text(symbol.text()) {
                Some(op) => op,
                None => return self.postfix(),
            },
            TokenKind::Ident if self.word(0) == Word::Not && self.is_foreign_not() => {
                self.expected_here("`!`", |d| d);
                UnaryOp::Not
            }
            _ => return self.postfix(),
        };
        let start = self.bump().span;
        let operand = self.nested(Self::unary);
        let Some(operand) = operand else { return self.broken(start) };
        let span = start.to(operand.span);
        let (expr, height) = self.bounded(
            ExprSyntax { kind: ExprSyntaxKind::Unary(op, Box::new(operand)), span },
            self.height + 1,
        );
        self.height = height;
        expr
    }

    /// Whether `not` is meant as an operator: as a name it may be indexed, or end before the next field.
    fn is_foreign_not(&self) -> bool {
        let next = self.ahead[1];
        let is_index = next.kind == TokenKind::LBracket && next.span.start == self.span().end;
        let is_field = next.kind == TokenKind::Ident
            && matches!(self.ahead[2].kind, TokenKind::Colon | TokenKind::Assign);
        self.begins_operand(1) && !is_index && !is_field
    }

    pub(super) fn begins_operand(&self, ahead: usize) -> bool {
        use TokenKind as T;
        matches!(
            self.ahead[ahead].kind,
            T::Ident | T::Int | T::Double | T::String | T::Dollar | T::LParen | T::LBracket
        )
    }

    fn postfix(&mut self) -> ExprSyntax<'s> {
        let mut expr = self.atom();
        let mut height = self.height;
        loop {
            let start = expr.span;
            let kind = match self.kind() {
                TokenKind::LBracket => {
                    let Some(index) = self.nested(Self::index) else { return self.broken(start) };
                    height = height.max(self.height) + 1;
                    ExprSyntaxKind::Index(Box::new([expr, index]))
                }
                TokenKind::Dot => {
                    self.bump();
                    let Some(field) = self.path_segment() else { break };
                    height += 1;
                    ExprSyntaxKind::Field(Box::new(expr), field)
                }
                _ => break,
            };
            (expr, height) = self.bounded(ExprSyntax { kind, span: self.since(start) }, height);
        }
        self.height = height;
        expr
    }

    fn index(&mut self) -> ExprSyntax<'s> {
        let open = self.bump().span;
        let index = self.expr();
        if self.eat(TokenKind::RBracket).is_none() {
            self.unclosed(open, TokenKind::RBracket);
        }
        index
    }

    fn atom(&mut self) -> ExprSyntax<'s> {
        self.height = 1;
        let span = self.span();
        let kind = match self.kind() {
            TokenKind::String | TokenKind::TextBlock | TokenKind::OpenString | TokenKind::Misquoted => {
                self.string().map_or(ExprSyntaxKind::Broken, ExprSyntaxKind::String)
            }
            TokenKind::Int | TokenKind::Double | TokenKind::NumberWord => self.number(),
            TokenKind::Dollar => self.input(),
            TokenKind::Ident => self.name(),
            TokenKind::LParen => return self.nested(Self::paren).unwrap_or_else(|| self.broken(span)),
            TokenKind::LBracket => return self.nested(Self::array).unwrap_or_else(|| self.broken(span)),
            TokenKind::HashBrace => return self.nested(Self::map).unwrap_or_else(|| self.broken(span)),
            TokenKind::LBrace => {
                self.expected_with("a value", |d| d.help("write a map as `#{\"key\": value}`"));
                self.skip_brackets();
                ExprSyntaxKind::Broken
            }
            _ => {
                self.expected("a value");
                return self.broken(self.here());
            }
        };
        ExprSyntax { kind, span: self.since(span) }
    }

    fn broken(&mut self, span: Span) -> ExprSyntax<'s> {
        self.height = 1;
        ExprSyntax { kind: ExprSyntaxKind::Broken, span }
    }

    fn number(&mut self) -> ExprSyntaxKind<'s> {
        let token = self.bump();
        let text = self.slice(token.span);
        match token.kind {
            TokenKind::Int => match text.parse() {
                // One more than the largest is the magnitude of the smallest; the checker looks for its sign.
                Ok(magnitude) if magnitude <= i64::MAX.unsigned_abs() + 1 => ExprSyntaxKind::Int(magnitude),
                _ => {
                    let message = format!("`{text}` does not fit in 64 bits");
                    self.report(Code::NumberOutOfRange, token.span, message, |d| {
                        d.help("write it as a decimal, such as `1e20`, or as a string")
                    });
                    ExprSyntaxKind::Broken
                }
            },
            TokenKind::Double => match text.parse::<f64>() {
                Ok(value) if value.is_finite() => ExprSyntaxKind::Double(value),
                _ => {
                    let message = format!("`{text}` is too large for a Double");
                    self.report(Code::NumberOutOfRange, token.span, message, |d| d);
                    ExprSyntaxKind::Broken
                }
            },
            _ => {
                let message = format!("`{text}` is neither a number nor a name");
                self.report(Code::MalformedNumber, token.span, message, |d| {
                    d.help("a number has digits only, such as `1000` or `2.5e3`; a name begins with a letter")
                });
                ExprSyntaxKind::Broken
            }
        }
    }

    fn input(&mut self) -> ExprSyntaxKind<'s> {
        let dollar = self.bump().span;
        if self.at(TokenKind::Ident) && self.span().start == dollar.end {
            let name = self.spelling(0);
            self.syntax_error(Code::Expected, "an input is written with a dot", |d| {
                d.help(format!("write `$.{name}`"))
            });
            let span = self.bump().span;
            return self
                .path(Some(Ident { text: name, span }))
                .map_or(ExprSyntaxKind::Broken, ExprSyntaxKind::Input);
        }
        self.path(None).map_or(ExprSyntaxKind::Broken, ExprSyntaxKind::Input)
    }

    /// A path behind its first name; `None` where a part of it is missing.
    fn path(&mut self, first: Option<Ident<'s>>) -> Option<Vec<Ident<'s>>> {
        // A step and its attribute: few paths are longer.
        let mut path = Vec::with_capacity(2);
        path.extend(first);
        while self.at(TokenKind::Dot) {
            self.bump();
            path.push(self.path_segment()?);
        }
        Some(path)
    }

    fn path_segment(&mut self) -> Option<Ident<'s>> {
        if let TokenKind::Int | TokenKind::Double = self.kind() {
            let digits = self.slice(self.span());
            self.expected_with("a name", |d| d.help(format!("write an index in brackets: `[{digits}]`")));
            self.bump();
            return None;
        }
        self.ident("a name behind the `.`")
    }

    fn name(&mut self) -> ExprSyntaxKind<'s> {
        let span = self.bump().span;
        let text = self.slice(span);
        if !self.at(TokenKind::Dot) {
            match text {
                "true" => return ExprSyntaxKind::Boolean(true),
                "false" => return ExprSyntaxKind::Boolean(false),
                "null" => return ExprSyntaxKind::Null,
                _ => {}
            }
        }
        let Some(path) = self.path(Some(Ident { text, span })) else { return ExprSyntaxKind::Broken };
        if self.at(TokenKind::LParen) && !self.on_new_line() {
            let called = self.since(span);
            let facet = self.slice(called);
            self.report(Code::Expected, called, "a facet cannot be called inside an expression", |d| {
                d.help(format!("make it a step, `x = {facet}(…)`, and use `x.attribute` here"))
            });
            self.skip_brackets();
            return ExprSyntaxKind::Broken;
        }
        ExprSyntaxKind::Name(path)
    }

    fn paren(&mut self) -> ExprSyntax<'s> {
        let open = self.bump().span;
        let inner = self.expr();
        let inner = self.no_assignment(inner);
        if self.eat(TokenKind::RParen).is_none() {
            self.unclosed(open, TokenKind::RParen);
        }
        self.height += 1;
        ExprSyntax { kind: ExprSyntaxKind::Paren(Box::new(inner)), span: self.since(open) }
    }

    fn array(&mut self) -> ExprSyntax<'s> {
        let (elements, span) = self.elements(TokenKind::RBracket, |parser| Some(parser.expr()));
        ExprSyntax { kind: ExprSyntaxKind::Array(elements), span }
    }

    fn map(&mut self) -> ExprSyntax<'s> {
        let (entries, span) = self.elements(TokenKind::RBrace, |parser| {
            let entry = parser.map_entry();
            if entry.is_none() {
                parser.skip_element();
            }
            entry
        });
        ExprSyntax { kind: ExprSyntaxKind::Map(entries), span }
    }

    /// The elements behind the opening bracket here, and the span with both brackets.
    fn elements<T>(&mut self, close: TokenKind, element: impl Fn(&mut Self) -> Option<T>) -> (Vec<T>, Span) {
        let open = self.bump().span;
        let mut elements = Vec::new();
        let mut height = 0;
        while self.eat(close).is_none() {
            elements.extend(element(self));
            height = height.max(self.height);
            if !self.end_of_element(close) {
                self.unclosed(open, close);
                break;
            }
        }
        self.height = height + 1;
        (elements, self.since(open))
    }

    fn map_entry(&mut self) -> Option<MapEntry<'s>> {
        let key = match self.kind() {
            TokenKind::Ident => MapKey::Name(self.ident("a key")?),
            TokenKind::String | TokenKind::TextBlock => MapKey::String(self.string()?),
            _ => {
                self.expected("a key");
                return None;
            }
        };
        if self.eat(TokenKind::Colon).is_none() {
            self.expected_with("`:`", |d| d.help("write map entries as `key: value`"));
            return None;
        }
        Some(MapEntry { key, value: self.expr() })
    }
}

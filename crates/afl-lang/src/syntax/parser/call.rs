//! Calls, their arguments and mixins.

use super::Parser;
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{Arg, Args, CallSyntax, ExprSyntax, ExprSyntaxKind, MixinSyntax, QName, Wholeness};
use crate::syntax::token::{Token, TokenKind, Word};

pub(super) const YIELD_HELP: &str =
    "write `yield Name(result = value)` with the name of the facet or workflow that the block belongs to";

/// Whether the parser can read the rest of a list behind a mistake.
enum ListRemainder {
    Readable,
    Lost,
}

/// The use of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    Step,
    Yield,
    Implicit,
}

impl<'s> Parser<'s> {
    /// `Target(args) with …`. A missing target has been reported and is left empty.
    pub(super) fn call(&mut self, caller: Caller) -> CallSyntax<'s> {
        let start = self.span();
        let Some(target) = self.qualified("a call such as `Facet(name = value)`") else {
            return self.missing_call();
        };
        let Some(args) = self.call_args(&target, caller) else { return self.missing_call() };
        let mixins = self.mixins();
        CallSyntax { target, args, mixins, span: self.since(start) }
    }

    /// The arguments behind the target of a call; reports where there are none.
    fn call_args(&mut self, target: &QName<'s>, caller: Caller) -> Option<Args<'s>> {
        if self.at(TokenKind::LParen) {
            return Some(self.args());
        }
        match caller {
            Caller::Yield => {
                let message = "`yield` gives results by name, in parentheses";
                self.report(Code::Expected, target.span, message, |d| d.help(YIELD_HELP));
                None
            }
            Caller::Step if target.last().starts_with(|c: char| c.is_ascii_lowercase()) => {
                self.report_plain_value(target.span);
                None
            }
            Caller::Step | Caller::Implicit => {
                let help = format!("write `{}(…)`", target.text);
                self.expected_with("`(`", |d| d.help(help));
                Some(self.args_without_parenthesis(target))
            }
        }
    }

    /// The arguments of a target whose parenthesis is missing, which has been reported.
    fn args_without_parenthesis(&mut self, target: &QName<'s>) -> Args<'s> {
        let belongs = !self.on_new_line() || self.indentation(self.span()) > self.indentation(target.span);
        if self.at_argument() && belongs {
            return self.args_from(self.here());
        }
        Args { list: Vec::new(), span: target.span, wholeness: Wholeness::Broken }
    }

    /// Reports a step that is no call.
    pub(super) fn report_plain_value(&mut self, span: Span) {
        if !self.after_bad_token() {
            self.report(Code::NotAStatement, span, "a step is always a call, not a plain value", |d| {
                d.help("there are no variables: write the value where it is needed, as in `x = Facet(name = value)`")
            });
        }
    }

    pub(super) fn missing_call(&self) -> CallSyntax<'s> {
        let span = self.here();
        let args = Args { list: Vec::new(), span, wholeness: Wholeness::Broken };
        CallSyntax { target: self.missing_name(), args, mixins: Vec::new(), span }
    }

    pub(super) fn mixins(&mut self) -> Vec<MixinSyntax<'s>> {
        let mut mixins = Vec::new();
        while self.at_keyword(Word::With) {
            let start = self.bump().span;
            let Some(target) = self.qualified("the name of a facet to mix in") else {
                if self.at(TokenKind::LParen) {
                    self.skip_brackets();
                }
                break;
            };
            let args = if self.at(TokenKind::LParen) {
                self.args()
            } else {
                if !self.after_bad_token() {
                    let message = format!("expected `(` behind the mixin `{}`", target.text);
                    let help = format!("write `with {}()`", target.text);
                    self.report(Code::MixinWithoutParentheses, target.span, message, |d| d.help(help));
                }
                self.args_without_parenthesis(&target)
            };
            let alias = if self.at_keyword(Word::As) {
                self.bump();
                self.ident("an alias")
            } else {
                None
            };
            mixins.push(MixinSyntax { target, args, alias, span: self.since(start) });
        }
        mixins
    }

    pub(super) fn args(&mut self) -> Args<'s> {
        let open = self.bump().span;
        self.args_from(open)
    }

    /// The arguments behind the parenthesis at `open`.
    fn args_from(&mut self, open: Span) -> Args<'s> {
        let mut args = Args { list: Vec::new(), span: open, wholeness: Wholeness::Whole };
        loop {
            if self.eat(TokenKind::RParen).is_some() {
                break;
            }
            if self.list_is_cut_off(open) {
                self.unclosed(open, TokenKind::RParen);
                args.wholeness = Wholeness::Broken;
                break;
            }
            match self.arg(open) {
                Some(arg) => args.list.push(arg),
                None => args.wholeness = Wholeness::Broken,
            }
            let odd = !self.at(TokenKind::Comma) && !self.at(TokenKind::RParen) && !self.at_argument();
            if odd || !self.end_of_element(TokenKind::RParen) {
                args.wholeness = Wholeness::Broken;
                match self.recover_in_args(open, args.list.last_mut()) {
                    ListRemainder::Readable => {}
                    ListRemainder::Lost => break,
                }
            }
        }
        args.list.shrink_to_fit();
        args.span = self.since(open);
        args
    }

    fn list_is_cut_off(&self, open: Span) -> bool {
        matches!(self.kind(), TokenKind::Eof | TokenKind::RBrace | TokenKind::LBrace)
            || self.at_declaration()
            || self.at_step_beside(open)
    }

    /// At a line with a step, no further in than the line of the bracket.
    fn at_step_beside(&self, open: Span) -> bool {
        self.at(TokenKind::Ident)
            && self.ahead[1].kind == TokenKind::Assign
            && self.on_new_line()
            && self.is_called(self.ahead[2])
            && self.indentation(self.span()) <= self.indentation(open)
    }

    /// At `name =` or `name:`.
    fn at_argument(&self) -> bool {
        self.at(TokenKind::Ident) && matches!(self.ahead[1].kind, TokenKind::Assign | TokenKind::Colon)
    }

    /// Behind an argument that does not end as it should: skips something odd on its line.
    fn recover_in_args(&mut self, open: Span, last: Option<&mut Arg<'s>>) -> ListRemainder {
        let ends = self.on_new_line()
            || self.at_statement()
            || matches!(self.kind(), TokenKind::RBrace | TokenKind::LBrace | TokenKind::Eof)
            || matches!(self.word(0), Word::With | Word::Catch | Word::As);
        if ends {
            self.unclosed(open, TokenKind::RParen);
            return ListRemainder::Lost;
        }
        let reported = self.diagnostics.last().is_some_and(|last| last.place.span.start == self.span().start);
        if !reported {
            self.expected_here("`,` or `)`", |d| d);
        }
        if let Some(arg) = last {
            // The unexpected token was meant as a part of the value.
            arg.value.kind = ExprSyntaxKind::Broken;
        }
        self.skip_element();
        self.eat(TokenKind::RBracket);
        if self.eat(TokenKind::Comma).is_some() || self.at(TokenKind::RParen) {
            return ListRemainder::Readable;
        }
        ListRemainder::Lost
    }

    fn arg(&mut self, open: Span) -> Option<Arg<'s>> {
        if self.at(TokenKind::Ident) && self.ahead[1].kind == TokenKind::Assign {
            let name = self.ident("a name")?;
            self.bump();
            let value = self.expr();
            return Some(Arg { name, value: self.no_assignment(value) });
        }
        if self.at(TokenKind::Assign) {
            self.expected_here("the name of a parameter", |d| d);
            self.bump();
            self.expr();
            return None;
        }
        if self.at_argument() || self.lacks_assign() {
            let name = self.ident("a name")?;
            let help = format!("write `{} = …`", name.text);
            self.expected_here("`=`", |d| d.help(help));
            if self.eat(TokenKind::Colon).is_some() {
                self.eat(TokenKind::Assign);
            }
            return Some(Arg { name, value: self.expr() });
        }
        let start = self.span();
        let known = self.diagnostics.len();
        let is_another =
            |d: &Diagnostic| d.code == Code::PositionalArgument && d.place.span.start > open.start;
        let reported = self.after_bad_token() || self.diagnostics.last().is_some_and(is_another);
        let value = self.expr();
        if !reported && !self.diagnostics[known..].iter().any(Diagnostic::is_error) {
            let written = self.slice(value.span);
            let written = if written.contains('\n') { "…" } else { written };
            let help = format!("put the name of the parameter before it: `parameter = {written}`");
            self.report(Code::PositionalArgument, start.to(value.span), "arguments are given by name", |d| {
                d.help(help)
            });
        }
        None
    }

    /// At `name value`.
    fn lacks_assign(&self) -> bool {
        let [name, value, _] = self.ahead;
        name.kind == TokenKind::Ident
            && name.word == Word::Other
            && matches!(
                value.kind,
                TokenKind::Ident | TokenKind::Int | TokenKind::Double | TokenKind::String | TokenKind::Dollar
            )
            && matches!(value.word, Word::Other | Word::True | Word::False | Word::Null)
            && !self.slice(name.span.to(value.span)).contains('\n')
    }

    /// Takes the comma behind an element. False where the list is not closed and no element follows.
    pub(super) fn end_of_element(&mut self, close: TokenKind) -> bool {
        if self.eat(TokenKind::Comma).is_some() || self.at(close) {
            return true;
        }
        let begins_element = self.at_element()
            && !matches!(self.word(0), Word::With | Word::Catch | Word::As)
            && if self.on_new_line() { self.line_begins_element() } else { !self.at_statement() };
        if begins_element {
            self.missing(Code::MissingComma, "`,`", |d| d.help("separate the elements of a list with `,`"));
        }
        begins_element
    }

    fn at_element(&self) -> bool {
        use TokenKind as T;
        matches!(
            self.kind(),
            T::Ident | T::String | T::TextBlock | T::Int | T::Double | T::Dollar | T::HashBrace
        )
    }

    /// Whether a line continues the list around it: `name: …`, or `name = …` that is no step.
    fn line_begins_element(&self) -> bool {
        match (self.kind(), self.ahead[1].kind) {
            (TokenKind::Ident, TokenKind::Colon) => true,
            (TokenKind::Ident, TokenKind::Assign) => !self.is_called(self.ahead[2]),
            (TokenKind::Ident, _) => false,
            _ => true,
        }
    }

    /// Whether this token begins a name with a `(` behind it. Looks at the text, since a name may have
    /// more tokens than the parser looks ahead.
    fn is_called(&self, token: Token) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let rest = self.text[token.span.start as usize..].trim_start_matches(is_part);
        token.kind == TokenKind::Ident && rest.trim_start().starts_with('(')
    }

    /// Reports `a = b` in the place of an expression and reads it as `a == b`.
    pub(super) fn no_assignment(&mut self, left: ExprSyntax<'s>) -> ExprSyntax<'s> {
        if !self.at(TokenKind::Assign) {
            return left;
        }
        self.syntax_error(
            Code::AssignmentInExpression,
            "`=` gives a name a value; it does not compare",
            |d| d.help("compare with `==`"),
        );
        self.bump();
        let right = self.expr();
        let span = left.span.to(right.span);
        ExprSyntax { kind: ExprSyntaxKind::Broken, span }
    }
}

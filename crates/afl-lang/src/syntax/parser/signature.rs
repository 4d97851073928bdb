//! Parameters, types, calls and mixins.

use super::Parser;
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::syntax::ast::{
    Arg, Args, Call, Expr, ExprKind, Ident, Mixin, Param, Params, TypeExpr, TypeKind, Wholeness,
};
use crate::syntax::token::{Token, TokenKind, Word};

pub(super) const YIELD_HELP: &str =
    "write `yield Name(result = value)` with the name of the facet or workflow that the block belongs to";

/// What is left of a list behind a mistake.
enum Rest {
    GoesOn,
    IsLost,
}

/// What a call is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    Step,
    Yield,
    Implicit,
}

impl<'s> Parser<'s> {
    /// The parameters of the facet `name`.
    pub(super) fn params(&mut self, name: Ident<'s>) -> Params<'s> {
        if self.at(TokenKind::LParen) {
            return self.param_list();
        }
        let help = format!("write the parameters in parentheses, `{}()` if there are none", name.text);
        self.expected_with("`(`", |d| d.help(help));
        Params { list: Vec::new(), span: self.since(name.span), wholeness: Wholeness::Broken }
    }

    pub(super) fn returns(&mut self) -> Option<Params<'s>> {
        if self.at_thin_arrow() || self.at(TokenKind::Colon) {
            self.expected_arrow(|d| d.help("write the returns as `=> (name: Type)`"));
        } else if self.at(TokenKind::LParen) {
            self.expected_here("`=>`", |d| d.help("write the returns as `=> (name: Type)`"));
        } else if self.eat(TokenKind::Arrow).is_none() {
            return None;
        }
        if self.at(TokenKind::LParen) {
            return Some(self.param_list());
        }
        self.expected_with("`(`", |d| d.help("returns have names: write `=> (name: Type)`"));
        let start = self.span();
        self.type_expr();
        Some(Params { list: Vec::new(), span: self.since(start), wholeness: Wholeness::Broken })
    }

    fn param_list(&mut self) -> Params<'s> {
        let open = self.bump().span;
        let mut params = Params { list: Vec::new(), span: open, wholeness: Wholeness::Whole };
        loop {
            if self.eat(TokenKind::RParen).is_some() {
                break;
            }
            if self.params_are_cut_off() {
                self.unclosed(open, TokenKind::RParen);
                params.wholeness = Wholeness::Broken;
                break;
            }
            if let Some(param) = self.param() {
                params.list.push(param);
            } else {
                params.wholeness = Wholeness::Broken;
                self.skip_element();
            }
            if !self.end_of_element(TokenKind::RParen) {
                params.wholeness = Wholeness::Broken;
                self.unclosed(open, TokenKind::RParen);
                break;
            }
        }
        params.list.shrink_to_fit();
        params.span = self.since(open);
        params
    }

    /// At what can only follow the parameters.
    fn params_are_cut_off(&self) -> bool {
        let behind =
            matches!(self.word(0), Word::AndThen | Word::With | Word::Script | Word::Prompt | Word::Catch);
        matches!(self.kind(), TokenKind::Eof | TokenKind::RBrace | TokenKind::LBrace | TokenKind::Arrow)
            || self.at_declaration()
            || behind
                && matches!(self.ahead[1].kind, TokenKind::Ident | TokenKind::LBrace | TokenKind::String)
    }

    pub(super) fn fields(&mut self) -> Params<'s> {
        let open = self.bump().span;
        let mut fields = Params { list: Vec::new(), span: open, wholeness: Wholeness::Whole };
        loop {
            match self.kind() {
                TokenKind::RBrace => {
                    self.bump();
                    break;
                }
                TokenKind::Comma | TokenKind::Semicolon => {
                    self.bump();
                }
                _ if self.at(TokenKind::Eof) || self.at_declaration() => {
                    self.unclosed(open, TokenKind::RBrace);
                    fields.wholeness = Wholeness::Broken;
                    break;
                }
                _ => {
                    if let Some(field) = self.param() {
                        fields.list.push(field);
                    } else {
                        fields.wholeness = Wholeness::Broken;
                        self.skip_field();
                    }
                }
            }
        }
        fields.span = self.since(open);
        fields
    }

    fn skip_field(&mut self) {
        loop {
            match self.kind() {
                TokenKind::Comma | TokenKind::Semicolon | TokenKind::RBrace | TokenKind::Eof => return,
                TokenKind::Ident if self.ahead[1].kind == TokenKind::Colon && self.on_new_line() => return,
                _ if self.at_declaration() => return,
                _ => self.skip_brackets(),
            }
        }
    }

    fn param(&mut self) -> Option<Param<'s>> {
        let name = self.ident("the name of a parameter")?;
        if self.eat(TokenKind::Colon).is_none() {
            let help = format!("write `{}: Type`", name.text);
            self.expected_with("`:`", |d| d.help(help));
            return None;
        }
        let mut ty = self.type_expr();
        if self.at(TokenKind::RBracket) {
            let help = "write a list type as `[Type]`";
            self.expected_here("`,` or `)`", |d| d.help(help));
            self.bump();
            ty.kind = TypeKind::Broken;
        }
        let default = self.eat(TokenKind::Assign).map(|_| self.expr());
        Some(Param { name, ty, default, span: self.since(name.span) })
    }

    fn type_expr(&mut self) -> TypeExpr<'s> {
        let start = self.span();
        let kind = if self.at(TokenKind::LBracket) {
            self.nested(Self::list_type).unwrap_or(TypeKind::Broken)
        } else {
            self.qualified("a type").map_or(TypeKind::Broken, TypeKind::Name)
        };
        let kind = self.foreign_type(kind);
        let nullable = self.eat(TokenKind::Question).is_some();
        TypeExpr { kind, nullable, span: self.since(start) }
    }

    fn list_type(&mut self) -> TypeKind<'s> {
        let open = self.bump().span;
        let of = self.type_expr();
        if self.eat(TokenKind::RBracket).is_none() {
            self.unclosed(open, TokenKind::RBracket);
        }
        TypeKind::List(Box::new(of))
    }

    /// Reports the list types of other languages, `List<T>` and `T[]`.
    fn foreign_type(&mut self, kind: TypeKind<'s>) -> TypeKind<'s> {
        match (self.kind(), self.ahead[1].kind) {
            (TokenKind::Less, _) => {
                let help = "write a list as `[Type]`, a map or anything else as `Json`";
                self.syntax_error(Code::Expected, "types take no parameters", |d| d.help(help));
                while !matches!(self.bump().kind, TokenKind::Greater | TokenKind::Eof) {}
                TypeKind::Broken
            }
            (TokenKind::LBracket, TokenKind::RBracket) => {
                self.syntax_error(
                    Code::Expected,
                    "a list type is written with the brackets around it",
                    |d| d.help("write `[Type]`"),
                );
                self.bump();
                self.bump();
                TypeKind::Broken
            }
            _ => kind,
        }
    }

    /// Past the comma behind an element. False where the list is not closed: the text goes on with
    /// something that is no element.
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

    /// Whether a line goes on with the list that it stands in: `name: …`, or `name = …` that is no step.
    fn line_begins_element(&self) -> bool {
        match (self.kind(), self.ahead[1].kind) {
            (TokenKind::Ident, TokenKind::Colon) => true,
            (TokenKind::Ident, TokenKind::Assign) => !self.is_called(self.ahead[2]),
            (TokenKind::Ident, _) => false,
            _ => true,
        }
    }

    /// Whether this token begins a name with a `(` behind it, as far as the text tells: a name may be
    /// longer than the tokens ahead.
    fn is_called(&self, token: Token) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let rest = self.text[token.span.start as usize..].trim_start_matches(is_part);
        token.kind == TokenKind::Ident && rest.trim_start().starts_with('(')
    }

    /// `Target(args) with …`. A missing target has been reported and is left empty.
    pub(super) fn call(&mut self, caller: Caller) -> Call<'s> {
        let start = self.span();
        let Some(target) = self.qualified("a call such as `Facet(name = value)`") else {
            return self.missing_call();
        };
        let args = if self.at(TokenKind::LParen) {
            self.args()
        } else {
            match caller {
                Caller::Step if target.last().starts_with(|c: char| c.is_ascii_lowercase()) => {
                    self.report_plain_value(target.span);
                    return self.missing_call();
                }
                Caller::Step | Caller::Implicit => {
                    let help = format!("write `{}(…)`", target.text);
                    self.expected_with("`(`", |d| d.help(help));
                }
                Caller::Yield => {
                    let message = "`yield` gives results by name, in parentheses";
                    self.report(Code::Expected, target.span, message, |d| d.help(YIELD_HELP));
                    return self.missing_call();
                }
            }
            Args { list: Vec::new(), span: target.span, wholeness: Wholeness::Broken }
        };
        let mixins = self.mixins();
        Call { target, args, mixins, span: self.since(start) }
    }

    /// Reports a step that is no call.
    pub(super) fn report_plain_value(&mut self, span: Span) {
        if !self.after_bad_token() {
            self.report(Code::NotAStatement, span, "a step is always a call, not a plain value", |d| {
                d.help("there are no variables: write the value where it is needed, as in `x = Facet(name = value)`")
            });
        }
    }

    pub(super) fn missing_call(&self) -> Call<'s> {
        let span = self.here();
        let args = Args { list: Vec::new(), span, wholeness: Wholeness::Broken };
        Call { target: self.missing_name(), args, mixins: Vec::new(), span }
    }

    pub(super) fn mixins(&mut self) -> Vec<Mixin<'s>> {
        let mut mixins = Vec::new();
        while self.at_keyword(Word::With) {
            let start = self.bump().span;
            let Some(target) = self.qualified("the name of a facet to mix in") else { break };
            let args = if self.at(TokenKind::LParen) {
                self.args()
            } else {
                if !self.after_bad_token() {
                    let message = format!("expected `(` behind the mixin `{}`", target.text);
                    let help = format!("write `with {}()`", target.text);
                    self.report(Code::MixinWithoutParentheses, target.span, message, |d| d.help(help));
                }
                Args { list: Vec::new(), span: target.span, wholeness: Wholeness::Broken }
            };
            let alias = if self.at_keyword(Word::As) {
                self.bump();
                self.ident("an alias")
            } else {
                None
            };
            mixins.push(Mixin { target, args, alias, span: self.since(start) });
        }
        mixins
    }

    pub(super) fn args(&mut self) -> Args<'s> {
        let open = self.bump().span;
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
                    Rest::GoesOn => {}
                    Rest::IsLost => break,
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
    fn recover_in_args(&mut self, open: Span, last: Option<&mut Arg<'s>>) -> Rest {
        let ends = self.on_new_line()
            || self.at_statement()
            || matches!(self.kind(), TokenKind::RBrace | TokenKind::LBrace | TokenKind::Eof)
            || matches!(self.word(0), Word::With | Word::Catch | Word::As);
        if ends {
            self.unclosed(open, TokenKind::RParen);
            return Rest::IsLost;
        }
        self.expected_here("`,` or `)`", |d| d);
        if let Some(arg) = last {
            // What is odd here was meant to be a part of it.
            arg.value.kind = ExprKind::Broken;
        }
        self.skip_element();
        self.eat(TokenKind::RBracket);
        if self.eat(TokenKind::Comma).is_some() || self.at(TokenKind::RParen) {
            return Rest::GoesOn;
        }
        Rest::IsLost
    }

    fn arg(&mut self, open: Span) -> Option<Arg<'s>> {
        if self.at(TokenKind::Ident) && self.ahead[1].kind == TokenKind::Assign {
            let name = self.ident("a name")?;
            self.bump();
            let value = self.expr();
            return Some(Arg { name, value: self.no_assignment(value) });
        }
        if self.at(TokenKind::Ident) && self.ahead[1].kind == TokenKind::Colon {
            let name = self.ident("a name")?;
            let help = format!("write `{} = …`", name.text);
            self.expected_with("`=`", |d| d.help(help));
            self.bump();
            return Some(Arg { name, value: self.expr() });
        }
        if self.at(TokenKind::Assign) {
            self.expected_here("the name of a parameter", |d| d);
            self.bump();
            self.expr();
            return None;
        }
        if self.lacks_assign() {
            let name = self.ident("a name")?;
            let help = format!("write `{} = …`", name.text);
            self.expected_here("`=`", |d| d.help(help));
            return Some(Arg { name, value: self.expr() });
        }
        let start = self.span();
        let known = self.diagnostics.len();
        let reported = self.after_bad_token()
            || self
                .diagnostics
                .iter()
                .rev()
                .take(1)
                .any(|d| d.code == Code::PositionalArgument && d.place.span.start > open.start);
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

    /// Reports `a = b` in the place of an expression and reads it as `a == b`.
    pub(super) fn no_assignment(&mut self, left: Expr<'s>) -> Expr<'s> {
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
        Expr { kind: ExprKind::Broken, span }
    }

    /// A span for something that should stand at the current token.
    pub(super) fn here(&self) -> Span {
        Span::new(self.span().start, self.span().start)
    }
}

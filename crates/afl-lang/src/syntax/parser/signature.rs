//! Parameters and types.

use super::Parser;
use super::body::SEPARATORS;
use crate::code::Code;
use crate::source::Span;
use crate::syntax::ast::{Ident, Param, Params, TypeExpr, TypeKind, Wholeness};
use crate::syntax::token::{TokenKind, Word};

impl<'s> Parser<'s> {
    pub(super) fn params(&mut self, name: Ident<'s>) -> Params<'s> {
        if self.at(TokenKind::LParen) {
            return self.param_list();
        }
        let help = format!("write the parameters in parentheses, `{}()` if there are none", name.text);
        self.expected_with("`(`", |d| d.help(help));
        if self.at_param() {
            return self.param_list_from(self.here());
        }
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
        if self.at_param() {
            return Some(self.param_list_from(self.here()));
        }
        let start = self.span();
        self.type_expr();
        Some(Params { list: Vec::new(), span: self.since(start), wholeness: Wholeness::Broken })
    }

    fn at_param(&self) -> bool {
        self.at(TokenKind::Ident) && self.ahead[1].kind == TokenKind::Colon
    }

    fn param_list(&mut self) -> Params<'s> {
        let open = self.bump().span;
        self.param_list_from(open)
    }

    /// The parameters behind the parenthesis at `open`.
    fn param_list_from(&mut self, open: Span) -> Params<'s> {
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
            if self.params_are_cut_off() || !self.end_of_element(TokenKind::RParen) {
                params.wholeness = Wholeness::Broken;
                self.unclosed(open, TokenKind::RParen);
                break;
            }
        }
        params.list.shrink_to_fit();
        params.span = self.since(open);
        params
    }

    /// At a token that can only follow the parameters.
    fn params_are_cut_off(&self) -> bool {
        let behind =
            matches!(self.word(0), Word::AndThen | Word::With | Word::Script | Word::Prompt | Word::Catch);
        matches!(self.kind(), TokenKind::Eof | TokenKind::RBrace | TokenKind::LBrace | TokenKind::Arrow)
            || self.at_declaration()
            || behind
                && matches!(self.ahead[1].kind, TokenKind::Ident | TokenKind::LBrace | TokenKind::String)
    }

    pub(super) fn fields(&mut self, open: Span) -> Params<'s> {
        let (mut list, mut wholeness) = (Vec::new(), Wholeness::Whole);
        let closed = self.braced(open, SEPARATORS, Self::at_declaration, |parser| {
            if let Some(field) = parser.param() {
                list.push(field);
            } else {
                wholeness = Wholeness::Broken;
                parser.skip_field();
            }
        });
        if closed == Wholeness::Broken {
            wholeness = closed;
        }
        Params { list, span: self.since(open), wholeness }
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
        let default = if self.eat(TokenKind::Assign).is_some() {
            Some(self.expr())
        } else if (self.at_literal() || self.at(TokenKind::Colon)) && !self.on_new_line() {
            self.expected_here("`=`", |d| d.help("write a default as `name: Type = value`"));
            self.eat(TokenKind::Colon);
            self.eat(TokenKind::Assign);
            Some(self.expr())
        } else {
            None
        };
        Some(Param { name, ty, default, span: self.since(name.span) })
    }

    fn at_literal(&self) -> bool {
        matches!(self.kind(), TokenKind::String | TokenKind::TextBlock | TokenKind::Int | TokenKind::Double)
            || matches!(self.word(0), Word::True | Word::False | Word::Null)
                && !matches!(self.ahead[1].kind, TokenKind::Colon | TokenKind::Assign)
    }

    fn type_expr(&mut self) -> TypeExpr<'s> {
        let start = self.span();
        if self.at_param() && self.on_new_line() {
            // The next parameter: the type of this one is missing.
            self.expected("a type");
            return TypeExpr { kind: TypeKind::Broken, nullable: false, span: self.here() };
        }
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
            (TokenKind::LESS, _) => {
                let help = "write a list as `[Type]`, a map or anything else as `Json`";
                self.syntax_error(Code::Expected, "types take no parameters", |d| d.help(help));
                while !matches!(self.bump().kind, TokenKind::GREATER | TokenKind::Eof) {}
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
}

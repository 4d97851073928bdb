//! The tail of a signature or a step: scripts, prompts, `andThen`, `when` and `catch`.

use super::Parser;
use crate::code::Code;
use crate::source::Span;
use crate::syntax::ast::{
    BlockSyntax, BodySyntax, CaseSyntax, Catch, CatchKind, Clause, ClauseKind, Condition, ExprSyntaxKind,
    Foreach, Prompt, PromptEntry, ScriptBody, ScriptSyntax, StringLit, When,
};
use crate::syntax::script;
use crate::syntax::token::{TokenKind, Word};

/// After so many scripts without an end no more ends are looked for: each search costs the rest of the text.
const MAX_OPEN_SCRIPTS: u32 = 16;

/// Between the entries of braces that hold no statements.
pub(super) const SEPARATORS: &[TokenKind] = &[TokenKind::Semicolon, TokenKind::Comma];

impl<'s> Parser<'s> {
    pub(super) fn facet_body(&mut self) -> BodySyntax<'s> {
        let mut body = BodySyntax::default();
        if self.word(0) == Word::Script {
            body.script = self.script();
        } else if self.word(0) == Word::Prompt {
            body.prompt = self.prompt();
        }
        self.clauses(&mut body);
        if body.clauses.is_empty() && self.at(TokenKind::LBrace) {
            self.expected_with("`andThen`", |d| d.help("write `andThen { … }`"));
            let start = self.span();
            let kind = ClauseKind::Block(self.block());
            body.clauses.push(Clause { kind, span: self.since(start) });
            self.clauses(&mut body);
        }
        body
    }

    /// The clauses and the `catch` behind them.
    pub(super) fn clauses(&mut self, body: &mut BodySyntax<'s>) {
        while self.at_and_then() {
            body.clauses.extend(self.clause());
        }
        if self.at_keyword(Word::Catch) {
            body.catch = self.catch();
        }
    }

    fn at_and_then(&mut self) -> bool {
        if self.word(0) == Word::AndThen {
            return self.at_keyword(Word::AndThen);
        }
        let spelling = self.spelling(0);
        let bare = match self.word(0) {
            Word::Foreach => self.ahead[1].kind == TokenKind::Ident,
            Word::When => self.ahead[1].kind == TokenKind::LBrace,
            _ => false,
        };
        let misspelt = spelling.eq_ignore_ascii_case("andThen")
            && matches!(self.ahead[1].kind, TokenKind::LBrace | TokenKind::Ident);
        if misspelt {
            self.expected_here("`andThen`", |d| d);
        } else if bare {
            self.expected_here("`andThen`", |d| d.help(format!("write `andThen {spelling} …`")));
        }
        misspelt || bare
    }

    fn clause(&mut self) -> Option<Clause<'s>> {
        let start = self.span();
        if !matches!(self.word(0), Word::Foreach | Word::When) {
            self.bump();
        }
        let kind = match self.word(0) {
            Word::For => {
                self.expected_here("`foreach`", |d| d);
                ClauseKind::Foreach(self.foreach()?)
            }
            Word::Foreach => ClauseKind::Foreach(self.foreach()?),
            Word::When => ClauseKind::When(self.when()?),
            Word::Script => ClauseKind::Script(self.script()?),
            _ if self.at(TokenKind::LBrace) => ClauseKind::Block(self.block()),
            _ => {
                if !self.at_block_content() {
                    self.expected("`{`, `foreach`, `when` or `script` behind `andThen`");
                    return None;
                }
                self.expected("`{`");
                ClauseKind::Block(self.block_without_brace())
            }
        };
        Some(Clause { kind, span: self.since(start) })
    }

    fn foreach(&mut self) -> Option<Foreach<'s>> {
        self.bump();
        let paren = self.at(TokenKind::LParen);
        if paren {
            self.expected_here("a variable behind `foreach`", |d| d.help("leave the parentheses out"));
            self.bump();
        }
        let variable = self.ident("a variable behind `foreach`")?;
        if self.word(0) == Word::In {
            self.bump();
        } else {
            let help = format!("write `foreach {} in $.list {{ … }}`", variable.text);
            self.expected_here("`in`", |d| d.help(help));
            if matches!(self.kind(), TokenKind::Ident | TokenKind::Colon | TokenKind::Assign) {
                self.bump();
            }
        }
        let iterable = self.expr();
        if paren {
            self.eat(TokenKind::RParen);
        }
        let block = self.required_block()?;
        Some(Foreach { variable, iterable, block })
    }

    /// A block that must be here; reports where there is none.
    fn required_block(&mut self) -> Option<BlockSyntax<'s>> {
        if self.at(TokenKind::LBrace) {
            return Some(self.block());
        }
        self.expected("`{`");
        self.at_block_content().then(|| self.block_without_brace())
    }

    fn when(&mut self) -> Option<When<'s>> {
        let start = self.bump().span;
        let open = self.eat(TokenKind::LBrace).map(|open| open.span);
        if open.is_none() {
            self.expected_with("`{`", |d| d.help("write `when { case condition => { … } case _ => { … } }`"));
            if !self.at_case() {
                return None;
            }
        }
        let open = open.unwrap_or_else(|| self.here());
        self.whens += 1;
        let cases = self.nested(|parser| parser.cases(open));
        self.whens -= 1;
        let cases = cases?;
        let when = When { cases, span: self.since(start) };
        self.check_default_case(&when, start);
        Some(when)
    }

    fn cases(&mut self, open: Span) -> Vec<CaseSyntax<'s>> {
        let mut cases = Vec::new();
        self.braced(open, SEPARATORS, Self::at_declaration, |parser| {
            if parser.at_case() {
                cases.extend(parser.case());
                return;
            }
            parser.expected_here("`case`", |d| d.help("write `case condition => { … }`"));
            while !matches!(parser.kind(), TokenKind::RBrace | TokenKind::Eof)
                && parser.word(0) != Word::Case
                && !parser.at_declaration()
            {
                parser.skip_brackets();
            }
        });
        cases
    }

    /// At a case, or at what other languages begin one with.
    fn at_case(&self) -> bool {
        match self.word(0) {
            Word::Case | Word::Default | Word::Else => true,
            Word::Underscore => self.ahead[1].kind == TokenKind::Arrow,
            _ => false,
        }
    }

    fn case(&mut self) -> Option<CaseSyntax<'s>> {
        let start = self.span();
        if self.word(0) != Word::Case {
            self.expected_here("`case`", |d| d.help("write `case _ => { … }`"));
        }
        let otherwise = self.word(0) != Word::Case
            || self.word(1) == Word::Underscore
                && matches!(
                    self.ahead[2].kind,
                    TokenKind::Arrow | TokenKind::Colon | TokenKind::MINUS | TokenKind::LBrace
                );
        let word = self.bump().span;
        let mut condition = if otherwise {
            Condition::Otherwise(if self.word(0) == Word::Underscore { self.bump().span } else { word })
        } else if self.at(TokenKind::Arrow) {
            self.expected_here("a condition or `_`", |d| d);
            Condition::Otherwise(word)
        } else {
            let condition = self.expr();
            Condition::If(self.no_assignment(condition))
        };
        if self.eat(TokenKind::Arrow).is_none() {
            self.expected_arrow(|d| d.help("write `case condition => { … }`"));
            if let (Condition::If(condition), false) = (&mut condition, self.at(TokenKind::LBrace)) {
                // The unexpected token was meant as a part of the condition.
                condition.kind = ExprSyntaxKind::Broken;
                self.skip_to_case_block();
            }
        }
        let block = self.required_block()?;
        Some(CaseSyntax { condition, block, span: self.since(start) })
    }

    /// Skips unexpected tokens behind a condition, on its line.
    fn skip_to_case_block(&mut self) {
        while !matches!(self.kind(), TokenKind::LBrace | TokenKind::RBrace | TokenKind::Eof)
            && !self.on_new_line()
        {
            self.skip_brackets();
        }
    }

    fn check_default_case(&mut self, when: &When<'s>, keyword: Span) {
        let is_default = |case: &CaseSyntax<'s>| matches!(case.condition, Condition::Otherwise(_));
        match when.cases.iter().position(is_default) {
            None => {
                self.report(Code::WhenWithoutDefault, keyword, "this `when` has no `case _`", |d| {
                    d.help("add `case _ => { … }` as the last case, so that one always applies")
                });
            }
            Some(at) if at + 1 < when.cases.len() => {
                let default = self.place(when.cases[at].span);
                let next = when.cases[at + 1].span;
                self.report(Code::DefaultCaseNotLast, next, "no case behind `case _` is ever taken", |d| {
                    d.related(default, "this case takes everything").help("move `case _` to the end")
                });
            }
            Some(_) => {}
        }
    }

    fn catch(&mut self) -> Option<Catch<'s>> {
        let start = self.bump().span;
        let kind = if self.word(0) == Word::When {
            CatchKind::When(self.when()?)
        } else {
            CatchKind::Block(self.required_block()?)
        };
        Some(Catch { kind, span: self.since(start) })
    }

    fn script(&mut self) -> Option<ScriptSyntax<'s>> {
        let start = self.bump().span;
        let language = if self.at(TokenKind::Ident) { self.ident("a language") } else { None };
        let body = if self.at(TokenKind::LBrace) {
            self.script_braces(language.map(|name| name.text))
        } else {
            ScriptBody::Text(self.string()?)
        };
        Some(ScriptSyntax { language, body, span: self.since(start) })
    }

    /// The raw text between braces; the lexer goes on behind them.
    fn script_braces(&mut self, language: Option<&str>) -> ScriptBody<'s> {
        let open = self.span();
        let start = open.end;
        self.forget_lookahead(start);
        let rest = &self.text[start as usize..];
        let searched = if self.open_scripts < MAX_OPEN_SCRIPTS { rest } else { "" };
        let Some(length) = script::body_length(searched, language, &mut self.patience) else {
            self.open_scripts += 1;
            self.report(Code::UnterminatedScript, open, "this script never ends", |d| {
                d.help("close it with `}`")
            });
            let body = Span::new(start, start + script::until_declaration(rest) as u32);
            self.lexer.seek(body.end);
            self.refill();
            return ScriptBody::Braces(self.slice(body), body);
        };
        let span = Span::new(start, start + length as u32);
        self.lexer.seek(span.end);
        self.refill();
        self.bump();
        ScriptBody::Braces(self.slice(span), span)
    }

    /// Drops the comments and diagnostics from `start` on: the text there is no AFL.
    fn forget_lookahead(&mut self, start: u32) {
        while self.comments.pop_if(|comment| comment.span.start >= start).is_some() {}
        while self.diagnostics.pop_if(|diagnostic| diagnostic.place.span.start >= start).is_some() {}
        while self.bad_tokens.pop_if(|end| *end > start).is_some() {}
    }

    fn prompt(&mut self) -> Option<Prompt<'s>> {
        let start = self.bump().span;
        let Some(open) = self.eat(TokenKind::LBrace) else {
            self.expected_with("`{`", |d| d.help("write `prompt { template \"…\" }`"));
            return None;
        };
        let mut entries = Vec::new();
        self.braced(open.span, SEPARATORS, Self::at_declaration, |parser| {
            if parser.at(TokenKind::Ident) {
                entries.extend(parser.prompt_entry());
            } else {
                parser.expected_with("an entry of the prompt", |d| d.help("write `template \"…\"`"));
                parser.skip_brackets();
            }
        });
        Some(Prompt { entries, span: self.since(start) })
    }

    fn prompt_entry(&mut self) -> Option<PromptEntry<'s>> {
        let key = self.ident("a key")?;
        if let TokenKind::Colon | TokenKind::Assign = self.kind() {
            let help = format!("write `{} \"…\"`", key.text);
            self.expected_with("a string", |d| d.help(help));
            self.bump();
        }
        if self.at(TokenKind::Ident) && self.ahead[1].kind == TokenKind::String {
            let help = "leave it out: `{name}` is put in by itself";
            self.expected_here("a string", |d| d.help(help));
            self.bump();
        }
        let value = self.string().unwrap_or_else(|| {
            while !matches!(self.kind(), TokenKind::RBrace | TokenKind::Eof | TokenKind::Ident) {
                self.skip_brackets();
            }
            // The entry is there, only its text is not.
            StringLit { raw: "", span: key.span }
        });
        Some(PromptEntry { key, value })
    }
}

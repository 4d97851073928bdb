//! Blocks and their statements.

use super::Parser;
use super::call::{Caller, YIELD_HELP};
use crate::code::Code;
use crate::limits::MAX_STATEMENTS_PER_BLOCK;
use crate::source::Span;
use crate::syntax::ast::{
    Assert, BlockSyntax, BodySyntax, ExprSyntaxKind, LogSyntax, NAMELESS, StatementSyntax, StepSyntax, Yield,
};
use crate::syntax::token::{TokenKind, Word};

impl<'s> Parser<'s> {
    /// A block in braces; the parser stands at the opening one.
    pub(super) fn block(&mut self) -> BlockSyntax<'s> {
        let open = self.span();
        let statements = self.nested(|parser| {
            let open = parser.bump().span;
            parser.statements(open)
        });
        self.finished(statements.unwrap_or_default(), open)
    }

    /// A block whose opening brace is missing and has been reported.
    pub(super) fn block_without_brace(&mut self) -> BlockSyntax<'s> {
        let open = self.here();
        let statements = self.nested(|parser| parser.statements(open)).unwrap_or_default();
        self.finished(statements, open)
    }

    /// At a token that can only stand inside a block.
    pub(super) fn at_block_content(&self) -> bool {
        let is_step = self.at(TokenKind::Ident) && self.ahead[1].kind == TokenKind::Assign;
        is_step || self.at_yield() || self.word(0) == Word::Sys && self.ahead[1].kind == TokenKind::Dot
    }

    fn finished(&mut self, mut statements: Vec<StatementSyntax<'s>>, open: Span) -> BlockSyntax<'s> {
        // Most blocks are short, and the room that a list grows by is larger than they are.
        statements.shrink_to_fit();
        let block = BlockSyntax { statements, span: self.since(open) };
        self.check_size(&block);
        self.check_order(&block);
        block
    }

    fn statements(&mut self, open: Span) -> Vec<StatementSyntax<'s>> {
        let mut statements = Vec::new();
        let is_cut_off =
            |parser: &Self| parser.at_declaration() || parser.whens > 0 && parser.at_keyword(Word::Case);
        self.braced(open, &[TokenKind::Semicolon], is_cut_off, |parser| {
            statements.extend(parser.statement());
        });
        statements
    }

    fn statement(&mut self) -> Option<StatementSyntax<'s>> {
        if self.at(TokenKind::Ident) && matches!(self.ahead[1].kind, TokenKind::Assign | TokenKind::Colon) {
            return self.step().map(StatementSyntax::Step);
        }
        if self.at(TokenKind::Assign) {
            self.expected_here("the name of a step", |d| d);
            self.lost.push(NAMELESS);
            self.skip_brackets();
            self.skip_statement();
            return None;
        }
        match self.word(0) {
            Word::Yield => self.yield_statement().map(StatementSyntax::Yield),
            Word::Sys if self.ahead[1].kind == TokenKind::Dot => self.sys(),
            _ => {
                self.not_a_statement();
                None
            }
        }
    }

    fn step(&mut self) -> Option<StepSyntax<'s>> {
        let name = self.ident("the name of the step")?;
        if self.at(TokenKind::Colon) {
            let help = format!("write `{} = Facet(…)`", name.text);
            self.expected_here("`=`", |d| d.help(help));
            self.bump();
        }
        self.eat(TokenKind::Assign);
        if self.at_word_before_call() {
            let (word, facet) = (self.spelling(0), self.spelling(1));
            let message = format!("`{word}` before a call means nothing");
            let help = format!("leave it out: `{} = {facet}(…)`", name.text);
            self.syntax_error(Code::NotAStatement, message, |d| d.help(help));
            self.bump();
        }
        let call = if self.at_value() {
            self.report_plain_value(self.span());
            self.missing_call()
        } else if self.at_statement() {
            self.expected("a call such as `Facet(name = value)`");
            self.missing_call()
        } else {
            self.call(Caller::Step)
        };
        if call.target.is_missing() {
            self.skip_statement();
            return Some(StepSyntax { name, call, body: BodySyntax::default(), span: self.since(name.span) });
        }
        let mut body = BodySyntax::default();
        self.clauses(&mut body);
        if !self.ends_statement() {
            let help = if self.at(TokenKind::Comma) {
                "remove the comma: steps stand on lines of their own, or are separated by `;`"
            } else {
                "a step is one call; put expressions into its arguments, as in `x = Facet(value = a.b + 1)`"
            };
            self.expected_with("the end of the step", |d| d.help(help));
            if self.eat(TokenKind::Comma).is_none() {
                self.skip_statement();
            }
        }
        Some(StepSyntax { name, call, body, span: self.since(name.span) })
    }

    /// At `await Facet(`, `new Facet(` and the like.
    fn at_word_before_call(&self) -> bool {
        let [word, facet, paren] = self.ahead;
        word.kind == TokenKind::Ident
            && facet.kind == TokenKind::Ident
            && paren.kind == TokenKind::LParen
            && !self.slice(word.span.to(facet.span)).contains('\n')
    }

    /// At something that begins an expression and cannot begin a call.
    fn at_value(&self) -> bool {
        let in_namespace = self.ahead[1].kind == TokenKind::Dot && self.ahead[2].kind == TokenKind::Ident;
        match self.kind() {
            // A namespace may begin with a digit.
            TokenKind::Int | TokenKind::NumberWord if in_namespace => false,
            TokenKind::Ident => matches!(self.word(0), Word::True | Word::False | Word::Null),
            TokenKind::LBrace
            | TokenKind::HashBrace
            | TokenKind::MINUS
            | TokenKind::NOT
            | TokenKind::OpenString
            | TokenKind::Misquoted
            | TokenKind::TextBlock
            | TokenKind::NumberWord => true,
            _ => self.begins_operand(0),
        }
    }

    fn ends_statement(&self) -> bool {
        matches!(self.kind(), TokenKind::Ident | TokenKind::RBrace | TokenKind::Semicolon | TokenKind::Eof)
            || self.on_new_line()
            || self.previous_end == 0
    }

    fn yield_statement(&mut self) -> Option<Yield<'s>> {
        let start = self.bump().span;
        let call = self.call(Caller::Yield);
        if call.target.is_missing() {
            self.skip_statement();
            return None;
        }
        Some(Yield { call, span: self.since(start) })
    }

    fn sys(&mut self) -> Option<StatementSyntax<'s>> {
        let start = self.bump().span;
        self.bump();
        let word = self.word(0);
        if !matches!(word, Word::Log | Word::Assert) || self.ahead[1].kind != TokenKind::LParen {
            self.expected_with("`log(…)` or `assert(…)` behind `sys.`", |d| d);
            self.skip_statement();
            return None;
        }
        self.bump();
        if word == Word::Log {
            let args = self.args();
            return Some(StatementSyntax::Log(LogSyntax { args, span: self.since(start) }));
        }
        let open = self.bump().span;
        let condition = self.expr();
        let mut condition = self.no_assignment(condition);
        if self.eat(TokenKind::RParen).is_none() {
            self.unclosed(open, TokenKind::RParen);
            self.skip_statement();
            condition.kind = ExprSyntaxKind::Broken;
        }
        Some(StatementSyntax::Assert(Assert { condition, span: self.since(start) }))
    }

    fn not_a_statement(&mut self) {
        let word = self.spelling(0);
        let help = match (word, self.ahead[1].kind) {
            ("let" | "var" | "const" | "val", _) => {
                "leave the word out: a step is `name = Facet(…)`".to_owned()
            }
            ("return", _) => YIELD_HELP.to_owned(),
            ("if" | "switch" | "match" | "else", _) => {
                "choose with `andThen when { case condition => { … } case _ => { … } }` behind a call or a signature".to_owned()
            }
            ("for" | "while", _) => {
                "repeat with `andThen foreach x in list { … }` behind a call or a signature".to_owned()
            }
            ("try", _) => "rescue a step with `catch` behind its call: `name = Facet(…) catch { … }`".to_owned(),
            ("case", _) => "cases stand in a `when`: `andThen when { case condition => { … } }`".to_owned(),
            ("foreach" | "when" | "andThen" | "catch" | "with" | "as", _) => {
                format!("`{word}` stands behind a call or a signature")
            }
            ("use" | "import", _) => "imports stand at the top of a namespace".to_owned(),
            (_, TokenKind::LParen | TokenKind::Dot) => {
                format!("give the step a name: `name = {word}(…)`")
            }
            _ => "a statement is `name = Facet(…)`, `yield Facet(…)`, `sys.log(…)` or `sys.assert(…)`"
                .to_owned(),
        };
        let message = format!("expected a statement, found {}", self.found());
        self.syntax_error(Code::NotAStatement, message, |d| d.help(help));
        if matches!(word, "let" | "var" | "const" | "val") && self.ahead[1].kind == TokenKind::Ident {
            self.bump();
            return;
        }
        self.skip_brackets();
        self.skip_statement();
    }

    fn check_size(&mut self, block: &BlockSyntax<'s>) {
        if block.statements.len() > MAX_STATEMENTS_PER_BLOCK {
            let message = format!(
                "this block has {} statements; at most {MAX_STATEMENTS_PER_BLOCK} can run",
                block.statements.len()
            );
            let open = Span::new(block.span.start, block.span.start + 1);
            self.report(Code::TooManyStatements, open, message, |d| {
                d.help("use `foreach`, or divide the work among facets")
            });
        }
    }

    /// Yields come last.
    fn check_order(&mut self, block: &BlockSyntax<'s>) {
        let is_yield = |statement: &&StatementSyntax<'s>| matches!(statement, StatementSyntax::Yield(_));
        let Some(first) = block.statements.iter().position(|statement| is_yield(&statement)) else { return };
        let Some(step) = block.statements[first..].iter().find(|statement| !is_yield(statement)) else {
            return;
        };
        let place = self.place(block.statements[first].span());
        self.report(Code::StepAfterYield, step.span(), "yields come last in a block", |d| {
            d.related(place, "the first yield is here").help("move this statement above the yields")
        });
    }
}

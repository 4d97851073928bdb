//! The tail of a signature or a call: mixins, scripts, prompts, clauses and their blocks.

use super::layout::Break;
use super::printer::Printer;
use crate::source::Span;
use crate::syntax::ast::{
    Assert, BlockSyntax, BodySyntax, CallSyntax, CaseSyntax, Catch, CatchKind, Clause, ClauseKind, Condition,
    ExprSyntax, ExprSyntaxKind, MixinSyntax, Prompt, PromptEntry, ScriptBody, ScriptSyntax, StatementSyntax,
    When,
};

/// The tail of a call that cannot have a body.
pub(super) static NO_BODY: BodySyntax<'static> =
    BodySyntax { script: None, prompt: None, clauses: Vec::new(), catch: None };

impl<'t> Printer<'t> {
    pub(super) fn call(&mut self, call: &'t CallSyntax<'t>, body: &'t BodySyntax<'t>) {
        self.qname(&call.target);
        self.args(&call.args);
        self.tail(&call.mixins, body);
    }

    /// The tail behind the closing parenthesis of a signature or a call.
    pub(super) fn tail(&mut self, mixins: &'t [MixinSyntax<'t>], body: &'t BodySyntax<'t>) {
        // Blocks in a row read as a sequence only if they look alike.
        let spread = if parts(body).count() > 1 { Spread::OverLines } else { Spread::AsWritten };
        let script = body.script.as_ref().filter(|script| self.is_on_one_line(literal_of(script)));
        let mut parts = parts(body).skip(usize::from(script.is_some()));
        if !mixins.is_empty() || script.is_some() {
            let group = self.layout.open();
            self.layout.indent();
            for mixin in mixins {
                self.mixin(mixin);
            }
            if let Some(script) = script {
                self.line_end_before(script.span.start);
                self.script(script);
            }
            self.layout.dedent();
            let next = parts.next();
            if let Some((start, _)) = next {
                self.line_end_before(start);
            }
            self.layout.close(group);
            if let Some((_, part)) = next {
                self.part(part, spread);
            }
        }
        for (start, part) in parts {
            self.token(start, " ");
            self.part(part, spread);
        }
    }

    fn line_end_before(&mut self, start: u32) {
        self.reach(start);
        self.layout.break_line(Break::Space);
    }

    fn mixin(&mut self, mixin: &'t MixinSyntax<'t>) {
        self.line_end_before(mixin.span.start);
        self.layout.text("with ");
        self.qname(&mixin.target);
        self.args(&mixin.args);
        if let Some(alias) = &mixin.alias {
            self.token(alias.span.start, " as ");
            self.layout.text(alias.text);
        }
    }

    fn part(&mut self, part: BodyPart<'t>, spread: Spread) {
        match part {
            BodyPart::Script(script) => self.script(script),
            BodyPart::Prompt(prompt) => self.prompt(prompt),
            BodyPart::Clause(clause) => self.clause(clause, spread),
            BodyPart::Catch(catch) => {
                self.layout.text("catch ");
                match &catch.kind {
                    CatchKind::Block(block) => self.block(block, spread),
                    CatchKind::When(when) => self.when(when),
                }
            }
        }
    }

    fn clause(&mut self, clause: &'t Clause<'t>, spread: Spread) {
        self.layout.text("andThen ");
        match &clause.kind {
            ClauseKind::Block(block) => self.block(block, spread),
            ClauseKind::Foreach(foreach) => {
                self.layout.text("foreach ");
                self.ident(&foreach.variable);
                self.layout.text(" in ");
                self.condition(&foreach.iterable, foreach.block.span.start);
                self.block(&foreach.block, spread);
            }
            ClauseKind::When(when) => self.when(when),
            ClauseKind::Script(script) => self.script(script),
        }
    }

    fn script(&mut self, script: &'t ScriptSyntax<'t>) {
        self.token(script.span.start, "script ");
        if let Some(language) = &script.language {
            self.ident(language);
            self.layout.text(" ");
        }
        self.literal(literal_of(script));
        // A Python comment reaches to the end of its line. If it may hide the closing brace, the brace
        // goes to a line of its own.
        let ends_in_comment = |body: &str| body.rsplit('\n').next().is_some_and(|line| line.contains('#'));
        if let ScriptBody::Braces(body, _) = script.body
            && ends_in_comment(body)
        {
            self.layout.end_line();
        }
    }

    fn prompt(&mut self, prompt: &'t Prompt<'t>) {
        self.layout.text("prompt ");
        let start = |entry: &PromptEntry<'t>| entry.key.span.start;
        self.braces(prompt.span, &prompt.entries, start, |printer, entry| {
            printer.ident(&entry.key);
            printer.layout.text(" ");
            printer.literal(entry.value.span);
        });
    }

    fn when(&mut self, when: &'t When<'t>) {
        self.token(when.span.start, "when ");
        self.braces(when.span, &when.cases, |case| case.span.start, Self::case);
    }

    fn case(&mut self, case: &'t CaseSyntax<'t>) {
        self.layout.text("case ");
        match &case.condition {
            Condition::If(condition) => self.condition(condition, case.block.span.start),
            Condition::Otherwise(span) => self.token(span.start, "_ "),
        }
        self.layout.text("=> ");
        self.block(&case.block, Spread::AsWritten);
    }

    /// An expression before something that ends in a block. If it takes several lines, the block's
    /// opening begins a line, lest it be read as a part of the expression.
    fn condition(&mut self, expr: &'t ExprSyntax<'t>, block: u32) {
        self.reach(expr.span.start);
        match expr.kind {
            ExprSyntaxKind::Binary(..) | ExprSyntaxKind::Concat(_) => {
                let group = self.layout.open();
                self.chain(expr);
                self.line_end_before(block);
                self.layout.close(group);
            }
            _ => {
                self.expr(expr);
                self.token(block, " ");
            }
        }
    }

    fn block(&mut self, block: &'t BlockSyntax<'t>, spread: Spread) {
        self.reach(block.span.start);
        let is_short = matches!(block.statements.as_slice(), [only] if is_simple(only));
        let is_line = self.is_on_one_line(block.span) && !self.comments.is_doc_before(block.span.end);
        if spread == Spread::AsWritten && is_short && is_line {
            return self.one_liner(block);
        }
        let start = |statement: &StatementSyntax<'t>| statement.span().start;
        self.braces(block.span, &block.statements, start, Self::statement);
    }

    /// A block on one line, or with one statement on its own line.
    fn one_liner(&mut self, block: &'t BlockSyntax<'t>) {
        self.short_braces(block.span, |printer| {
            printer.layout.break_line(Break::Space);
            for statement in &block.statements {
                printer.statement(statement);
            }
        });
    }

    fn statement(&mut self, statement: &'t StatementSyntax<'t>) {
        self.reach(statement.span().start);
        match statement {
            StatementSyntax::Step(step) => {
                self.ident(&step.name);
                self.layout.text(" = ");
                self.call(&step.call, &step.body);
            }
            StatementSyntax::Log(log) => {
                self.layout.text("sys.log");
                self.args(&log.args);
            }
            StatementSyntax::Assert(assert) => self.assert(assert),
            StatementSyntax::Yield(yielded) => {
                self.layout.text("yield ");
                self.call(&yielded.call, &NO_BODY);
            }
        }
    }

    fn assert(&mut self, assert: &'t Assert<'t>) {
        self.layout.text("sys.assert");
        self.reach_bracket(assert.span.start, '(', assert.condition.span.start);
        self.layout.text("(");
        self.enclosed(&assert.condition, assert.span.end - 1);
        self.layout.text(")");
    }
}

/// A part of a body; all but the first share a line with the closing brace of the one before.
#[derive(Clone, Copy, Debug)]
enum BodyPart<'t> {
    Script(&'t ScriptSyntax<'t>),
    Prompt(&'t Prompt<'t>),
    Clause(&'t Clause<'t>),
    Catch(&'t Catch<'t>),
}

/// Whether a block that was written on one line may stay there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Spread {
    AsWritten,
    OverLines,
}

/// The parts of a body, each with its start.
fn parts<'t>(body: &'t BodySyntax<'t>) -> impl Iterator<Item = (u32, BodyPart<'t>)> {
    let script = body.script.iter().map(|script| (script.span.start, BodyPart::Script(script)));
    let prompt = body.prompt.iter().map(|prompt| (prompt.span.start, BodyPart::Prompt(prompt)));
    let clauses = body.clauses.iter().map(|clause| (clause.span.start, BodyPart::Clause(clause)));
    let catch = body.catch.iter().map(|catch| (catch.span.start, BodyPart::Catch(catch)));
    script.chain(prompt).chain(clauses).chain(catch)
}

/// The body of a script, with its quotes or braces.
fn literal_of(script: &ScriptSyntax<'_>) -> Span {
    match &script.body {
        ScriptBody::Text(literal) => literal.span,
        ScriptBody::Braces(_, span) => Span::new(span.start - 1, span.end + 1),
    }
}

/// Whether a statement has no block of its own.
fn is_simple(statement: &StatementSyntax<'_>) -> bool {
    match statement {
        StatementSyntax::Step(step) => parts(&step.body).next().is_none(),
        StatementSyntax::Log(_) | StatementSyntax::Assert(_) | StatementSyntax::Yield(_) => true,
    }
}

//! Clauses: the blocks, `foreach`, `when` and `catch` behind an owner.

use std::rc::Rc;

use super::Checker;
use super::scope::{
    BlockFrame, BlockKind, EarlierStep, FrameMode, Instance, OwnerFrame, Variable, YieldedAttribute,
};
use super::ty::{OperandKind, Type};
use crate::code::Code;
use crate::program::{
    AndThenBlock, BlockContent, CatchClause, CatchContent, ForeachClause, WhenBlock, WhenCase,
};
use crate::source::Span;
use crate::syntax::ast::{
    BodySyntax, CaseSyntax, Catch, CatchKind, Clause, ClauseKind, Condition, ExprSyntax, Foreach, Ident, When,
};

/// A checked body, and what it yields to its owner.
#[derive(Default)]
pub(super) struct CheckedBody<'a> {
    pub(super) blocks: Vec<AndThenBlock>,
    pub(super) catch: Option<CatchClause>,
    pub(super) yielded: Vec<YieldedAttribute<'a>>,
    /// A yield has an error: it may have meant the return that seems missing.
    pub(super) yields_in_doubt: bool,
}

impl<'a> Checker<'a> {
    /// The clauses and the `catch` of `owner`, whose id is `id`.
    pub(super) fn body(
        &mut self,
        owner: &Rc<Instance<'a>>,
        body: &'a BodySyntax<'a>,
        id: &str,
    ) -> CheckedBody<'a> {
        if body.clauses.is_empty() && body.catch.is_none() {
            return CheckedBody::default();
        }
        self.push_frame(owner, FrameMode::Normal);
        self.frame().clauses = &body.clauses;
        let mut blocks = Vec::with_capacity(body.clauses.len());
        for (position, clause) in body.clauses.iter().enumerate() {
            blocks.push(self.clause(clause, position as u32, format!("{id}/{position}")));
            if position + 1 < body.clauses.len() {
                self.remember_steps(position as u32);
            }
        }
        let OwnerFrame { mut yielded, mut yields_in_doubt, .. } = self.pop_frame();
        self.check_overrides(&yielded);
        let catch = body.catch.as_ref().map(|catch| {
            self.push_frame(owner, FrameMode::Caught);
            self.frame().clauses = &body.clauses;
            let clause = self.catch(catch, format!("{id}/catch"));
            let caught = self.pop_frame();
            yielded.extend(caught.yielded);
            yields_in_doubt |= caught.yields_in_doubt;
            clause
        });
        CheckedBody { blocks, catch, yielded, yields_in_doubt }
    }

    /// Makes the steps of the block just checked visible to later clauses. Those of a `foreach` are
    /// many at once and stay hidden.
    fn remember_steps(&mut self, clause: u32) {
        let frame = self.frame();
        if frame.block.kind == BlockKind::Plain {
            for step in &frame.block.steps {
                frame.earlier.insert(step.name, EarlierStep { clause, instance: Rc::clone(&step.instance) });
            }
        }
    }

    fn clause(&mut self, clause: &'a Clause<'a>, position: u32, id: String) -> AndThenBlock {
        let location = self.location(clause.span);
        self.frame().block = BlockFrame::new(position, BlockKind::Plain);
        let content = match &clause.kind {
            ClauseKind::Block(block) => BlockContent::Steps(self.statements(block, &id)),
            ClauseKind::Foreach(foreach) => self.foreach(foreach, position, &id),
            ClauseKind::When(when) => BlockContent::When(self.when(when, position, &id)),
            ClauseKind::Script(script) => BlockContent::Script(self.script(script)),
        };
        let mut after = std::mem::take(&mut self.frame().block.after);
        after.sort_unstable();
        after.dedup();
        AndThenBlock { id, content, after, location }
    }

    fn foreach(&mut self, foreach: &'a Foreach<'a>, position: u32, id: &str) -> BlockContent {
        self.frame().block = BlockFrame::new(position, BlockKind::Foreach);
        let (iterable, ty) = self.expr(&foreach.iterable);
        let element = self.element_type(&foreach.iterable, &ty);
        self.check_variable(&foreach.variable);
        let name = foreach.variable.text;
        self.frame().variables.push(Variable { name, ty: element });
        let statements = self.statements(&foreach.block, id);
        self.frame().variables.pop();
        let location = self.location(foreach.variable.span.to(foreach.iterable.span));
        BlockContent::Foreach(ForeachClause { variable: name.to_owned(), iterable, location }, statements)
    }

    fn element_type(&mut self, iterable: &ExprSyntax<'a>, ty: &Type) -> Type {
        match (ty.solid(), ty.kind()) {
            (Type::List(of), _) => (**of).clone(),
            (Type::Json | Type::Either(_), _) => Type::Json,
            (_, OperandKind::Record) => Type::String,
            (_, OperandKind::Any | OperandKind::Null) => Type::Broken,
            _ => {
                let message =
                    format!("`foreach` needs a list or a map, but this is {}", ty.show(&self.table));
                self.report(Code::NotIterable, iterable.span, message, |d| {
                    d.help("write `[…]` for a list of one")
                });
                Type::Broken
            }
        }
    }

    /// A variable can be read as `$.v` and as `v`; where `$.v` is something else, only `v` is left.
    fn check_variable(&mut self, variable: &Ident<'a>) {
        let owner = Rc::clone(&self.frame().owner);
        let input = self.owner_attribute(&owner, variable.text).is_some_and(|ty| ty != Type::Broken);
        let shadowed = self.frame().variables.iter().any(|other| other.name == variable.text);
        let name = variable.text;
        let message = if input {
            format!("`$.{name}` is still the input `{name}`; only `{name}` is the element")
        } else if shadowed {
            format!("`{name}` hides the variable of the `foreach` around this one")
        } else {
            return;
        };
        self.report(Code::VariableClash, variable.span, message, |d| {
            d.help("choose another name for the variable")
        });
    }

    fn when(&mut self, when: &'a When<'a>, position: u32, id: &str) -> WhenBlock {
        let mut cases = Vec::with_capacity(when.cases.len());
        let mut after = Vec::new();
        self.calls.whens += 1;
        for (at, case) in when.cases.iter().enumerate() {
            self.frame().block = BlockFrame::new(position, BlockKind::Plain);
            cases.push(self.case(case, format!("{id}/case.{at}")));
            after.append(&mut self.frame().block.after);
        }
        self.calls.whens -= 1;
        // The steps of a case are its own; what the cases wait for, the clause waits for.
        self.frame().block = BlockFrame::new(position, BlockKind::Plain);
        self.frame().block.after = after;
        WhenBlock { cases, location: self.location(when.span) }
    }

    fn case(&mut self, case: &'a CaseSyntax<'a>, id: String) -> WhenCase {
        let location = self.location(case.span);
        let condition = match &case.condition {
            Condition::If(condition) => Some(self.condition(condition)),
            Condition::Otherwise(_) => None,
        };
        let statements = self.statements(&case.block, &id);
        WhenCase { id, condition, statements, location }
    }

    fn catch(&mut self, catch: &'a Catch<'a>, id: String) -> CatchClause {
        let location = self.location(catch.span);
        let content = match &catch.kind {
            CatchKind::Block(block) => CatchContent::Steps(self.statements(block, &id)),
            CatchKind::When(when) => CatchContent::When(self.when(when, 0, &id)),
        };
        CatchClause { id, content, location }
    }

    /// Of two clauses that yield one attribute the later wins: legal, and rarely meant.
    fn check_overrides(&mut self, yielded: &[YieldedAttribute<'a>]) {
        let mut first: rustc_hash::FxHashMap<&str, (u32, Span)> = rustc_hash::FxHashMap::default();
        for one in yielded {
            let (clause, span) = *first.entry(one.attribute).or_insert((one.clause, one.span));
            if clause != one.clause {
                let place = self.place(span);
                let message =
                    format!("`{}` is yielded by an earlier block too; this one wins", one.attribute);
                self.report(Code::YieldOverridden, one.span, message, |d| {
                    d.related(place, "yielded here first").help("yield two attributes, or yield it once")
                });
            }
        }
    }
}

//! The statements of a block, and how they depend on one another.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::Checker;
use super::scope::{Instance, StepInfo};
use super::table::Sort;
use super::ty::Type;
use crate::code::Code;
use crate::program::{AssertStmt, LogStmt, Statement, Statements, StepStmt};
use crate::ring::rings;
use crate::source::FileSpan;
use crate::syntax::ast::{self, BlockSyntax, StepSyntax};

impl<'a> Checker<'a> {
    pub(super) fn statements(&mut self, block: &'a BlockSyntax<'a>, id: &str) -> Statements {
        self.enter_steps(block);
        // Yields come last.
        let is_yield = |it: &ast::StatementSyntax<'a>| matches!(it, ast::StatementSyntax::Yield(_));
        let yields = block.statements.iter().rev().take_while(|it| is_yield(it)).count();
        let steps = Vec::with_capacity(block.statements.len() - yields);
        let mut statements = Statements { steps, yields: Vec::with_capacity(yields) };
        let mut reads: Vec<Vec<u32>> = Vec::new();
        for (at, statement) in block.statements.iter().enumerate() {
            self.frame().block.begin_statement();
            match statement {
                ast::StatementSyntax::Step(step) => {
                    // A repeated step has been reported, and is not part of the block.
                    let Some(position) = self.position_of(step) else { continue };
                    statements.steps.push(Statement::Step(self.step(
                        step,
                        position,
                        format!("{id}/{}", step.name.text),
                    )));
                    reads.push(self.frame().block.reads.clone());
                }
                ast::StatementSyntax::Log(log) => {
                    let location = self.location(log.span);
                    let args = self.free_args(&log.args);
                    let depends_on = self.frame().block.read_names();
                    let id = format!("{id}/log.{at}");
                    statements.steps.push(Statement::Log(LogStmt { id, args, depends_on, location }));
                }
                ast::StatementSyntax::Assert(assert) => {
                    let id = format!("{id}/assert.{at}");
                    statements.steps.push(Statement::Assert(self.assert(assert, id)));
                }
                ast::StatementSyntax::Yield(yielded) => self.yield_to(yielded, id, &mut statements.yields),
            }
        }
        self.check_cycles(&reads);
        statements
    }

    /// Enters the steps of a block before any is checked: references may go forward.
    fn enter_steps(&mut self, block: &'a BlockSyntax<'a>) {
        let mut repeats: FxHashMap<&'a str, Vec<FileSpan>> = FxHashMap::default();
        for statement in &block.statements {
            let ast::StatementSyntax::Step(step) = statement else { continue };
            let instance = Rc::new(self.instance_of(&step.call));
            let place = self.place(step.name.span);
            let frame = self.frame();
            if let Some((first, _)) = frame.block.step(step.name.text) {
                frame.block.steps[first as usize].repeated = true;
                repeats.entry(step.name.text).or_default().push(place);
                continue;
            }
            let index = frame.block.steps.len() as u32;
            frame.block.names.insert(step.name.text, index);
            frame.block.steps.push(StepInfo { name: step.name.text, instance, place, repeated: false });
            if frame.variables.iter().any(|variable| variable.name == step.name.text) {
                self.clash_with_variable(step);
            }
        }
        for (name, others) in repeats {
            self.repeated_step(name, others);
        }
    }

    fn repeated_step(&mut self, name: &'a str, others: Vec<FileSpan>) {
        let Some((_, first)) = self.frame().block.step(name) else { return };
        let span = first.place.span;
        let message = format!("{} steps of this block are called `{name}`", others.len() + 1);
        self.report(Code::DuplicateStep, span, message, |d| {
            d.related_all(others, "another one is here").help("give each step a name of its own")
        });
    }

    /// The bare name would mean the variable, and the step could never be read.
    fn clash_with_variable(&mut self, step: &StepSyntax<'a>) {
        let message =
            format!("the step `{0}` and the variable `{0}` of a `foreach` have one name", step.name.text);
        self.report(Code::DuplicateStep, step.name.span, message, |d| d.help("give the step another name"));
        for variable in self.frame().variables.iter_mut().filter(|one| one.name == step.name.text) {
            variable.ty = Type::Broken;
        }
    }

    fn position_of(&mut self, step: &StepSyntax<'a>) -> Option<u32> {
        let place = self.place(step.name.span);
        let (position, info) = self.frame().block.step(step.name.text)?;
        (info.place == place).then_some(position)
    }

    fn step(&mut self, step: &'a StepSyntax<'a>, position: u32, id: String) -> StepStmt {
        let location = self.location(step.span);
        let instance = Rc::clone(&self.frame().block.steps[position as usize].instance);
        let call = self.call(&step.call, &instance, format!("{id}/call"));
        let depends_on = self.frame().block.read_names();
        self.check_schema_step(step, &instance);
        self.note_calls(step, &instance);
        let body = self.body(&instance, &step.body, &id);
        StepStmt {
            id,
            name: step.name.text.to_owned(),
            call,
            body: body.blocks,
            catch: body.catch,
            depends_on,
            location,
        }
    }

    /// A schema is data: nothing runs when it is made.
    fn check_schema_step(&mut self, step: &'a StepSyntax<'a>, instance: &Instance<'a>) {
        let Some(def) = instance.def.map(|id| &self.table[id]) else { return };
        if def.sort != Sort::Schema {
            return;
        }
        let name = def.name;
        let (what, span) = match (step.call.mixins.first(), step.body.clauses.first(), &step.body.catch) {
            (Some(mixin), _, _) => ("a mixin", mixin.span),
            (_, Some(clause), _) => ("a block", clause.span),
            (_, _, Some(catch)) => ("a `catch`", catch.span),
            (None, None, None) => return,
        };
        let message = format!("`{name}` is a schema; it cannot have {what}");
        self.report(Code::SchemaWithMixin, span, message, |d| {
            d.help("a schema only holds values; put it on the step that does the work")
        });
    }

    fn note_calls(&mut self, step: &'a StepSyntax<'a>, instance: &Instance<'a>) {
        let place = self.place(step.call.target.span);
        // A block of the step's own stands in for those of the facet.
        let entered = instance.def.filter(|_| step.body.clauses.is_empty());
        for callee in entered.into_iter().chain(instance.call_mixins.iter().flatten().copied()) {
            self.calls.note(callee, place);
        }
    }

    fn assert(&mut self, assert: &'a ast::Assert<'a>, id: String) -> AssertStmt {
        let location = self.location(assert.span);
        let condition = self.condition(&assert.condition);
        AssertStmt { id, condition, depends_on: self.frame().block.read_names(), location }
    }

    /// Reports steps that wait for one another. `reads` has what each step reads.
    fn check_cycles(&mut self, reads: &[Vec<u32>]) {
        for ring in rings(reads) {
            let steps = &self.frame().block.steps;
            let names: Vec<&str> = ring.iter().map(|step| steps[*step as usize].name).collect();
            let place = steps[ring[0] as usize].place;
            let message = match names[..] {
                [one] => format!("`{one}` refers to itself"),
                _ => format!("these steps wait for one another: {} → {}", names.join(" → "), names[0]),
            };
            self.report(Code::ReferenceCycle, place.span, message, |d| {
                d.help("a step can read only steps that do not depend on it")
            });
        }
    }
}

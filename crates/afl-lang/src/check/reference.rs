//! References: `$.input`, `step.attribute` and foreach variables.

use std::rc::Rc;

use super::Checker;
use super::scope::{FrameMode, Instance, OwnerFrame};
use super::ty::Type;
use crate::code::Code;
use crate::program::{ExprKind, InputRef, InputSource, StepRef};
use crate::source::{FileSpan, Span};
use crate::syntax::ast::{BlockSyntax, Clause, ClauseKind, Ident, NAMELESS, StatementSyntax};

/// Further names of `$` inside a `catch`.
const CAUGHT: [&str; 2] = ["error", "error_type"];

/// Where a bare name leads.
enum NameTarget<'a> {
    Variable(Type),
    Step { index: u32, instance: Rc<Instance<'a>> },
    EarlierStep { clause: u32, instance: Rc<Instance<'a>> },
}

impl<'a> Checker<'a> {
    /// `$.a.b`.
    pub(super) fn input(&mut self, path: &'a [Ident<'a>], span: Span) -> (ExprKind, Type) {
        let source = InputSource::Owner;
        let compiled = |source| ExprKind::Input(InputRef { path: texts(path), source });
        if self.frames.is_empty() {
            self.not_constant(span);
            return (compiled(source), Type::Broken);
        }
        let owner = Rc::clone(&self.frame().owner);
        let Some((first, rest)) = path.split_first() else {
            let record = |_| self.record(&owner, |name| self.owner_attribute(&owner, name));
            return (compiled(source), owner.def.map_or(Type::Broken, record));
        };
        // Results of a script that runs before the blocks join the inputs, declared or not.
        let has_script = owner.def.is_some_and(|id| self.table[id].has_script());
        let undeclared = has_script.then_some((InputSource::Owner, Type::Json));
        let Some((source, ty)) = self.find_input(first.text).or(undeclared) else {
            self.unknown_input(first);
            return (compiled(source), Type::Broken);
        };
        let ty = self.walk(ty, rest, format!("$.{}", first.text));
        (compiled(source), ty)
    }

    fn find_input(&mut self, name: &str) -> Option<(InputSource, Type)> {
        let owner = Rc::clone(&self.frame().owner);
        let caught = self.frame().mode == FrameMode::Caught && CAUGHT.contains(&name);
        if caught {
            return Some((InputSource::Caught, Type::String));
        }
        let variable = self.variable(name).map(|ty| (InputSource::Foreach, ty));
        // Of a broken owner everything is believed, a known variable first.
        match self.owner_attribute(&owner, name) {
            Some(Type::Broken) if variable.is_some() => variable,
            Some(ty) => Some((InputSource::Owner, ty)),
            None => variable,
        }
    }

    fn variable(&mut self, name: &str) -> Option<Type> {
        self.frame()
            .variables
            .iter()
            .rev()
            .find(|variable| variable.name == name)
            .map(|variable| variable.ty.clone())
    }

    fn unknown_input(&mut self, name: &Ident<'a>) {
        if self.lost.contains(name.text) {
            return;
        }
        let owner = Rc::clone(&self.frame().owner);
        let Some(def) = owner.def.map(|id| &self.table[id]) else { return };
        let message = format!("`{}` has no input `{}`", def.name, name.text);
        let is_step = self.frames.last().is_some_and(|frame| frame.block.step(name.text).is_some());
        let help = if is_step {
            Some(format!("`{0}` is a step: write `{0}`, without `$.`", name.text))
        } else if def.returns.named(name.text).is_some() {
            Some(format!("`{}` is what the block yields; it has no value before that", name.text))
        } else {
            let caught = match self.frames.last().map(|frame| frame.mode) {
                Some(FrameMode::Caught) => &CAUGHT[..],
                Some(FrameMode::Normal) | None => &[],
            };
            let names = def.params.iter().map(|param| param.name).chain(self.variable_names());
            self.did_you_mean(name.text, names.chain(caught.iter().copied()))
        };
        self.report(Code::UnknownInput, name.span, message, |d| d.help_if(help));
    }

    fn variable_names(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.frames.last().into_iter().flat_map(|frame| frame.variables.iter().map(|variable| variable.name))
    }

    /// `step.a.b`, or a foreach variable.
    pub(super) fn name(&mut self, path: &'a [Ident<'a>], span: Span) -> (ExprKind, Type) {
        let (first, rest) = path.split_first().expect("the parser gives every name a first word");
        let step = |clause| ExprKind::Step(StepRef { path: texts(path), clause });
        if self.frames.is_empty() {
            self.not_constant(span);
            return (step(None), Type::Broken);
        }
        match self.find_name(first.text) {
            Some(NameTarget::Variable(ty)) => {
                let ty = self.walk(ty, rest, first.text.to_owned());
                (ExprKind::Input(InputRef { path: texts(path), source: InputSource::Foreach }), ty)
            }
            Some(NameTarget::Step { index, instance }) => {
                self.frame().block.read(index);
                (step(None), self.step_path(&instance, first, rest))
            }
            Some(NameTarget::EarlierStep { clause, instance }) => {
                self.frame().block.wait_for(clause);
                (step(Some(clause)), self.step_path(&instance, first, rest))
            }
            None => {
                self.unknown_name(first, rest);
                (step(None), Type::Broken)
            }
        }
    }

    fn find_name(&mut self, name: &str) -> Option<NameTarget<'a>> {
        if let Some(ty) = self.variable(name) {
            return Some(NameTarget::Variable(ty));
        }
        let frame = self.frame();
        if let Some((index, step)) = frame.block.step(name) {
            let instance = if step.repeated { Rc::default() } else { Rc::clone(&step.instance) };
            return Some(NameTarget::Step { index, instance });
        }
        let step = frame.earlier.get(name)?;
        Some(NameTarget::EarlierStep { clause: step.clause, instance: Rc::clone(&step.instance) })
    }

    fn step_path(&mut self, instance: &Instance<'a>, step: &Ident<'a>, path: &'a [Ident<'a>]) -> Type {
        let Some((attribute, rest)) = path.split_first() else { return self.step_record(instance) };
        let Some(ty) = self.step_attribute(instance, attribute.text) else {
            self.unknown_attribute(instance, step, attribute);
            return Type::Broken;
        };
        self.walk(ty, rest, format!("{}.{}", step.text, attribute.text))
    }

    fn unknown_attribute(&mut self, instance: &Instance<'a>, step: &Ident<'a>, attribute: &Ident<'a>) {
        let Some(def) = instance.def.map(|id| &self.table[id]) else { return };
        let (message, help) = if instance.unset == Some(attribute.text) {
            let message =
                format!("`{}.{}` has no value: the call does not give it one", step.text, attribute.text);
            (message, Some(format!("add `{} = …` to the call", attribute.text)))
        } else {
            let message = format!("`{}` is a `{}`, which has no `{}`", step.text, def.name, attribute.text);
            (message, self.did_you_mean(attribute.text, self.attribute_names(instance)))
        };
        let declared = def.place;
        self.report(Code::UnknownAttribute, attribute.span, message, |d| {
            d.related(declared, "declared here").help_if(help)
        });
    }

    fn unknown_name(&mut self, name: &Ident<'a>, rest: &[Ident<'a>]) {
        if self.lost.contains(name.text) || self.lost.contains(NAMELESS) {
            return;
        }
        if let Some((_, ty)) = self.find_input(name.text)
            && ty != Type::Broken
        {
            let message = format!("`{}` is an input, not a step", name.text);
            self.report(Code::MissingDollar, name.span, message, |d| {
                d.help(format!("write `$.{}`", name.text))
            });
            return;
        }
        if let Some((place, help)) = self.step_elsewhere(name.text) {
            let message = format!("the step `{}` is in another block and cannot be seen here", name.text);
            self.report(Code::StepOutOfReach, name.span, message, |d| {
                d.related(place, "it is here").help(help)
            });
            return;
        }
        let frame = self.frames.last().expect("a name is looked up inside a frame");
        let names = || frame.block.steps.iter().map(|step| step.name).chain(self.variable_names());
        let close = self.closest(name.text, names().chain(frame.earlier.keys().copied()));
        let help = match (close, rest) {
            (Some(close), _) => Some(format!("did you mean `{close}`?")),
            // A name with nothing behind it is more likely no step at all.
            (None, []) => Some(format!("a text is written `\"{0}\"`, an input `$.{0}`", name.text)),
            (None, _) => self.did_you_mean(name.text, names()),
        };
        let message = format!("there is no step `{}` in this block", name.text);
        self.report(Code::UnknownStep, name.span, message, |d| d.help_if(help));
    }

    /// A step of this name in a block around this one or beside it, and how to get at it.
    fn step_elsewhere(&self, name: &str) -> Option<(FileSpan, &'static str)> {
        let (inner, outer) = self.frames.split_last()?;
        let beside = |frame: &OwnerFrame<'a>| {
            let mut clauses = frame.clauses.iter().take_while(|_| !self.is_tired());
            clauses.find_map(|clause| self.step_of(clause, name))
        };
        let around = outer.iter().rev().find_map(|frame| {
            let step = frame.block.step(name).map(|(_, step)| step.place);
            step.or_else(|| beside(frame).map(|(place, _)| place))
        });
        let around = around.map(|place| {
            (place, "pass it as an argument of the step around this block, and read it as `$.…`")
        });
        let beside = || {
            beside(inner).map(|(place, help)| match inner.mode {
                FrameMode::Normal => (place, help),
                FrameMode::Caught => {
                    (place, "a `catch` has `$` and `$.error`, but not the steps of what failed")
                }
            })
        };
        around.or_else(beside)
    }

    fn step_of(&self, clause: &'a Clause<'a>, name: &str) -> Option<(FileSpan, &'static str)> {
        let in_block = |block: &'a BlockSyntax<'a>| {
            self.compared.update(|compared| compared + block.statements.len());
            block.statements.iter().find_map(|statement| match statement {
                StatementSyntax::Step(step) if step.name.text == name => Some(self.place(step.name.span)),
                StatementSyntax::Step(_)
                | StatementSyntax::Log(_)
                | StatementSyntax::Assert(_)
                | StatementSyntax::Yield(_) => None,
            })
        };
        match &clause.kind {
            ClauseKind::Block(block) => in_block(block)
                .map(|place| (place, "a block sees the steps of earlier blocks only: move that one up")),
            ClauseKind::Foreach(foreach) => in_block(&foreach.block).map(|place| {
                (place, "a `foreach` has one such step for each element: yield the attributes you need")
            }),
            ClauseKind::When(when) => when.cases.iter().find_map(|case| in_block(&case.block)).map(|place| {
                (place, "only the steps of its own case are there: yield the attributes you need")
            }),
            ClauseKind::Script(_) => None,
        }
    }

    fn not_constant(&mut self, span: Span) {
        let message = "only constants can stand here, not references";
        self.report(Code::NotConstant, span, message, |d| d.help("give the value where the facet is called"));
    }
}

fn texts(path: &[Ident<'_>]) -> Vec<String> {
    path.iter().map(|segment| segment.text.to_owned()).collect()
}

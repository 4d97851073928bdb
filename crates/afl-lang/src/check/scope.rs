//! The scope of a block: its owner, the foreach variables around it, and steps.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::Checker;
use super::table::{DefId, MixinRef};
use super::ty::Type;
use crate::source::{FileSpan, Span};
use crate::syntax::ast::Clause;

/// A facet or schema as it is used: by a step, or by its own declaration.
#[derive(Debug, Default)]
pub(super) struct Instance<'a> {
    /// `None` where the target has been reported.
    pub(super) def: Option<DefId>,
    /// Whose attributes join those of `def`: the mixins of the signature, then those of the call.
    pub(super) mixins: Vec<MixinRef<'a>>,
    /// The targets of the call's mixins, in order; `None` where one has been reported.
    pub(super) call_mixins: Vec<Option<DefId>>,
    /// A parameter that got no value and may go without: see [`UNSET`](super::args::UNSET).
    pub(super) unset: Option<&'a str>,
}

impl Instance<'_> {
    /// Whether a mixin of the call was reported, and with it attributes are missing.
    pub(super) fn lacks_mixin(&self) -> bool {
        self.call_mixins.iter().any(Option::is_none)
    }
}

/// One level of ownership: everything between an owner and its blocks.
pub(super) struct OwnerFrame<'a> {
    pub(super) owner: Rc<Instance<'a>>,
    /// The foreach variables in sight, the innermost last.
    pub(super) variables: Vec<Variable<'a>>,
    pub(super) mode: FrameMode,
    /// The steps of the owner's earlier blocks, by name; of two the later.
    pub(super) earlier: FxHashMap<&'a str, EarlierStep<'a>>,
    pub(super) block: BlockFrame<'a>,
    /// All clauses of the owner; they explain a wrong reference.
    pub(super) clauses: &'a [Clause<'a>],
    /// The attributes that yields give to the owner itself.
    pub(super) yielded: Vec<YieldedAttribute<'a>>,
    pub(super) yields_in_doubt: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameMode {
    Normal,
    /// Inside a `catch`, where `$.error` exists.
    Caught,
}

#[derive(Clone)]
pub(super) struct Variable<'a> {
    pub(super) name: &'a str,
    pub(super) ty: Type,
}

pub(super) struct EarlierStep<'a> {
    pub(super) clause: u32,
    pub(super) instance: Rc<Instance<'a>>,
}

pub(super) struct YieldedAttribute<'a> {
    pub(super) attribute: &'a str,
    pub(super) clause: u32,
    pub(super) span: Span,
}

/// The block being checked.
#[derive(Default)]
pub(super) struct BlockFrame<'a> {
    /// The position of the clause among its owner's.
    pub(super) clause: u32,
    pub(super) kind: BlockKind,
    pub(super) names: FxHashMap<&'a str, u32>,
    pub(super) steps: Vec<StepInfo<'a>>,
    /// The earlier clauses that the clause reads.
    pub(super) after: Vec<u32>,
    /// The steps that the current statement reads, in the order first read.
    pub(super) reads: Vec<u32>,
    /// For each step, the last statement that read it; keeps `reads` free of repeats at no cost.
    stamps: Vec<u32>,
    statement: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum BlockKind {
    #[default]
    Plain,
    Foreach,
}

pub(super) struct StepInfo<'a> {
    pub(super) name: &'a str,
    pub(super) instance: Rc<Instance<'a>>,
    pub(super) place: FileSpan,
    /// Another step has this name: which one a reference means is unknown.
    pub(super) repeated: bool,
}

impl<'a> BlockFrame<'a> {
    pub(super) fn new(clause: u32, kind: BlockKind) -> Self {
        Self { clause, kind, ..Self::default() }
    }

    pub(super) fn step(&self, name: &str) -> Option<(u32, &StepInfo<'a>)> {
        self.names.get(name).map(|index| (*index, &self.steps[*index as usize]))
    }

    pub(super) fn begin_statement(&mut self) {
        self.statement += 1;
        self.stamps.resize(self.steps.len(), 0);
        self.reads.clear();
    }

    pub(super) fn read(&mut self, step: u32) {
        let stamp = &mut self.stamps[step as usize];
        if *stamp != self.statement {
            *stamp = self.statement;
            self.reads.push(step);
        }
    }

    pub(super) fn wait_for(&mut self, clause: u32) {
        // Repeats go when the clause is complete; most stand side by side.
        if self.after.last() != Some(&clause) {
            self.after.push(clause);
        }
    }

    /// The names of the steps that the current statement reads.
    pub(super) fn read_names(&self) -> Vec<String> {
        self.reads.iter().map(|step| self.steps[*step as usize].name.to_owned()).collect()
    }
}

impl<'a> Checker<'a> {
    pub(super) fn push_frame(&mut self, owner: &Rc<Instance<'a>>, mode: FrameMode) {
        let variables = self.frames.last().map(|frame| frame.variables.clone()).unwrap_or_default();
        self.frames.push(OwnerFrame {
            owner: Rc::clone(owner),
            variables,
            mode,
            earlier: FxHashMap::default(),
            block: BlockFrame::default(),
            clauses: &[],
            yielded: Vec::new(),
            yields_in_doubt: false,
        });
    }

    pub(super) fn pop_frame(&mut self) -> OwnerFrame<'a> {
        self.frames.pop().expect("each pop follows a push")
    }

    pub(super) fn frame(&mut self) -> &mut OwnerFrame<'a> {
        self.frames.last_mut().expect("statements are checked inside a frame")
    }
}

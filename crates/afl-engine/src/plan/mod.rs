//! A compiled program, arranged for the evaluator: every node by number, every reference by place.

mod build;
mod declaration;
mod locate;
mod reads;

use std::ops::Range;
use std::sync::Arc;

use afl_lang::program::{
    Expr, FacetKind, NamedArg, Parameter, Program, PromptBlock, QualifiedName, ScriptBlock,
};
use afl_lang::types::TypeRef;
use rustc_hash::FxHashMap;

use crate::policy::PolicyKind;
use crate::types::{Misfit, Schemas, fits};
use crate::value::{Map, Value};

pub use declaration::{FacetDeclaration, RenderedPrompt};
pub(crate) use locate::{MixinScope, Node};
pub(crate) use reads::{ExprRead, ReadingExpr};

/// The parts of a program that its runs need. Made once for each version and shared.
#[derive(Debug)]
pub struct Plan {
    version: String,
    facets: Vec<Facet>,
    names: FxHashMap<QualifiedName, FacetAt>,
    blocks: Vec<Block>,
    statements: Vec<PlanStatement>,
    pub(crate) schemas: Schemas,
}

/// An index into one of the plan's lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FacetAt(u32);
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockAt(u32);
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StatementAt(u32);

/// The facet or schema that a call names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Callee {
    Facet(FacetAt),
    Schema(QualifiedName),
}

#[derive(Debug)]
pub(crate) struct Facet {
    pub(crate) id: QualifiedName,
    pub(crate) name: Arc<str>,
    pub(crate) doc: Option<String>,
    pub(crate) kind: FacetKind,
    pub(crate) params: Vec<Parameter>,
    pub(crate) returns: Vec<Parameter>,
    pub(crate) mixins: Vec<Mixin>,
    pub(crate) script: Option<ScriptBlock>,
    pub(crate) prompt: Option<PromptBlock>,
    pub(crate) clauses: Vec<BlockAt>,
    pub(crate) catch: Option<BlockAt>,
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) id: Arc<str>,
    pub(crate) content: PlanContent,
    /// Steps, logs and asserts, then yields; the cases of a `when` one after another.
    pub(crate) statements: Vec<StatementAt>,
    /// The clauses of the same owner that must be complete first.
    pub(crate) after: Vec<u32>,
}

#[derive(Debug)]
pub(crate) enum PlanContent {
    Steps,
    Foreach { variable: String, iterable: ReadingExpr },
    When(Vec<PlanCase>),
    Script(ScriptBlock),
}

#[derive(Debug)]
pub(crate) struct PlanCase {
    pub(crate) condition: Option<ReadingExpr>,
    pub(crate) statements: Range<u32>,
}

#[derive(Debug)]
pub(crate) struct PlanStatement {
    pub(crate) id: Arc<str>,
    /// For readable paths.
    pub(crate) name: Arc<str>,
    pub(crate) act: Act,
    /// Statements of the same block by place, and those that wait for this one.
    pub(crate) deps: Vec<u32>,
    pub(crate) dependants: Vec<u32>,
    pub(crate) reads: Vec<ExprRead>,
}

#[derive(Debug)]
pub(crate) enum Act {
    Call(PlanCall),
    Log(Vec<NamedArg>),
    Assert(Expr),
    Yield { target: QualifiedName, alias: Option<String>, args: Vec<NamedArg> },
}

#[derive(Debug)]
pub(crate) struct PlanCall {
    pub(crate) callee: Callee,
    pub(crate) args: Vec<NamedArg>,
    pub(crate) mixins: Vec<Mixin>,
    pub(crate) clauses: Vec<BlockAt>,
    pub(crate) catch: Option<BlockAt>,
}

/// Of a call or of a signature.
#[derive(Debug)]
pub(crate) struct Mixin {
    pub(crate) kind: MixinKind,
    pub(crate) alias: Option<String>,
    pub(crate) args: Vec<NamedArg>,
    pub(crate) reads: Vec<ExprRead>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MixinKind {
    Facet(FacetAt),
    Policy(PolicyKind),
}

impl Plan {
    pub fn new(program: &Program) -> Self {
        build::build(program)
    }

    /// The hash of the program.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The qualified names of all workflows, in order of declaration.
    pub fn workflows(&self) -> impl Iterator<Item = &str> {
        self.facets.iter().filter(|facet| facet.kind == FacetKind::Workflow).map(|facet| &*facet.id)
    }

    /// The parameters of a workflow or facet.
    pub fn parameters(&self, qualified: &str) -> Option<&[Parameter]> {
        Some(&self.facet_named(qualified)?.params)
    }

    pub fn returns(&self, qualified: &str) -> Option<&[Parameter]> {
        Some(&self.facet_named(qualified)?.returns)
    }

    /// The declared results of a facet's work; a script declares none.
    pub fn result(&self, qualified: &str) -> Option<&[Parameter]> {
        self.facet_named(qualified).map(Facet::result)
    }

    /// Checks a reported result against the facet's return clause; the result of a script has none. Undeclared values
    /// are not checked.
    pub fn check_result(&self, facet: &str, result: &Map<String, Value>) -> Result<(), Misfit> {
        let declared = self.result(facet).unwrap_or_default();
        declared.iter().try_for_each(|parameter| match result.get(&parameter.name) {
            Some(value) => fits(&parameter.name, value, &parameter.ty, &self.schemas),
            None => Ok(()),
        })
    }

    /// The results that a facet's work must return, because neither a default nor a block of the facet can.
    pub fn must_return(&self, facet: &str) -> Vec<String> {
        let Some(facet) = self.facet_named(facet).filter(|facet| facet.clauses.is_empty()) else {
            return Vec::new();
        };
        let must = |it: &&Parameter| it.default.is_none() && !matches!(it.ty, TypeRef::Nullable(_));
        facet.returns.iter().filter(must).map(|parameter| parameter.name.clone()).collect()
    }

    /// `get_facet_definition` of document 003 §11.1.
    pub(crate) fn facet_named(&self, qualified: &str) -> Option<&Facet> {
        self.facet_at(qualified).map(|at| self.facet(at))
    }

    pub(crate) fn facet_at(&self, qualified: &str) -> Option<FacetAt> {
        self.names.get(qualified).copied()
    }

    pub(crate) fn facet(&self, at: FacetAt) -> &Facet {
        &self.facets[at.0 as usize]
    }

    pub(crate) fn block(&self, at: BlockAt) -> &Block {
        &self.blocks[at.0 as usize]
    }

    pub(crate) fn statement(&self, at: StatementAt) -> &PlanStatement {
        &self.statements[at.0 as usize]
    }
}

impl Facet {
    /// Whether an agent does its work.
    pub(crate) fn is_event(&self) -> bool {
        self.kind == FacetKind::Event || self.prompt.is_some()
    }

    /// The results of its work. A facet that declares no returns answers in its parameters.
    pub(crate) fn result(&self) -> &[Parameter] {
        if self.returns.is_empty() { &self.params } else { &self.returns }
    }
}

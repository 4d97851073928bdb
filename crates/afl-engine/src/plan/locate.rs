//! From the id of a step to its node in the program.

use std::fmt::Write as _;

use super::{
    Act, Block, BlockAt, Callee, Facet, FacetAt, Mixin, MixinKind, Plan, PlanCall, PlanStatement, StatementAt,
};
use crate::id::{Segment, StepId};

/// The declaration that a stored step is an instance of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Node {
    /// The workflow of the run.
    Root(FacetAt),
    Statement(StatementAt),
    /// A mixin that has work of its own.
    Mixin(FacetAt),
    Block(BlockAt),
    /// The block of one element of a `foreach`.
    Element(BlockAt),
}

impl Plan {
    /// `None` when the program has no such node.
    pub(crate) fn locate(&self, workflow: FacetAt, id: &StepId) -> Option<Node> {
        id.segments().try_fold(Node::Root(workflow), |node, segment| self.child(node, segment))
    }

    pub(crate) fn child(&self, node: Node, segment: Segment) -> Option<Node> {
        match (node, segment) {
            (Node::Block(at) | Node::Element(at), Segment::Statement(place)) => {
                self.block(at).statements.get(place as usize).map(|at| Node::Statement(*at))
            }
            (Node::Block(at), Segment::Element(_)) => Some(Node::Element(at)),
            (Node::Block(_) | Node::Element(_), _) | (_, Segment::Statement(_) | Segment::Element(_)) => None,
            (step, Segment::Clause(place)) => {
                self.clauses(step).get(place as usize).map(|at| Node::Block(*at))
            }
            (step, Segment::Catch) => self.catch(step).map(Node::Block),
            (step, Segment::Mixin(place)) => match self.mixins(step).nth(place as usize)?.0.kind {
                MixinKind::Facet(at) => Some(Node::Mixin(at)),
                MixinKind::Policy(_) => None,
            },
        }
    }

    /// The blocks of a step: those written on the statement, or else its facet's.
    pub(crate) fn clauses(&self, node: Node) -> &[BlockAt] {
        match self.call(node) {
            Some(call) if !call.clauses.is_empty() => &call.clauses,
            _ => self.facet_of(node).map_or(&[], |facet| &facet.clauses),
        }
    }

    /// The block that runs when the step failed: its statement's `catch`, or else its facet's.
    pub(crate) fn catch(&self, node: Node) -> Option<BlockAt> {
        let inline = self.call(node).and_then(|call| call.catch);
        inline.or_else(|| self.facet_of(node).and_then(|facet| facet.catch))
    }

    /// Those of the call, then those of the facet's signature.
    pub(crate) fn mixins(&self, node: Node) -> impl Iterator<Item = (&Mixin, MixinScope)> {
        let of_call = self.call(node).map_or(&[][..], |call| &call.mixins);
        let of_facet = self.facet_of(node).map_or(&[][..], |facet| &facet.mixins);
        let in_call = of_call.iter().map(|mixin| (mixin, MixinScope::Call));
        in_call.chain(of_facet.iter().map(|mixin| (mixin, MixinScope::Signature)))
    }

    /// The facet that a step calls; `None` for blocks, schemas and statements of the language.
    pub(crate) fn facet_of(&self, node: Node) -> Option<&Facet> {
        match node {
            Node::Root(at) | Node::Mixin(at) => Some(self.facet(at)),
            Node::Statement(_) => match &self.call(node)?.callee {
                Callee::Facet(at) => Some(self.facet(*at)),
                Callee::Schema(_) => None,
            },
            Node::Block(_) | Node::Element(_) => None,
        }
    }

    pub(crate) fn call(&self, node: Node) -> Option<&PlanCall> {
        match &self.statement_of(node)?.act {
            Act::Call(call) => Some(call),
            Act::Log(_) | Act::Assert(_) | Act::Yield { .. } => None,
        }
    }

    pub(crate) fn statement_of(&self, node: Node) -> Option<&PlanStatement> {
        match node {
            Node::Statement(at) => Some(self.statement(at)),
            Node::Root(_) | Node::Mixin(_) | Node::Block(_) | Node::Element(_) => None,
        }
    }

    pub(crate) fn block_of(&self, node: Node) -> Option<&Block> {
        match node {
            Node::Block(at) | Node::Element(at) => Some(self.block(at)),
            Node::Root(_) | Node::Mixin(_) | Node::Statement(_) => None,
        }
    }

    /// A step as messages name it: `Checkout.payment[3].charge`.
    pub fn readable(&self, workflow: &str, id: &StepId) -> String {
        let Some(root) = self.facet_at(workflow) else { return format!("{workflow} {id}") };
        let mut path = self.facet(root).name.to_string();
        let mut node = Node::Root(root);
        for segment in id.segments() {
            let Some(next) = self.child(node, segment) else { return format!("{workflow} {id}") };
            match (segment, next) {
                (Segment::Element(element), _) => {
                    write!(path, "[{element}]").expect("writing to a string does not fail");
                }
                (Segment::Catch, _) => path.push_str(".catch"),
                (_, Node::Statement(at)) => {
                    path.push('.');
                    path.push_str(&self.statement(at).name);
                }
                (_, Node::Mixin(at)) => {
                    path.push_str(" with ");
                    path.push_str(&self.facet(at).name);
                }
                (_, Node::Root(_) | Node::Block(_) | Node::Element(_)) => {}
            }
            node = next;
        }
        path
    }
}

/// Where the arguments of a mixin are evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MixinScope {
    /// Like the arguments of the call.
    Call,
    /// In the step itself, whose parameters are there already.
    Signature,
}

//! The blocks of a step: its `andThen` clauses, or its `catch`.

use super::Evaluation;
use super::work::{WorkResult, WorkStop};
use crate::children::Children;
use crate::failure::{FailureKind, StepFailure};
use crate::id::{Segment, StepId};
use crate::plan::Node;
use crate::state::{State, Verdict};

/// How many children a parent creates in one iteration, so that a commit stays small.
const CREATED_AT_ONCE: usize = 1_000;

impl Evaluation {
    pub(super) fn begin_clauses(&mut self, id: &StepId, node: Node) -> WorkResult {
        let clauses = self.plan.clauses(node);
        if !clauses.is_empty() {
            self.check_depth(id, Segment::Clause(clauses.len() as u32))?;
        }
        if self.step(id).rests.iter().any(|rest| rest.state == State::StatementBlocksContinue) {
            // Its event was sent again because of what its result lacked, which is seen when all blocks are complete.
            return Ok(Verdict::Advance);
        }
        let ready = (0..).zip(clauses).filter(|(_, clause)| self.plan.block(**clause).after.is_empty());
        let children =
            Children { ready: ready.map(|(at, _)| at).collect(), ..Children::of(clauses.len() as u32) };
        self.change(id).children = (children.total > 0).then_some(children);
        Ok(Verdict::Advance)
    }

    pub(super) fn continue_clauses(&mut self, id: &StepId) -> WorkResult {
        if self.step(id).children.is_none() {
            return Ok(Verdict::Advance);
        }
        self.create_ready(id, Segment::Clause)?;
        self.settled(id)
    }

    /// Creates the children whose turn it is; the rest of many in the next iteration.
    pub(super) fn create_ready(&mut self, id: &StepId, segment: fn(u32) -> Segment) -> WorkResult<()> {
        let waiting = self.step(id).children.as_ref().map_or(0, |children| children.ready.len());
        if waiting == 0 || (waiting > CREATED_AT_ONCE && self.hold_back(id)) {
            return Ok(());
        }
        let at_once = self.created_at_once();
        let children = self.children_of(id);
        let ready: Vec<u32> = children.ready.drain(..waiting.min(at_once)).collect();
        children.open += ready.len() as u32;
        if waiting > at_once {
            self.activate(id.clone());
        }
        for place in ready {
            self.create(id, segment(place))?;
        }
        Ok(())
    }

    pub(super) fn created_at_once(&self) -> usize {
        CREATED_AT_ONCE.min(self.room() / 2)
    }

    /// On when all children are complete; a failure when all have settled and some have failed.
    pub(super) fn settled(&self, id: &StepId) -> WorkResult {
        let children = self.step(id).children.as_ref().expect("a parent counts its children");
        match (children.are_settled(), children.failed) {
            (false, _) => Ok(Verdict::Wait),
            (true, 0) => Ok(Verdict::Advance),
            (true, failed) => Err(WorkStop::Failed(self.failure_of_children(id, children, failed))),
        }
    }

    fn failure_of_children(&self, id: &StepId, children: &Children, failed: u32) -> StepFailure {
        let first = children.first_failure().cloned();
        first.unwrap_or_else(|| {
            let message = format!("{failed} of its steps failed");
            self.failure(id, FailureKind::Event.name(), message)
        })
    }
}

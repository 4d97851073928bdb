//! Blocks: the statements of an `andThen`, of an element, or of the case that a `when` took.

use super::Evaluation;
use super::wants::all;
use super::work::WorkResult;
use crate::children::Children;
use crate::eval::holds;
use crate::failure::FailureKind;
use crate::id::{Segment, StepId};
use crate::plan::{Block, Node, Plan, PlanCase, PlanContent};
use crate::state::Verdict;
use crate::step::Transmission;

impl Evaluation {
    pub(super) fn begin_block(&mut self, id: &StepId, node: Node) -> WorkResult {
        let plan = self.plan.clone();
        let block = plan.block_of(node).expect("a block's node is one");
        match (node, &block.content) {
            (Node::Element(_), _) | (_, PlanContent::Steps) => {
                let all = 0..block.statements.len() as u32;
                self.check_depth(id, Segment::Statement(all.end))?;
                self.change(id).children = Some(first_children(&plan, block, all));
            }
            (_, PlanContent::When(cases)) => {
                self.check_depth(id, Segment::Statement(block.statements.len() as u32))?;
                let case = self.take_case(id, cases)?;
                let step = self.change(id);
                step.case = case;
                let statements = case.map_or(0..0, |case| cases[case as usize].statements.clone());
                step.children = Some(first_children(&plan, block, statements));
            }
            (_, PlanContent::Foreach { .. }) => self.begin_map(id, block)?,
            (_, PlanContent::Script(script)) => self.send_script(id, script)?,
        }
        Ok(Verdict::Advance)
    }

    pub(super) fn continue_block(&mut self, id: &StepId, node: Node) -> WorkResult {
        let plan = self.plan.clone();
        let block = plan.block_of(node).expect("a block's node is one");
        match (node, &block.content) {
            (Node::Element(_), _) | (_, PlanContent::Steps | PlanContent::When(_)) => {
                self.create_ready(id, Segment::Statement)?;
                self.settled(id)
            }
            (_, PlanContent::Foreach { .. }) => self.continue_map(id, block),
            (_, PlanContent::Script(_)) => {
                let Some(result) = self.take_outcome(id)? else { return Ok(Verdict::Park) };
                let step = self.change(id);
                step.event = Transmission::Answered;
                step.attributes.returns = result;
                Ok(Verdict::Advance)
            }
        }
    }

    /// The first case whose condition holds.
    fn take_case(&mut self, id: &StepId, cases: &[PlanCase]) -> WorkResult<Option<u32>> {
        let place = Self::place_in_block(id);
        let conditions = cases.iter().filter_map(|case| case.condition.as_ref());
        all(conditions.map(|condition| self.need_reads(&condition.reads, &place)))?;
        for (at, case) in (0..).zip(cases) {
            let Some(condition) = &case.condition else { return Ok(Some(at)) };
            let holds = holds(&condition.expr, &self.reader(&condition.reads, &place));
            if holds.map_err(|error| self.failed(id, FailureKind::Evaluation, error))? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

fn first_children(plan: &Plan, block: &Block, statements: std::ops::Range<u32>) -> Children {
    let is_free = |at: &u32| plan.statement(block.statements[*at as usize]).deps.is_empty();
    let total = statements.len() as u32;
    Children { ready: statements.filter(is_free).collect(), ..Children::of(total) }
}

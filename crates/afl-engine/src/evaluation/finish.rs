//! The end of a step: its effect on its parent and on the run.
//!
//! Problem: a parent may have a million children, and it must learn of each end without reading the others. A step must
//! run exactly when the last of its dependencies has ended, also after a crash between two iterations.
//!
//! Approach: the parent's record keeps counts and bit sets of its children (`Children`). A child that ends changes the
//! counts in its parent's record within the same commit. The plan lists the dependants of each statement, so only those
//! are examined, and they join the parent's `ready` list. The parent itself becomes active only when it has work: ready
//! children to create, or no open child left.
//!
//! A failure goes the same way upwards: the parent waits for its other open children, then fails with the first failure
//! in the order of the program, not of time. So runs with the same outcomes end with the same error (G6). A `catch`
//! stops the way up.
//!
//! Rejected: a parent that looks at all of its children at each end. That is quadratic in their number (T5).

use super::Evaluation;
use super::work::{WorkResult, WorkStop};
use crate::attribute::Attribute;
use crate::children::Children;
use crate::eval::{NoScope, eval};
use crate::failure::{FailureKind, StepFailure};
use crate::id::{Segment, StepId};
use crate::plan::{Node, Plan};
use crate::run::RunStatus;
use crate::state::{State, Verdict};
use crate::trace::Trace;
use afl_lang::types::TypeRef;

impl Evaluation {
    /// A step that is about to be complete: its returns are all there, or get their defaults.
    pub(super) fn end(&mut self, id: &StepId, node: Node) -> WorkResult {
        let plan = self.plan.clone();
        let Some(facet) = plan.facet_of(node) else { return Ok(Verdict::Advance) };
        let is_promised = facet.is_event() && self.step(id).caught.is_none();
        if is_promised && self.is_once(id) {
            self.need_work(id)?;
        }
        for parameter in &facet.returns {
            if self.step(id).attributes.returns.contains_key(&parameter.name) {
                continue;
            }
            let value = match (&parameter.default, &parameter.ty) {
                (Some(default), _) => eval(default, &NoScope)
                    .map_err(|error| self.failed(id, FailureKind::Evaluation, error))?,
                (None, TypeRef::Nullable(_)) if is_promised => serde_json::Value::Null,
                (None, ty) if is_promised => {
                    let message = format!(
                        "the result of `{}` lacks `{}`, which must be {ty}",
                        facet.id, parameter.name
                    );
                    let failed = self.failed(id, FailureKind::Type, message);
                    return Err(self.doubt(id, failed));
                }
                (None, _) => continue,
            };
            let held = self.known.hold(value);
            let attribute = Attribute { held, type_hint: parameter.ty.to_string().into() };
            self.change(id).attributes.returns.insert(parameter.name.clone(), attribute);
        }
        Ok(Verdict::Advance)
    }

    pub(super) fn complete(&mut self, id: &StepId) {
        let now = self.now;
        let step = self.change_at_rest(id);
        step.ended = Some(now);
        // The children's records keep their results; a complete step needs no count of them.
        if !step.object_type.is_block() {
            step.children = None;
        }
        self.rest_step(id);
        self.run.counts.complete += 1;
        match id.split() {
            None => self.end_run(RunStatus::Completed),
            Some((parent, segment)) => self.child_completed(&parent, segment),
        }
    }

    /// Starts the step's `catch`, or ends the step in `Error`.
    pub(super) fn fail(&mut self, id: &StepId, node: Node, failure: StepFailure) -> Verdict {
        self.trace_failure(id, &failure);
        match self.start_catch(id, node, &failure) {
            Ok(Verdict::Park) => self.end_failed(id, failure),
            Ok(verdict) => return verdict,
            // There is no room for the `catch`.
            Err(WorkStop::Failed(failure)) => self.end_failed(id, failure),
            Err(WorkStop::Missing) => unreachable!("creating a child reads nothing"),
        }
        Verdict::Park
    }

    pub(super) fn trace_failure(&mut self, id: &StepId, failure: &StepFailure) {
        self.trace(|it| Trace::Failed {
            step: id.clone(),
            path: it.path_of(id),
            state: it.step(id).state,
            error: failure.clone(),
            iteration: it.run.iterations,
        });
    }

    fn start_catch(&mut self, id: &StepId, node: Node, failure: &StepFailure) -> WorkResult {
        // Whether uncertain work happened is for a person to say. Until then its failure is not dealt with.
        if self.step(id).caught.is_some() || self.plan.catch(node).is_none() || failure.is_uncertain() {
            return Ok(Verdict::Park);
        }
        self.check_depth(id, Segment::Catch)?;
        let step = self.change(id);
        step.caught = Some(failure.clone());
        step.error = None;
        step.children = Some(Children { open: 1, ..Children::of(1) });
        self.enter(id, State::StatementBlocksContinue);
        self.create(id, Segment::Catch)?;
        Ok(Verdict::Advance)
    }

    fn end_failed(&mut self, id: &StepId, failure: StepFailure) {
        self.enter_error(id, failure.clone());
        match id.split() {
            None => {
                self.run.error = Some(failure);
                self.end_run(RunStatus::Failed);
            }
            Some((parent, segment)) => {
                self.children_of(&parent).fail(segment.place(), failure);
                self.wake_when_due(&parent);
            }
        }
    }

    /// Ends a step in `Error`, without a word to its parent.
    pub(super) fn enter_error(&mut self, id: &StepId, failure: StepFailure) {
        let now = self.now;
        let step = self.change(id);
        step.error = Some(failure);
        step.failed_in = Some(step.state);
        step.ended = Some(now);
        self.enter(id, State::Error);
        self.rest_step(id);
        self.run.counts.failed += 1;
    }

    fn end_run(&mut self, status: RunStatus) {
        self.run.status = status;
        self.run.ended = Some(self.now);
    }

    fn child_completed(&mut self, parent: &StepId, segment: Segment) {
        let plan = self.plan.clone();
        let node = self.known.steps.get(parent).expect("a parent has been read").node;
        let children = self.children_of(parent);
        children.close();
        let before = children.ready.len();
        match segment {
            Segment::Element(_) | Segment::Catch => {}
            Segment::Mixin(place) => children.done.insert(place),
            Segment::Clause(place) | Segment::Statement(place) => {
                children.done.insert(place);
                children.ready.extend(released(&plan, node, segment, children));
            }
        }
        let resolved = children.ready[before..].to_vec();
        self.wake_when_due(parent);
        for place in resolved {
            self.trace(|it| it.resolution(parent, node, segment.beside(place)));
        }
    }

    fn resolution(&self, parent: &StepId, node: Node, resolved: Segment) -> Trace {
        let step = parent.child(resolved);
        let deps = awaited(&self.plan, node, resolved).iter();
        let waited_for = deps.map(|place| parent.child(resolved.beside(*place))).collect();
        Trace::Resolved { path: self.path_of(&step), step, waited_for, iteration: self.run.iterations }
    }

    fn wake_when_due(&mut self, parent: &StepId) {
        let children = self.children_of(parent);
        if !children.ready.is_empty() || children.open == 0 {
            self.activate(parent.clone());
        }
    }

    pub(super) fn children_of(&mut self, parent: &StepId) -> &mut Children {
        self.change(parent).children.as_mut().expect("a parent counts its children")
    }
}

/// The siblings that waited for this child alone.
fn released(plan: &Plan, node: Node, segment: Segment, children: &Children) -> Vec<u32> {
    let is_free = |place: &u32| {
        awaited(plan, node, segment.beside(*place)).iter().all(|dep| children.done.contains(*dep))
    };
    match segment {
        Segment::Statement(place) => {
            let block = plan.block_of(node).expect("statements stand in blocks");
            let dependants = &plan.statement(block.statements[place as usize]).dependants;
            dependants.iter().copied().filter(is_free).collect()
        }
        Segment::Clause(place) => {
            let clauses = (0..).zip(plan.clauses(node));
            let waiting = clauses.filter(|(_, clause)| plan.block(**clause).after.contains(&place));
            waiting.map(|(at, _)| at).filter(is_free).collect()
        }
        Segment::Element(_) | Segment::Catch | Segment::Mixin(_) => Vec::new(),
    }
}

/// The siblings that a child waits for, by place.
fn awaited(plan: &Plan, node: Node, segment: Segment) -> &[u32] {
    match segment {
        Segment::Statement(place) => {
            let block = plan.block_of(node).expect("statements stand in blocks");
            &plan.statement(block.statements[place as usize]).deps
        }
        Segment::Clause(place) => &plan.block(plan.clauses(node)[place as usize]).after,
        Segment::Element(_) | Segment::Catch | Segment::Mixin(_) => &[],
    }
}

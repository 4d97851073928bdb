//! The work of each state: one step, from its present state to the state in which it must wait.

use std::fmt;
use std::sync::Arc;

use super::known::StepEntry;
use super::wants::MissingRecord;
use super::{Evaluation, MAX_DEPTH, MAX_ID_BYTES};
use crate::failure::{FailureKind, StepFailure};
use crate::id::{Segment, StepId};
use crate::object::ObjectType;
use crate::plan::{Act, Callee, Node, PlanContent};
use crate::state::{State, Verdict};
use crate::step::{Step, StepRest};
use crate::trace::Trace;
use crate::value::{MAX_VALUES_BYTES, Value, ValueRoom};

/// How the work of a state can end early.
#[derive(Debug)]
pub(super) enum WorkStop {
    /// A record is not at hand; the same work is done again when it is.
    Missing,
    Failed(StepFailure),
}

impl From<MissingRecord> for WorkStop {
    fn from(MissingRecord: MissingRecord) -> Self {
        Self::Missing
    }
}

pub(super) type WorkResult<T = Verdict> = Result<T, WorkStop>;

impl Evaluation {
    /// Takes one step as far as it goes.
    pub(super) fn work(&mut self, id: &StepId) -> Result<(), MissingRecord> {
        self.need_with_ancestors(id)?;
        let Some(entry) = self.known.steps.get(id) else { return Ok(()) };
        if entry.step.is_terminal() {
            // A second outcome, or one for a step that was reopened and ended: it changes nothing.
            return self.discard_outcome(id);
        }
        let node = entry.node;
        loop {
            let state = self.step(id).state;
            match self.work_of(state, id, node) {
                Ok(Verdict::Advance) => {
                    let path = self.step(id).object_type.path();
                    let next = state.next(path).expect("only a state on its step's path asks to go on");
                    self.enter(id, next);
                    if next == State::Complete {
                        self.complete(id);
                        return Ok(());
                    }
                }
                Ok(Verdict::Wait | Verdict::Park) => {
                    self.rest_step(id);
                    self.trace(|it| Trace::Stayed {
                        step: id.clone(),
                        path: it.path_of(id),
                        state,
                        iteration: it.run.iterations,
                    });
                    return Ok(());
                }
                Err(WorkStop::Missing) => return Err(MissingRecord),
                Err(WorkStop::Failed(failure)) => {
                    if self.fail(id, node, failure) == Verdict::Park {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// The one place that says what each state does (document 003 §6).
    fn work_of(&mut self, state: State, id: &StepId, node: Node) -> WorkResult {
        match state {
            State::InitBegin => self.initialize(id, node),
            State::FacetScriptsBegin => self.run_script(id, node),
            State::MixinBlocksBegin => self.begin_mixins(id, node),
            State::MixinBlocksContinue => self.continue_mixins(id),
            State::MixinCaptureBegin => self.capture_mixins(id, node),
            State::EventTransmit => self.transmit(id, node),
            State::StatementBlocksBegin => self.begin_clauses(id, node),
            State::StatementBlocksContinue => self.continue_clauses(id),
            State::StatementCaptureBegin => self.capture(id, node),
            State::BlockExecutionBegin => self.begin_block(id, node),
            State::BlockExecutionContinue => self.continue_block(id, node),
            State::End => self.end(id, node),
            State::Created
            | State::InitEnd
            | State::FacetScriptsEnd
            | State::MixinBlocksEnd
            | State::MixinCaptureEnd
            | State::StatementBlocksEnd
            | State::StatementCaptureEnd
            | State::BlockExecutionEnd => Ok(Verdict::Advance),
            State::StatementScriptsBegin | State::StatementScriptsEnd => {
                unreachable!("on no path")
            }
            State::Complete | State::Error => unreachable!("a terminal step is not worked on"),
        }
    }

    pub(super) fn step(&self, id: &StepId) -> &Step {
        self.known.step(id).expect("a step at work has been read")
    }

    pub(super) fn change(&mut self, id: &StepId) -> &mut Step {
        let step = Arc::make_mut(&mut self.known.steps.change(id).step);
        assert!(step.state != State::Complete, "a complete step never changes");
        step
    }

    pub(super) fn enter(&mut self, id: &StepId, to: State) {
        let step = self.change(id);
        let from = std::mem::replace(&mut step.state, to);
        self.trace(|it| Trace::Transition {
            step: id.clone(),
            path: it.path_of(id),
            from,
            to,
            iteration: it.run.iterations,
        });
    }

    /// Notes where a step stopped.
    pub(super) fn rest_step(&mut self, id: &StepId) {
        let iteration = self.run.iterations;
        let state = self.step(id).state;
        if self.step(id).rests.last().is_none_or(|rest| rest.state != state) {
            self.change_at_rest(id).rests.push(StepRest { iteration, state });
        }
    }

    /// Also for a step that has just become terminal in this iteration.
    pub(super) fn change_at_rest(&mut self, id: &StepId) -> &mut Step {
        Arc::make_mut(&mut self.known.steps.change(id).step)
    }

    /// Creates a child and works on it in this iteration.
    pub(super) fn create(&mut self, parent: &StepId, segment: Segment) -> WorkResult<()> {
        self.check_depth(parent, segment)?;
        let id = parent.child(segment);
        let node = self.known.steps.get(parent).expect("a parent at work has been read").node;
        let node = self.plan.child(node, segment).expect("children are those of the program");
        self.create_at(&id, node);
        self.queue.push_back(id);
        Ok(())
    }

    pub(super) fn create_at(&mut self, id: &StepId, node: Node) {
        let (object_type, statement_id, facet_name) = self.identity(node);
        let step = Step::new(id.clone(), object_type, statement_id, facet_name, self.now);
        self.known.steps.create(id.clone(), StepEntry { step: Arc::new(step), node });
        self.run.counts.steps += 1;
        self.trace(|it| Trace::Created {
            step: id.clone(),
            path: it.path_of(id),
            object_type,
            iteration: it.run.iterations,
        });
    }

    /// Whether a child may stand so deep. A parent asks for its last child before it creates the first, because a
    /// larger number makes a longer id.
    pub(super) fn check_depth(&self, parent: &StepId, segment: Segment) -> WorkResult<()> {
        let id = parent.child(segment);
        if id.depth() <= MAX_DEPTH && id.as_str().len() <= MAX_ID_BYTES {
            return Ok(());
        }
        let message = format!(
            "the run nests deeper than {MAX_DEPTH} levels: end the recursion earlier, or go on in another run"
        );
        Err(self.failed(parent, FailureKind::Limit, message))
    }

    /// Takes the room of a copy that becomes a part of the attribute `name`.
    pub(super) fn take_room<'v>(
        &self,
        id: &StepId,
        name: &str,
        values: impl IntoIterator<Item = &'v Value>,
        room: &mut ValueRoom,
    ) -> WorkResult<()> {
        let taken = values.into_iter().try_for_each(|value| room.take(value));
        taken.ok_or_else(|| self.no_room(id, name))
    }

    pub(super) fn no_room(&self, id: &StepId, name: &str) -> WorkStop {
        let message = format!(
            "`{name}` takes too much memory: {MAX_VALUES_BYTES} bytes is the limit for all values of a step, so store \
             it elsewhere and pass a reference"
        );
        self.failed(id, FailureKind::Limit, message)
    }

    fn identity(&self, node: Node) -> (ObjectType, Arc<str>, Arc<str>) {
        let no_facet: Arc<str> = Arc::default();
        match node {
            Node::Root(at) => {
                let id = &self.plan.facet(at).id;
                (ObjectType::Workflow, id.clone(), id.clone())
            }
            Node::Mixin(at) => {
                let id = &self.plan.facet(at).id;
                (ObjectType::Facet, id.clone(), id.clone())
            }
            Node::Element(at) => (ObjectType::AndThen, self.plan.block(at).id.clone(), no_facet),
            Node::Block(at) => {
                let block = self.plan.block(at);
                let object_type = match block.content {
                    PlanContent::Foreach { .. } => ObjectType::AndMap,
                    PlanContent::When(_) => ObjectType::AndMatch,
                    PlanContent::Steps | PlanContent::Script(_) => ObjectType::AndThen,
                };
                (object_type, block.id.clone(), no_facet)
            }
            Node::Statement(at) => {
                let statement = self.plan.statement(at);
                let (object_type, facet) = match &statement.act {
                    Act::Call(call) => match &call.callee {
                        Callee::Facet(at) => {
                            (ObjectType::VariableAssignment, self.plan.facet(*at).id.clone())
                        }
                        Callee::Schema(name) => (ObjectType::SchemaInstantiation, name.clone()),
                    },
                    Act::Yield { target, .. } => (ObjectType::YieldAssignment, target.clone()),
                    Act::Log(_) | Act::Assert(_) => (ObjectType::VariableAssignment, statement.name.clone()),
                };
                (object_type, statement.id.clone(), facet)
            }
        }
    }

    /// A failure at this step.
    pub(super) fn failed(&self, id: &StepId, kind: FailureKind, message: impl fmt::Display) -> WorkStop {
        WorkStop::Failed(self.failure(id, kind.name(), format!("{message}")))
    }

    pub(super) fn failure(&self, id: &StepId, kind: &str, message: String) -> StepFailure {
        let path = self.path_of(id);
        StepFailure { step: id.clone(), path, kind: kind.to_owned(), message }
    }
}

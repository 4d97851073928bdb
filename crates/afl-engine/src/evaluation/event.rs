//! Work from outside: events and their tasks go out, their outcomes come in.
//!
//! Problem: agents settle a task at any time, perhaps more than once, while the evaluator of its run works, waits or
//! has crashed. Each outcome must enter its step exactly once.
//!
//! Approach: `publish` writes event and task in the commit that moves the step to its event. An agent's outcome changes
//! the task and the event, never the step: the event's `Reception` becomes `Arrived`. `take_outcome` moves it to
//! `Taken` in the commit that writes the result into the step. A crash before that commit leaves `Arrived`, so the
//! next evaluation takes the outcome again and comes to the same step. An outcome for a step that has ended is taken
//! and dropped (`discard_outcome`).
//!
//! The step's own `Transmission` says whether it waits. A failure of the own event stays in the step until the events
//! of its mixins have settled too; then the step fails once, with everything at rest.
//!
//! Rejected: agents that write the step. Then each outcome would conflict with the evaluator's commits.

use std::collections::BTreeMap;

use afl_lang::program::ScriptBlock;

use super::Evaluation;
use super::mixin::MixinPhase;
use super::wants::MissingRecord;
use super::work::{WorkResult, WorkStop};
use crate::attribute::{Attribute, Fields, ValueRef};
use crate::event::{Event, EventError, EventState, Payload, Reception};
use crate::failure::FailureKind;
use crate::history::Actor;
use crate::id::StepId;
use crate::plan::{Facet, Node};
use crate::policy::Effect;
use crate::state::Verdict;
use crate::step::Transmission;
use crate::task::{DEFAULT_TASK_LIST, Move, NewTask, Task, next_turn};
use crate::time::Millis;
use crate::timer::TimerFacet;
use crate::trace::Trace;
use crate::value::{Map, Value, ValueRoom};
use afl_lang::types::TypeRef;

/// The task that a language host does for a script.
pub const SCRIPT_EVENT: &str = "afl:script";

impl Evaluation {
    /// `state.EventTransmit`: passes through, or waits for the facet's event and for the events of its mixins.
    pub(super) fn transmit(&mut self, id: &StepId, node: Node) -> WorkResult {
        let plan = self.plan.clone();
        let Some(facet) = plan.facet_of(node) else { return Ok(Verdict::Advance) };
        let step = self.step(id);
        if step.event == Transmission::None && step.children.is_none() {
            self.check_mixins(id, node, MixinPhase::Event)?;
            let step = self.step(id);
            if facet.is_event() {
                let payload = step.attributes.params.iter();
                let payload =
                    payload.map(|(name, attribute)| (name.clone(), attribute.held.clone())).collect();
                self.publish(id, &facet.id, payload, facet.script.is_some())?;
            }
            self.start_mixins(id, node, MixinPhase::Event)?;
            let step = self.step(id);
            let passes = step.event == Transmission::None && step.children.is_none();
            return Ok(if passes { Verdict::Advance } else { Verdict::Park });
        }
        if step.event == Transmission::Sent {
            self.receive(id, facet)?;
        }
        let step = self.step(id);
        if step.event == Transmission::Sent || step.children.as_ref().is_some_and(|it| !it.are_settled()) {
            return Ok(Verdict::Park);
        }
        if let Some(failure) = step.error.clone() {
            return Err(WorkStop::Failed(failure));
        }
        if step.children.is_some() {
            self.settled(id)?;
            self.take_mixins(id, node, MixinPhase::Event)?;
        }
        Ok(Verdict::Advance)
    }

    /// Takes the outcome of the facet's own event into the step, if it is there. A failure waits in the step until
    /// its mixins have settled too.
    fn receive(&mut self, id: &StepId, facet: &Facet) -> WorkResult<()> {
        if self.is_once(id) {
            self.need_work(id)?;
        }
        let outcome = match self.take_outcome(id) {
            Ok(None) => return Ok(()),
            Ok(Some(result)) => self.returns_of(id, facet, result).map_err(|stop| self.doubt(id, stop)),
            Err(WorkStop::Missing) => return Err(WorkStop::Missing),
            Err(WorkStop::Failed(failure)) => Err(WorkStop::Failed(failure)),
        };
        let step = self.change(id);
        step.event = Transmission::Answered;
        match outcome {
            Ok(returns) => step.attributes.returns.extend(returns),
            Err(WorkStop::Failed(failure)) => step.error = Some(failure),
            Err(WorkStop::Missing) => unreachable!("the values of a result are at hand when it is taken"),
        }
        Ok(())
    }

    /// Whether the work of the step must happen at most once. Its task must be at hand when its result is judged.
    pub(super) fn is_once(&self, id: &StepId) -> bool {
        self.step(id).policy.effect == Some(Effect::Once)
    }

    /// A result that does not fit is no answer. Work that must happen at most once is then uncertain, so its task and
    /// event are those of failed work, and a person decides.
    pub(super) fn doubt(&mut self, id: &StepId, stop: WorkStop) -> WorkStop {
        let failure = match stop {
            WorkStop::Failed(failure) if self.is_once(id) => failure,
            WorkStop::Failed(_) | WorkStop::Missing => return stop,
        };
        let error = EventError::uncertain(&failure.message);
        let failure = self.failure(id, &error.kind, error.message.clone());
        self.move_task(id, Move::Amend(Err(&error)), &Actor::System);
        let event = self.known.events.change(id);
        // The result stays: it is evidence for the person who decides.
        (event.state, event.error) = (EventState::Error, Some(error));
        WorkStop::Failed(failure)
    }

    /// The result of a step's event, once: afterwards it counts as taken.
    pub(super) fn take_outcome(&mut self, id: &StepId) -> WorkResult<Option<Fields>> {
        self.need_event(id)?;
        let event = self.known.events.get(id).filter(|event| event.reception == Reception::Arrived);
        let Some(event) = event else { return Ok(None) };
        let result = event.result.clone().unwrap_or_default();
        let values: Vec<ValueRef> = result.values().cloned().collect();
        self.need_values(&values)?;
        let event = self.known.events.change(id);
        event.reception = Reception::Taken;
        let outcome = event.error.clone();
        let waiting = &mut self.run.counts.waiting;
        *waiting = waiting.checked_sub(1).expect("an event that is taken was waiting");
        if let Some(EventError { kind, message, .. }) = outcome {
            return Err(WorkStop::Failed(self.failure(id, &kind, message)));
        }
        let field = |(name, held)| (name, Attribute { held, type_hint: "Json".into() });
        Ok(Some(result.into_iter().map(field).collect()))
    }

    /// A result against the return clause. Undeclared values are dropped; presence is checked when the step ends.
    fn returns_of(&mut self, id: &StepId, facet: &Facet, result: Fields) -> WorkResult<Fields> {
        let mut returns = BTreeMap::new();
        for (name, attribute) in result {
            let Some(parameter) = facet.result().iter().find(|parameter| parameter.name == name) else {
                let path = self.path_of(id);
                self.traces.push(Trace::Undeclared { step: id.clone(), path, key: name });
                continue;
            };
            let value = self.known.value(&attribute.held).expect("taken with its values").clone();
            let attribute = self.attribute(id, &name, value, &parameter.ty)?;
            returns.insert(name, attribute);
        }
        Ok(returns)
    }

    /// Creates an event and its task. `again` when an earlier event of the step may be stored.
    pub(super) fn publish(
        &mut self,
        id: &StepId,
        name: &str,
        payload: Payload,
        again: bool,
    ) -> WorkResult<()> {
        if again {
            self.need_work(id)?;
        }
        let event = Event::open(id.clone(), name.into(), payload);
        let fires = self.timer_of(&event).transpose();
        let fires = fires.map_err(|message| self.failed(id, FailureKind::Type, message))?;
        let turn = self.queue_up();
        let policy = self.step(id).policy.clone();
        let list = policy.task_list.as_deref().unwrap_or(DEFAULT_TASK_LIST);
        let path = self.path_of(id);
        let before = self.known.tasks.get(id);
        let task = NewTask {
            step_id: id.clone(),
            workflow_id: self.run.id.clone(),
            name: name.into(),
            path,
            task_list_name: list.into(),
            policy,
            turn,
            token: before.map_or(0, |task| task.token),
            claims: before.map_or(0, |task| task.claims),
            fires,
        };
        let task = Task::pending(task, self.now);
        self.known.events.put(id, Event { times_out: task.times_out, ..event });
        self.known.tasks.put(id, task);
        self.change(id).event = Transmission::Sent;
        self.trace_publication(id, name);
        Ok(())
    }

    /// When the timer of an event fires, if its facet is one of those that timers answer.
    pub(super) fn timer_of(&self, event: &Event) -> Option<Result<Millis, String>> {
        let timer: TimerFacet = event.event_type.parse().ok()?;
        // Lengths and moments are short. A value that is stored apart is neither, so it may be missing here.
        let value = |held: &ValueRef| self.known.value(held).cloned().unwrap_or_default();
        let args = event.payload.iter().map(|(name, held)| (name.clone(), value(held))).collect();
        Some(timer.due(&args, self.now))
    }

    pub(super) fn trace_publication(&mut self, id: &StepId, event_type: &str) {
        self.trace(|it| Trace::Published {
            step: id.clone(),
            path: it.path_of(id),
            event_type: event_type.to_owned(),
            iteration: it.run.iterations,
        });
    }

    /// Counts one more open task, and says where it stands in the queue.
    pub(super) fn queue_up(&mut self) -> Millis {
        let turn = next_turn(self.run.turn.filter(|_| self.run.counts.waiting > 0), self.now);
        self.run.counts.waiting += 1;
        self.run.turn = Some(turn);
        turn
    }

    /// `state.facet.scripts.Begin`: a script before the body, whose result joins the attributes.
    pub(super) fn run_script(&mut self, id: &StepId, node: Node) -> WorkResult {
        let plan = self.plan.clone();
        let facet = plan.facet_of(node);
        let is_yield = plan.call(node).is_none() && plan.statement_of(node).is_some();
        let Some((facet, script)) = facet.and_then(|facet| Some((facet, facet.script.as_ref()?))) else {
            return Ok(Verdict::Advance);
        };
        if is_yield {
            return Ok(Verdict::Advance);
        }
        if self.step(id).event == Transmission::None {
            self.send_script(id, script)?;
            return Ok(Verdict::Park);
        }
        if self.is_once(id) {
            self.need_work(id)?;
        }
        let Some(result) = self.take_outcome(id)? else { return Ok(Verdict::Park) };
        for (name, attribute) in result {
            let value = self.known.value(&attribute.held).expect("taken with its values").clone();
            let returned = facet.returns.iter().find(|parameter| parameter.name == name);
            let ty = returned.map_or(&TypeRef::Json, |parameter| &parameter.ty);
            let attribute = self.attribute(id, &name, value, ty).map_err(|stop| self.doubt(id, stop))?;
            let attributes = &mut self.change(id).attributes;
            let fields = if returned.is_some() { &mut attributes.returns } else { &mut attributes.params };
            fields.insert(name, attribute);
        }
        self.change(id).event = Transmission::None;
        Ok(Verdict::Advance)
    }

    /// Hands a script to a language host; for a block's script the parameters are the owner's.
    pub(super) fn send_script(&mut self, id: &StepId, script: &ScriptBlock) -> WorkResult<()> {
        let is_block = self.step(id).object_type.is_block();
        let owner = if is_block { Self::place_in_block(id).owner } else { id.clone() };
        self.need_step(&owner)?;
        let attributes = &self.step(&owner).attributes;
        let fields = attributes.returns.iter().chain(&attributes.params);
        let (names, held): (Vec<String>, Vec<ValueRef>) =
            fields.map(|(name, attribute)| (name.clone(), attribute.held.clone())).unzip();
        self.need_values(&held)?;
        let copied = held.iter().filter_map(|held| self.known.value(held));
        self.take_room(id, "params", copied, &mut ValueRoom::default())?;
        let values =
            held.iter().map(|held| self.known.value(held).expect("it has just been asked for").clone());
        let params: Map<String, Value> = names.into_iter().zip(values).collect();
        let payload = [
            ("language", Value::from(script.language.as_str())),
            ("code", Value::from(script.code.as_str())),
            ("params", Value::Object(params)),
        ];
        let payload = payload.map(|(name, value)| (name.to_owned(), self.known.hold(value))).into();
        self.publish(id, SCRIPT_EVENT, payload, false)
    }

    /// Takes an outcome that no step waits for, so that it wakes the run only once.
    pub(super) fn discard_outcome(&mut self, id: &StepId) -> Result<(), MissingRecord> {
        if self.step(id).event == Transmission::None {
            return Ok(());
        }
        self.need_event(id)?;
        if self.known.events.get(id).is_some_and(|event| event.reception == Reception::Arrived) {
            self.known.events.change(id).reception = Reception::Taken;
        }
        Ok(())
    }
}

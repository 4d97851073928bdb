//! What an operator asks of a run: a failed step tried again, all of it canceled.

use super::wants::{Missing, all};
use super::{Evaluation, Phase, SCRIPT_EVENT};
use crate::attribute::Attributes;
use crate::event::{EventError, EventState, Reception};
use crate::failure::FailureKind;
use crate::id::{Segment, StepId};
use crate::run::RunStatus;
use crate::state::State;
use crate::step::{Rest, Step, Transmission};
use crate::task::TaskState;

/// Something asked of a run from outside its data flow, done before the next iteration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Request {
    Reopen(StepId),
    Cancel(StepId),
}

impl Evaluation {
    /// Tries a failed step again: its own failure is taken back, and with it that of all above that failed for it.
    /// What else is complete stays so.
    pub fn reopen(&mut self, step: StepId) {
        self.requests.push_back(Request::Reopen(step));
    }

    /// Ends a step, its event and its task as canceled, whatever they were doing.
    pub fn cancel(&mut self, step: StepId) {
        self.requests.push_back(Request::Cancel(step));
    }

    /// The run itself is canceled; to be called when none of its steps is open.
    pub fn finish_canceled(&mut self) {
        self.next.clear();
        self.is_next.clear();
        self.held_back.clear();
        self.run.status = RunStatus::Canceled;
        self.run.ended = Some(self.now);
        self.run.iterations_now = 0;
        self.run.counts.waiting = 0;
        self.run_is_dirty = true;
    }

    /// Does what was asked; `Missing` when it needs records first.
    pub(super) fn handle_requests(&mut self) -> Result<(), Missing> {
        assert_eq!(self.phase, Phase::Between, "requests are handled between iterations");
        while let Some(request) = self.requests.front().cloned() {
            match &request {
                Request::Reopen(step) => self.reopen_now(step)?,
                Request::Cancel(step) => self.cancel_now(step)?,
            }
            self.requests.pop_front();
        }
        Ok(())
    }

    fn reopen_now(&mut self, id: &StepId) -> Result<(), Missing> {
        let ancestors = std::iter::successors(id.parent(), StepId::parent);
        let needs: Vec<_> = ancestors.map(|ancestor| self.need_step(&ancestor)).collect();
        let own = [self.need_step(id), self.need_event(id), self.need_task(id)];
        all(needs.into_iter().chain(own))?;
        self.need_mixed_events(id)?;
        let Some(step) = self.known.step(id).filter(|step| step.failed_itself()) else { return Ok(()) };
        if id.outside_catches().any(|above| self.known.step(&above).is_some_and(|it| it.caught.is_some())) {
            return Ok(());
        }
        if step.event == Transmission::None {
            let is_root = id.parent().is_none();
            let step = self.change(id);
            step.state = State::Created;
            if !is_root {
                step.attributes = Attributes::default();
            }
            step.children = None;
            self.activate(id.clone());
        } else {
            self.send_again(id);
        }
        let step = self.change(id);
        step.error = None;
        step.ended = None;
        step.caught = None;
        self.note_rest(id);
        self.run.counts.failed -= 1;
        self.reopen_above(id);
        self.run_is_dirty = true;
        Ok(())
    }

    /// Of those above that failed by their own event, beside a mixin.
    fn need_mixed_events(&mut self, id: &StepId) -> Result<(), Missing> {
        let above: Vec<StepId> = std::iter::successors(id.parent(), StepId::parent)
            .filter(|above| self.known.step(above).is_some_and(failed_by_event))
            .collect();
        let needs: Vec<_> = above.iter().flat_map(|it| [self.need_event(it), self.need_task(it)]).collect();
        all(needs)
    }

    /// Event and task are asked for anew, together with their step.
    fn send_again(&mut self, id: &StepId) {
        let now = self.now;
        let is_script = self.known.events.get(id).is_some_and(|event| &*event.event_type == SCRIPT_EVENT);
        let step = self.change(id);
        step.state = match (step.object_type.is_block(), is_script) {
            (true, _) => State::BlockExecutionContinue,
            (false, true) => State::FacetScriptsBegin,
            (false, false) => State::EventTransmit,
        };
        step.event = Transmission::Sent;
        step.attributes.returns.clear();
        let event = self.known.events.change(id);
        event.state = EventState::Created;
        event.result = None;
        event.error = None;
        event.reception = Reception::Open;
        let task = self.known.tasks.change(id);
        task.state = TaskState::Pending;
        task.updated = now;
        task.deliveries = 0;
        task.attempts = 0;
        task.not_before = None;
        task.lease = None;
        task.error = None;
        task.ended = None;
        self.run.counts.waiting += 1;
    }

    fn reopen_above(&mut self, id: &StepId) {
        let mut at = id.split();
        while let Some((parent, segment)) = at {
            self.children_of(&parent).reopen(segment.place());
            if self.step(&parent).state != State::Error {
                return;
            }
            let state = match segment {
                Segment::Statement(_) | Segment::Element(_) => State::BlockExecutionContinue,
                Segment::Clause(_) | Segment::Catch => State::StatementBlocksContinue,
                Segment::Mixin(_) if self.step(&parent).rests.iter().any(is_transmitting) => {
                    State::EventTransmit
                }
                Segment::Mixin(_) => State::MixinBlocksContinue,
            };
            if failed_by_event(self.step(&parent)) {
                // Its own event failed beside that of its mixin: one without the other would not end it well.
                self.send_again(&parent);
            }
            let step = self.change(&parent);
            step.state = state;
            step.error = None;
            step.ended = None;
            self.note_rest(&parent);
            self.run.counts.failed -= 1;
            at = parent.split();
        }
        self.run.status = RunStatus::Running;
        self.run.error = None;
        self.run.ended = None;
    }

    fn note_rest(&mut self, id: &StepId) {
        let (iteration, state) = (self.run.iterations, self.step(id).state);
        self.change(id).rests.push(Rest { iteration, state });
    }

    fn cancel_now(&mut self, id: &StepId) -> Result<(), Missing> {
        all([self.need_step(id), self.need_event(id), self.need_task(id)])?;
        let now = self.now;
        if self.known.tasks.get(id).is_some_and(|task| !task.state.is_terminal()) {
            let task = self.known.tasks.change(id);
            task.state = TaskState::Canceled;
            task.updated = now;
            task.ended = Some(now);
            task.lease = None;
            task.not_before = None;
        }
        if self.known.events.get(id).is_some_and(|event| event.reception != Reception::Taken) {
            let event = self.known.events.change(id);
            if !event.state.is_terminal() {
                event.state = EventState::Error;
                let kind = FailureKind::Canceled.name().to_owned();
                event.error = Some(EventError { kind, message: "the run was canceled".to_owned() });
            }
            event.reception = Reception::Taken;
        }
        if self.known.step(id).is_some_and(|step| !step.is_terminal()) {
            let failure = self.failure(id, FailureKind::Canceled.name(), "the run was canceled".to_owned());
            let step = self.change(id);
            step.error = Some(failure);
            step.ended = Some(now);
            self.enter(id, State::Error);
            self.rest_step(id);
            self.run.counts.failed += 1;
        }
        self.run_is_dirty = true;
        Ok(())
    }
}

fn failed_by_event(step: &Step) -> bool {
    step.event != Transmission::None && step.failed_itself()
}

fn is_transmitting(rest: &Rest) -> bool {
    rest.state == State::EventTransmit
}

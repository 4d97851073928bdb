//! Requests of an operator: retry a failed step, cancel the run.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::wants::{MissingRecord, all};
use super::{Evaluation, EvaluationPhase};
use crate::event::{EventError, EventState, Reception};
use crate::failure::FailureKind;
use crate::history::Actor;
use crate::id::StepId;
use crate::run::RunStatus;
use crate::state::State;
use crate::step::{Step, StepRest, Transmission};
use crate::task::{Authority, Move};

/// A request from outside the data flow, handled before the next iteration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ControlRequest {
    Reopen(StepId, Actor, Option<Arc<str>>),
    Cancel(StepId, Actor),
}

/// The work of a step that is reopened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReopenedWork<'a> {
    /// It is to be done again, by this server if that claims it in time.
    Again(&'a Actor, Option<&'a Arc<str>>),
    /// It is given another outcome.
    Amended,
}

impl Evaluation {
    /// Tries a failed step again: its own failure is taken back, and with it that of all above that failed for it.
    /// All other steps that are complete stay so. Its work is left to the server `on` first, if one is named.
    pub fn reopen(&mut self, step: StepId, by: Actor, on: Option<Arc<str>>) {
        self.requests.push_back(ControlRequest::Reopen(step, by, on));
    }

    /// Ends a step, its event and its task as canceled, whatever they were doing.
    pub fn cancel(&mut self, step: StepId, by: Actor) {
        self.requests.push_back(ControlRequest::Cancel(step, by));
    }

    /// The run itself is canceled; to be called when none of its steps is open.
    pub fn finish_canceled(&mut self) {
        self.next.clear();
        self.is_next.clear();
        self.held_back.clear();
        self.run.status = RunStatus::Canceled;
        self.run.ended = Some(self.now);
        self.run.iterations_now = 0;
        self.run_is_dirty = true;
        self.trace_rest();
    }

    /// Handles the requests; `MissingRecord` when they need records first.
    pub(super) fn handle_requests(&mut self) -> Result<(), MissingRecord> {
        assert_eq!(self.phase, EvaluationPhase::Between, "requests are handled between iterations");
        while let Some(request) = self.requests.front().cloned() {
            match &request {
                ControlRequest::Reopen(step, by, on) => self.reopen_now(step, by, on.as_ref())?,
                ControlRequest::Cancel(step, by) => self.cancel_now(step, by)?,
            }
            self.requests.pop_front();
        }
        Ok(())
    }

    fn reopen_now(&mut self, id: &StepId, by: &Actor, on: Option<&Arc<str>>) -> Result<(), MissingRecord> {
        self.need_ancestry(id)?;
        if !self.known.step(id).is_some_and(Step::failed_itself) || self.is_caught(id) {
            return Ok(());
        }
        self.need_failed_events(id)?;
        let has_work = self.step(id).failed_by_event();
        if !has_work {
            self.activate(id.clone());
        }
        self.reopen_step(id, ReopenedWork::Again(by, on));
        self.reopen_above(id, by);
        self.run_is_dirty = true;
        Ok(())
    }

    /// The step and all above it.
    pub(super) fn need_ancestry(&mut self, id: &StepId) -> Result<(), MissingRecord> {
        let ancestry = std::iter::successors(Some(id.clone()), StepId::parent);
        all(ancestry.map(|it| self.need_step(&it)))
    }

    /// Whether a `catch` deals with this step's failure, or has dealt with it.
    pub(super) fn is_caught(&self, id: &StepId) -> bool {
        id.outside_catches().any(|above| self.known.step(&above).is_some_and(|it| it.caught.is_some()))
    }

    /// Of the step, and of those above it that failed by their own event beside that of a mixin.
    pub(super) fn need_failed_events(&mut self, id: &StepId) -> Result<(), MissingRecord> {
        let failed: Vec<StepId> = std::iter::successors(Some(id.clone()), StepId::parent)
            .filter(|it| self.known.step(it).is_some_and(Step::failed_by_event))
            .collect();
        all(failed.iter().map(|it| self.need_work(it)))
    }

    /// Sets a step back to the state in which it failed. Only its own event is sent again.
    pub(super) fn reopen_step(&mut self, id: &StepId, work: ReopenedWork<'_>) {
        let step = self.step(id);
        let failed_in = step.failed_in.expect("a step that failed says where");
        let has_work = step.failed_by_event();
        let state = match failed_in {
            State::End if has_work => {
                // Its blocks are complete; when the new result is there, they are found so.
                self.change(id).children = None;
                State::EventTransmit
            }
            state => state,
        };
        self.enter(id, state);
        if has_work {
            self.send_again(id, work);
        }
        let step = self.change(id);
        step.error = None;
        step.failed_in = None;
        step.ended = None;
        self.note_rest(id);
        self.run.counts.failed -= 1;
    }

    /// Opens the event again, and with [`ReopenedWork::Again`] the task.
    fn send_again(&mut self, id: &StepId, work: ReopenedWork<'_>) {
        let turn = self.queue_up();
        // What could not be a timer failed when it was first sent.
        let fires = self.known.events.get(id).and_then(|event| self.timer_of(event)?.ok());
        let event = self.known.events.change(id);
        let result = event.result.take();
        event.state = EventState::Created;
        event.error = None;
        event.reception = Reception::Open;
        let name = event.event_type.clone();
        match work {
            ReopenedWork::Again(by, server) => {
                let retry = Move::Retry { server: server.cloned(), turn: Some(turn), fires };
                self.move_task(id, retry, by);
                let times_out = self.known.tasks.get(id).and_then(|task| task.times_out);
                self.known.events.change(id).times_out = times_out;
                self.trace_publication(id, &name);
            }
            ReopenedWork::Amended => {}
        }
        let step = self.change(id);
        step.event = Transmission::Sent;
        for name in result.iter().flat_map(BTreeMap::keys) {
            step.attributes.returns.remove(name);
        }
    }

    pub(super) fn reopen_above(&mut self, id: &StepId, by: &Actor) {
        let mut at = id.split();
        while let Some((parent, segment)) = at {
            self.children_of(&parent).reopen(segment.place());
            if self.step(&parent).state != State::Error {
                return;
            }
            // If its own event failed beside that of its mixin, one without the other would not end it well.
            self.reopen_step(&parent, ReopenedWork::Again(by, None));
            at = parent.split();
        }
        self.run.status = RunStatus::Running;
        self.run.error = None;
        self.run.ended = None;
    }

    /// Moves the task of a step. The machine refuses a task that was read at another moment than its step or event. The
    /// commit then conflicts, because it expects the versions of all three, and the evaluation reads them again.
    pub(super) fn move_task(&mut self, id: &StepId, what: Move<'_>, by: &Actor) {
        match self.known.tasks.change(id).apply(what, Authority::Actor(by), self.now) {
            Ok(()) | Err(_) => {}
        }
    }

    fn note_rest(&mut self, id: &StepId) {
        let (iteration, state) = (self.run.iterations, self.step(id).state);
        self.change(id).rests.push(StepRest { iteration, state });
    }

    fn cancel_now(&mut self, id: &StepId, by: &Actor) -> Result<(), MissingRecord> {
        self.need_step(id)?;
        let is_sent = self.known.step(id).is_some_and(|step| step.event != Transmission::None);
        if is_sent {
            self.need_work(id)?;
        }
        if self.known.tasks.get(id).is_some_and(|task| !task.state.is_terminal()) {
            self.move_task(id, Move::Cancel { cause: "the run was canceled", error: None }, by);
        }
        if self.known.events.get(id).is_some_and(|event| event.reception != Reception::Taken) {
            let event = self.known.events.change(id);
            if !event.state.is_terminal() {
                event.state = EventState::Error;
                let kind = FailureKind::Canceled.name().to_owned();
                event.error = Some(EventError::new(kind, "the run was canceled"));
            }
            event.reception = Reception::Taken;
            self.run.counts.waiting -= 1;
        }
        if self.known.step(id).is_some_and(|step| !step.is_terminal()) {
            let failure = self.failure(id, FailureKind::Canceled.name(), "the run was canceled".to_owned());
            self.trace_failure(id, &failure);
            self.enter_error(id, failure);
        }
        self.run_is_dirty = true;
        Ok(())
    }
}

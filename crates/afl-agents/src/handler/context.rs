//! The context of a call: facts about its task and a channel for notes; [`CallControl`] is the agent's end of it.

use std::mem;
#[expect(
    clippy::disallowed_types,
    reason = "notes come from sync code on any thread, and are taken in one go"
)]
use std::sync::Mutex;
use std::sync::{Arc, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::notes::{Notes, Progress, cut};
use super::{HandlerFailure, HandlerFailureKind, LogLevel, LogLine, LogStream, Object};

/// The task holder's data about this attempt.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Facts {
    /// Greater with each claim of the task: systems outside may fence by it.
    pub lease_token: u64,
    /// The same for every attempt.
    pub idempotency_key: String,
    pub attempt: u32,
    /// How many attempts gave an answer before, those of earlier retries of an operator included.
    pub answered: u64,
    /// The path of the step for people: `Checkout.payment[3].charge`.
    pub path: String,
}

/// The handler's side. Clones are the same context.
#[derive(Clone, Debug)]
pub struct Context {
    facts: Arc<Facts>,
    notes: Arc<SharedNotes>,
    stop: watch::Sender<Option<CallStop>>,
    activity: watch::Sender<LastActivity>,
}

/// The holder's side: takes the notes, and cancels.
#[derive(Clone, Debug)]
pub struct CallControl(Context);

/// The event that the timeout counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LastActivity {
    /// The work has not begun, so it cannot be overdue.
    Queued,
    At(Instant),
}

#[derive(Debug, Default)]
struct SharedNotes {
    #[expect(clippy::disallowed_types, reason = "held for a push or a take, never across an await")]
    notes: Mutex<Notes>,
    arrived: Notify,
}

/// Why a call is to end before it is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallStop {
    Canceled(CancelReason),
    TimedOut,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CancelReason {
    /// An operator canceled the task or its run.
    Requested,
    /// The task is no longer ours.
    LeaseLost,
    /// This agent ends.
    Shutdown,
}

impl Context {
    pub fn new(facts: Facts) -> (Self, CallControl) {
        let context = Self {
            facts: Arc::new(facts),
            notes: Arc::default(),
            stop: watch::Sender::new(None),
            activity: watch::Sender::new(LastActivity::Queued),
        };
        (context.clone(), CallControl(context))
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// A sign of life: the timeout starts anew.
    pub fn heartbeat(&self) {
        self.tell(|notes| notes.alive = true);
        self.restart_timeout();
    }

    /// A sign of life that says how far the work is.
    pub fn progress(&self, mut progress: Progress) {
        cut(&mut progress.message);
        self.tell(|notes| notes.progress = Some(progress));
        self.heartbeat();
    }

    /// A sign of life with a part of the result, shown before the end. Later parts replace earlier ones by key.
    pub fn update(&self, partial: Object) {
        self.tell(|notes| notes.update.get_or_insert_default().extend(partial));
        self.heartbeat();
    }

    /// A line of the task's log. It is no sign of life: a loop that prints may hang all the same.
    pub fn log(&self, stream: LogStream, level: LogLevel, text: impl Into<String>) {
        let line = LogLine { stream, level, text: text.into() };
        self.tell(|notes| notes.push(line));
    }

    pub(super) fn stop_asked(&self) -> Option<CallStop> {
        *self.stop.borrow()
    }

    /// Waits until the call is to end.
    pub async fn stopped(&self) -> CallStop {
        let mut stop = self.stop.subscribe();
        let stop = stop.wait_for(Option::is_some).await.expect("we hold the sender");
        stop.expect("waited for")
    }

    /// Waiting in line is not the handler's silence: the timeout begins when it is over.
    pub(crate) async fn while_queued<T>(&self, turn: impl Future<Output = T>) -> T {
        self.activity.send_replace(LastActivity::Queued);
        let turn = turn.await;
        self.restart_timeout();
        turn
    }

    /// A part of the way to the work, which must not begin after a stop. Its failures leave the work undone.
    pub(crate) async fn unless_stopped<T>(
        &self,
        way: impl Future<Output = Result<T, HandlerFailure>>,
    ) -> Result<T, HandlerFailure> {
        tokio::select! {
            biased;
            stop = self.stopped() => Err(stop.failure().not_done()),
            arrived = way => arrived.map_err(HandlerFailure::not_done),
        }
    }

    /// Whether the work has not begun.
    pub(super) fn is_queued(&self) -> bool {
        *self.activity.borrow() == LastActivity::Queued
    }

    pub(super) fn restart_timeout(&self) {
        self.activity.send_replace(LastActivity::At(Instant::now()));
    }

    pub(super) fn activities(&self) -> watch::Receiver<LastActivity> {
        self.activity.subscribe()
    }

    /// Asks the handler to end; the first reason stands.
    pub(super) fn stop(&self, reason: CallStop) {
        self.stop.send_if_modified(|stop| stop.is_none() && stop.replace(reason).is_none());
    }

    fn tell(&self, note: impl FnOnce(&mut Notes)) {
        note(&mut self.notes.notes.lock().unwrap_or_else(PoisonError::into_inner));
        self.notes.arrived.notify_one();
    }
}

impl CallControl {
    /// The time of the whole call is over.
    pub fn time_out(&self) {
        self.0.stop(CallStop::TimedOut);
    }

    pub fn cancel(&self, reason: CancelReason) {
        self.0.stop(CallStop::Canceled(reason));
    }

    /// The notes since the last call; dropping the future loses none.
    pub async fn notes(&self) -> Notes {
        loop {
            let arrived = self.0.notes.arrived.notified();
            let notes = self.take_notes();
            if !notes.is_empty() {
                return notes;
            }
            arrived.await;
        }
    }

    /// The notes that remain after the call.
    pub fn take_notes(&self) -> Notes {
        mem::take(&mut self.0.notes.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl CallStop {
    /// The outcome of a call that was stopped, whatever it answered afterwards.
    pub(crate) fn failure(self) -> HandlerFailure {
        let (kind, message) = match self {
            Self::TimedOut => {
                (HandlerFailureKind::Timeout, "no sign of life from the handler within its timeout")
            }
            Self::Canceled(CancelReason::Requested) => (HandlerFailureKind::Canceled, "canceled"),
            Self::Canceled(CancelReason::LeaseLost) => {
                (HandlerFailureKind::Canceled, "the lease of the task was lost")
            }
            Self::Canceled(CancelReason::Shutdown) => (HandlerFailureKind::Canceled, "the agent is ending"),
        };
        HandlerFailure::new(kind, message)
    }
}

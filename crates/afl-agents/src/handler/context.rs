//! What a call knows of its task and may tell while it works, and the other end of it.

#[expect(
    clippy::disallowed_types,
    reason = "notes come from sync code on any thread, and are taken in one go"
)]
use std::sync::Mutex;
use std::sync::{Arc, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::notes::{Level, Line, Notes, Progress, Stream, cut};
use super::{Failure, FailureKind, Object};

/// What the holder of the task knows of this attempt.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Facts {
    /// One more with each claim of the task: systems outside may fence by it.
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
    told: Arc<Told>,
    stop: watch::Sender<Option<Stop>>,
    sign: watch::Sender<Sign>,
}

/// The holder's side: takes the notes, and cancels.
#[derive(Clone, Debug)]
pub struct Control {
    told: Arc<Told>,
    stop: watch::Sender<Option<Stop>>,
}

/// What the timeout counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sign {
    /// The work has not begun, so it cannot be overdue.
    InLine,
    OfLife(Instant),
}

#[derive(Debug, Default)]
struct Told {
    #[expect(clippy::disallowed_types, reason = "held for a push or a take, never across an await")]
    notes: Mutex<Notes>,
    arrived: Notify,
}

/// Why a call is to end before it is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    Canceled(CancelReason),
    TimedOut,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CancelReason {
    /// Somebody canceled the task or its run.
    Requested,
    /// The task is no longer ours.
    LeaseLost,
    /// This agent ends.
    Shutdown,
}

impl Context {
    pub fn new(facts: Facts) -> (Self, Control) {
        let told = Arc::new(Told::default());
        let stop = watch::Sender::new(None);
        let control = Control { told: told.clone(), stop: stop.clone() };
        (Self { facts: Arc::new(facts), told, stop, sign: watch::Sender::new(Sign::InLine) }, control)
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
        self.tell(|notes| notes.merge(partial));
        self.heartbeat();
    }

    /// A line of the task's log. It is no sign of life: a loop that prints may hang all the same.
    pub fn log(&self, stream: Stream, level: Level, text: impl Into<String>) {
        let line = Line { stream, level, text: text.into() };
        self.tell(|notes| notes.push(line));
    }

    pub fn is_stopped(&self) -> bool {
        self.stop_asked().is_some()
    }

    pub(super) fn stop_asked(&self) -> Option<Stop> {
        *self.stop.borrow()
    }

    /// Waits until the call is to end.
    pub async fn stopped(&self) -> Stop {
        let mut stop = self.stop.subscribe();
        let stop = stop.wait_for(Option::is_some).await.expect("we hold the sender");
        stop.expect("waited for")
    }

    /// Waiting in line is not the handler's silence: the timeout begins when it is over.
    pub(crate) async fn in_line<T>(&self, turn: impl Future<Output = T>) -> T {
        self.sign.send_replace(Sign::InLine);
        let turn = turn.await;
        self.restart_timeout();
        turn
    }

    pub(super) fn restart_timeout(&self) {
        self.sign.send_replace(Sign::OfLife(Instant::now()));
    }

    pub(super) fn signs(&self) -> watch::Receiver<Sign> {
        self.sign.subscribe()
    }

    /// Tells the handler to end; the first reason stands.
    pub(super) fn stop(&self, reason: Stop) {
        stop(&self.stop, reason);
    }

    fn tell(&self, note: impl FnOnce(&mut Notes)) {
        note(&mut self.told.notes.lock().unwrap_or_else(PoisonError::into_inner));
        self.told.arrived.notify_one();
    }
}

impl Control {
    pub fn cancel(&self, reason: CancelReason) {
        stop(&self.stop, Stop::Canceled(reason));
    }

    /// What was told since the last look; nothing is lost when the future is dropped.
    pub async fn notes(&self) -> Notes {
        loop {
            let arrived = self.told.arrived.notified();
            let notes = self.take_notes();
            if !notes.is_empty() {
                return notes;
            }
            arrived.await;
        }
    }

    /// What is left after the call.
    pub fn take_notes(&self) -> Notes {
        self.told.notes.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn stop(sender: &watch::Sender<Option<Stop>>, reason: Stop) {
    sender.send_if_modified(|stop| stop.is_none() && stop.replace(reason).is_none());
}

impl Stop {
    /// The outcome of a call that was stopped, whatever it answered afterwards.
    pub(crate) fn failure(self) -> Failure {
        let (kind, message) = match self {
            Self::TimedOut => (FailureKind::Timeout, "no sign of life from the handler within its timeout"),
            Self::Canceled(CancelReason::Requested) => (FailureKind::Canceled, "canceled"),
            Self::Canceled(CancelReason::LeaseLost) => {
                (FailureKind::Canceled, "the lease of the task was lost")
            }
            Self::Canceled(CancelReason::Shutdown) => (FailureKind::Canceled, "the agent is ending"),
        };
        Failure::new(kind, message)
    }
}

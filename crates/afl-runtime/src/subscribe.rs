//! Publishes the trace of evaluations to subscribers (document 003 §18).
//!
//! Only committed records are published, and the evaluator waits for no subscriber: records that a slow subscriber
//! misses are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afl_engine::evaluation::{Evaluation, Options};
use afl_engine::id::RunId;
use afl_engine::time::Millis;
use afl_engine::trace::{Trace, Tracing};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::service::Service;

/// An event in the evaluation of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceRecord {
    /// When it was evaluated, by the store's clock.
    pub time: Millis,
    pub run: RunId,
    #[serde(flatten)]
    pub trace: Trace,
}

/// The records that a listener has not read yet. Dropping it ends the subscription.
#[derive(Debug)]
pub struct TraceSubscription {
    told: mpsc::Receiver<TraceRecord>,
    missed: Arc<AtomicU64>,
}

impl TraceSubscription {
    /// `None` after the last publisher is gone.
    pub async fn next(&mut self) -> Option<TraceRecord> {
        self.told.recv().await
    }

    /// Waits for the next record and adds all that are there, up to a limit; adds none after the last publisher is
    /// gone.
    pub async fn next_many(&mut self, batch: &mut Vec<TraceRecord>, limit: usize) {
        self.told.recv_many(batch, limit).await;
    }

    /// Takes no new records from now on; those in the queue can still be read.
    pub fn close(&mut self) {
        self.told.close();
    }

    /// How many were left out since the last time this was asked.
    pub fn take_missed(&self) -> u64 {
        self.missed.swap(0, Ordering::Relaxed)
    }
}

/// The service's end.
#[derive(Clone, Debug)]
pub(crate) struct TraceSubscriber {
    wants: Tracing,
    to: mpsc::Sender<TraceRecord>,
    missed: Arc<AtomicU64>,
}

impl TraceSubscriber {
    fn tell(&self, traced: &TraceRecord) {
        match self.to.try_reserve() {
            Ok(permit) => permit.send(traced.clone()),
            Err(_) => {
                self.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Service {
    /// The same service with one more listener, who may be behind by so many.
    #[must_use]
    pub fn subscribe(mut self, wants: Tracing, room: usize) -> (Self, TraceSubscription) {
        let (to, told) = mpsc::channel(room);
        let missed = Arc::<AtomicU64>::default();
        self.options = Options { tracing: self.options.tracing.max(wants), ..self.options };
        self.listeners.push(TraceSubscriber { wants, to, missed: Arc::clone(&missed) });
        (self, TraceSubscription { told, missed })
    }

    pub(crate) fn tell(&self, evaluation: &mut Evaluation) {
        for trace in evaluation.drain_traces() {
            let (time, run) = (evaluation.now(), evaluation.run().id.clone());
            let traced = TraceRecord { time, run, trace };
            for listener in self.listeners.iter().filter(|listener| listener.wants.hears(&traced.trace)) {
                listener.tell(&traced);
            }
        }
    }
}

//! The reports of a holder about its task. Each accepted outcome is one commit: the task, its event, and that the run
//! needs evaluation.

use afl_engine::event::{Event, EventError};
use afl_engine::run::Run;
use afl_engine::task::{Move, Requeue, Task};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_engine::version::Version;

use super::lease::{TicketCheck, TicketWork};
use super::outcome::{self, TaskOutcome};
use super::{Queue, Refusal, Ticket};
use crate::backend::{Batch, Durability};
use crate::collection::Collection;
use crate::conflict::retry_on_conflict;
use crate::notification::{NOTIFY, Notification, NotifyOn};
use crate::store::{Error, StoredRecord};

/// The result of settling a task.
#[derive(Clone, PartialEq, Debug)]
pub enum SettleResult {
    /// The event has its outcome; wake the evaluator.
    Arrived(Box<StoredRecord<Event>>),
    /// The task will be handed out again.
    Again { not_before: Millis },
    /// The same holder said so before; nothing was written.
    Repeated,
}

/// The basis of an outcome: the versions of the task and its event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Basis {
    pub(super) task: Version,
    pub(super) event: Version,
}

impl Queue {
    /// The work is done.
    pub async fn complete(
        &self,
        ticket: &Ticket,
        result: &Map<String, Value>,
    ) -> Result<SettleResult, Refusal> {
        self.settle(ticket, |mut task, event, now| {
            outcome::check(&task, result)?;
            task.apply(Move::Complete, ticket.authority(), now)?;
            Ok(TaskOutcome::completed(task, event, result.clone()))
        })
        .await
    }

    /// The attempt failed; the declared retries decide what follows.
    pub async fn fail(&self, ticket: &Ticket, error: &EventError) -> Result<SettleResult, Refusal> {
        self.settle(ticket, |task, event, now| {
            Ok(outcome::attempt_failed(task, event, error.clone(), ticket.authority(), now)?)
        })
        .await
    }

    /// The holder gives the task back undone, for others to take at once or not before this time.
    pub async fn release(
        &self,
        ticket: &Ticket,
        not_before: Option<Millis>,
    ) -> Result<SettleResult, Refusal> {
        self.settle(ticket, |mut task, _, now| {
            task.apply(Move::Requeue(Requeue::Release { not_before }), ticket.authority(), now)?;
            Ok(TaskOutcome::requeued(task))
        })
        .await
    }

    async fn settle(
        &self,
        ticket: &Ticket,
        decide: impl Fn(Task, Event, Millis) -> Result<TaskOutcome, Refusal>,
    ) -> Result<SettleResult, Refusal> {
        retry_on_conflict(|| async {
            let TicketWork { task, event, asked } = match self.holding(ticket).await? {
                TicketCheck::Now(holding) => *holding,
                TicketCheck::Settled { .. } => return Ok(SettleResult::Repeated),
            };
            let now = self.store.now().await?;
            let basis = Basis { task: task.version, event: event.version };
            let outcome = decide(task.item, event.item, now)?;
            Ok(self.write_outcome(outcome, basis, asked, now).await?)
        })
        .await
    }

    pub(super) async fn write_outcome(
        &self,
        outcome: TaskOutcome,
        basis: Basis,
        asked: NotifyOn,
        now: Millis,
    ) -> Result<SettleResult, Error> {
        let run = outcome.task.workflow_id.clone();
        let not_before = outcome.task.not_before.unwrap_or(now);
        let task = StoredRecord { item: outcome.task, version: basis.task };
        let mut writes = vec![self.store.update(&run, &task, now)];
        let Some(event) = outcome.event else {
            self.store.write(writes, Durability::Durable).await?;
            return Ok(SettleResult::Again { not_before });
        };
        let event = StoredRecord { item: event, version: basis.event };
        writes.push(self.store.update(&run, &event, now));
        if let Some(notification) = Notification::of_end(&task.item, asked, now) {
            // The version that this write spends makes the name its own.
            let id = format!("{run}-{}-{}", task.item.step_id, basis.task.number);
            writes.push(Collection::new(self.store.clone()).create(&id, &notification));
        }
        let messages = self.store.messages_of_end(&task, Some(&event.item), now).await?;
        writes.extend(messages.writes);
        let blobs: Vec<_> = outcome.blobs.into_iter().chain(messages.blobs).collect();
        self.store.write_with_blobs(&run, Batch::new(writes, Durability::Durable), &blobs).await?;
        Ok(SettleResult::Arrived(Box::new(StoredRecord { item: event.item, version: basis.event.next() })))
    }
}

pub(super) fn asked(run: &Run) -> NotifyOn {
    let (label, completed) = NOTIFY;
    match run.labels.get(label) {
        Some(value) if value == completed => NotifyOn::OnCompleted,
        Some(_) | None => NotifyOn::OnErrors,
    }
}

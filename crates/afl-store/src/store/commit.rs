//! Commits what an evaluation changed: all of it at once, or nothing.

use afl_engine::changes::{Changes, Put};
use afl_engine::evaluation::StoredRecord;
use afl_engine::id::RunId;
use afl_engine::run::{Active, Run};
use afl_engine::task::Task;
use afl_engine::time::Millis;
use serde::{Deserialize, Serialize};

use super::entity::{Entity, task_record};
use super::error::Error;
use super::{Store, opened_json, sealed_json};
use crate::backend::{Batch, Change, Durability, Write};
use crate::collection::Collection;
use crate::notification::Notification;

/// The meaning of an idempotency key: the run it started, and the inputs of that run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reservation {
    #[serde(skip)]
    pub key: String,
    pub run: RunId,
    /// Of workflow, program and inputs: the same key must ask for the same.
    pub digest: String,
}

/// The conditions of a run's first commit beside the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'a> {
    /// The idempotency key that it takes.
    pub reservation: Option<&'a Reservation>,
    /// The task that asked for it, which must be as it was read.
    pub task: Option<&'a StoredRecord<Task>>,
}

impl Store {
    /// Writes a run back over the version that was read, for what an operator asks of it. An evaluation that began before
    /// loses.
    pub async fn save_run(&self, run: &StoredRecord<Run>, durability: Durability) -> Result<(), Error> {
        let write = self.update(&run.item.id, run, run.item.updated);
        Ok(self.write(vec![write], durability).await?)
    }

    /// Holds a run and tells people, in one commit.
    pub async fn quarantine_run(
        &self,
        run: &StoredRecord<Run>,
        notification: &Notification,
    ) -> Result<(), Error> {
        let name = format!("quarantine-{}-{}", run.item.id, run.version.number);
        let told = Collection::new(self.clone()).create(&name, notification);
        let write = self.update(&run.item.id, run, run.item.updated);
        Ok(self.write(vec![write, told], Durability::Durable).await?)
    }

    pub async fn reservation(&self, key: &str) -> Result<Option<Reservation>, Error> {
        let Some(record) = self.record(&self.idempotency_key(key)).await? else { return Ok(None) };
        Ok(Some(Reservation { key: key.to_owned(), ..opened_json(&record)? }))
    }

    /// Lets another start have the key, if it still stands for this run.
    pub async fn free_key(&self, key: &str, run: &RunId) -> Result<(), Error> {
        let Some(record) = self.record(&self.idempotency_key(key)).await? else { return Ok(()) };
        if opened_json::<Reservation>(&record)?.run != *run {
            return Ok(());
        }
        Ok(self.write(vec![Write::delete_of(&record)], Durability::Durable).await?)
    }

    /// Commits an evaluation. A conflict means that it was made on old data: read again and evaluate anew. That of a
    /// first evaluation means that its terms do not hold.
    pub async fn commit(
        &self,
        changes: &Changes,
        terms: Terms<'_>,
        durability: Durability,
    ) -> Result<(), Error> {
        let run = &changes.run.item.id;
        let now = changes.run.item.updated;
        let mut writes = Vec::with_capacity(2 + changes.steps.len() + changes.events.len());
        writes.push(self.put_change(run, &changes.run, now));
        writes.extend(changes.active.as_ref().map(|active| self.put_active(run, active, now)));
        writes.extend(changes.steps.iter().map(|put| self.put_change(run, put, now)));
        writes.extend(changes.events.iter().map(|put| self.put_change(run, put, now)));
        writes.extend(changes.tasks.iter().map(|put| self.put_change(run, put, now)));
        writes.extend(terms.reservation.map(|reservation| self.put_reservation(reservation)));
        writes.extend(terms.task.map(|task| self.keep_task(task)));
        let messages = self.messages_of_changes(changes, now).await?;
        if messages.is_empty() {
            return self.write_with_blobs(run, Batch::new(writes, durability), &changes.blobs).await;
        }
        writes.extend(messages.writes);
        let blobs: Vec<_> = changes.blobs.iter().cloned().chain(messages.blobs).collect();
        // A message must not leave before the end that it reports is durable.
        self.write_with_blobs(run, Batch::new(writes, Durability::Durable), &blobs).await
    }

    fn put_active(&self, run: &RunId, active: &Put<Active>, now: Millis) -> Write {
        let write = self.put_change(run, active, now);
        if active.item.0.is_empty() { Write { change: Change::Delete, ..write } } else { write }
    }

    fn keep_task(&self, task: &StoredRecord<Task>) -> Write {
        let key = self.run_key(&task.item.workflow_id, task_record(&task.item.step_id));
        Write::keep(key, task.version)
    }

    fn put_change<T: Entity>(&self, run: &RunId, put: &Put<T>, now: Millis) -> Write {
        self.put(run, &*put.item, put.version.into(), now)
    }

    pub(crate) fn put_reservation(&self, reservation: &Reservation) -> Write {
        let key = self.idempotency_key(&reservation.key);
        let content = sealed_json(&key, reservation, None);
        Write::put(key, None, content)
    }
}

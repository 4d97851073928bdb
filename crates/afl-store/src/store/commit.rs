//! Commits what an evaluation changed: all of it at once, or nothing.

use afl_engine::changes::{Changes, Put};
use afl_engine::evaluation::Stored;
use afl_engine::id::RunId;
use afl_engine::run::{Active, Run};
use afl_engine::task::Task;
use afl_engine::time::Millis;
use serde::{Deserialize, Serialize};

use super::entity::{Entity, task_record};
use super::error::{Defect, Error};
use super::{Store, seal};
use crate::backend::{Change, Durability, Expect, Scan, Write};
use crate::record::{Key, Record};

/// What an idempotency key stands for: the run it started, and what it was started with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reservation {
    #[serde(skip)]
    pub key: String,
    pub run: RunId,
    /// Of workflow, program and inputs: the same key must ask for the same.
    pub digest: String,
}

/// What the first commit of a run depends on beside the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'a> {
    /// The idempotency key that it takes.
    pub reservation: Option<&'a Reservation>,
    /// The task that asked for it, which must be as it was read.
    pub task: Option<&'a Stored<Task>>,
}

impl Store {
    /// Commits an evaluation. A conflict means that it was made on old data: read again and evaluate anew.
    pub async fn commit(&self, changes: &Changes, durability: Durability) -> Result<(), Error> {
        self.commit_writes(changes, Terms::default(), durability).await
    }

    /// Commits the first evaluation of a run; a conflict means that its terms do not hold.
    pub async fn commit_start(&self, changes: &Changes, terms: Terms<'_>) -> Result<(), Error> {
        self.commit_writes(changes, terms, Durability::Durable).await
    }

    /// Writes a run back over the version that was read, for what an operator asks of it. An evaluation that began before
    /// loses.
    pub async fn save_run(&self, run: &Stored<Run>, durability: Durability) -> Result<(), Error> {
        let write = self.update(&run.item.id, run, run.item.updated);
        Ok(self.write(vec![write], durability).await?)
    }

    pub async fn reservation(&self, key: &str) -> Result<Option<Reservation>, Error> {
        let at = self.idempotency_key(key);
        let Some(record) = self.backend.get(&[at]).await?.pop().flatten() else { return Ok(None) };
        Ok(Some(Reservation { key: key.to_owned(), ..reserved(&record)? }))
    }

    /// Lets another start have the key, if it still stands for this run.
    pub async fn free_key(&self, key: &str, run: &RunId) -> Result<(), Error> {
        let at = self.idempotency_key(key);
        let Some(record) = self.backend.get(&[at]).await?.pop().flatten() else { return Ok(()) };
        if reserved(&record)?.run != *run {
            return Ok(());
        }
        let (key, expect) = (record.key, Expect::Version(record.version));
        Ok(self.write(vec![Write { key, expect, change: Change::Delete }], Durability::Durable).await?)
    }

    /// A page of all keys with the runs that have them; one that cannot be read is nobody's.
    pub(super) async fn reservations(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(Record, Option<RunId>)>, Error> {
        let Key { tenant, scope, .. } = self.idempotency_key("");
        let after = after.map(str::to_owned);
        let scan = Scan::Scope { tenant, scope, prefix: String::new(), after, limit };
        let records = self.backend.scan(&scan).await?;
        let with_run = |record: Record| match reserved(&record) {
            Ok(reservation) => (record, Some(reservation.run)),
            Err(_) => (record, None),
        };
        Ok(records.into_iter().map(with_run).collect())
    }

    async fn commit_writes(
        &self,
        changes: &Changes,
        terms: Terms<'_>,
        durability: Durability,
    ) -> Result<(), Error> {
        let run = &changes.run().item.id;
        let now = changes.run().item.updated;
        let mut writes = Vec::with_capacity(2 + changes.steps().len() + changes.events().len());
        writes.push(self.put_change(run, changes.run(), now));
        writes.extend(changes.active().map(|active| self.put_active(run, active, now)));
        writes.extend(changes.steps().iter().map(|put| self.put_change(run, put, now)));
        writes.extend(changes.events().iter().map(|put| self.put_change(run, put, now)));
        writes.extend(changes.tasks().iter().map(|put| self.put_change(run, put, now)));
        writes.extend(terms.reservation.map(|reservation| self.put_reservation(reservation)));
        writes.extend(terms.task.map(|task| self.keep_task(task)));
        let messages = self.messages_of_changes(changes, now).await?;
        if messages.is_empty() {
            return self.write_with_blobs(run, writes, changes.blobs(), durability).await;
        }
        writes.extend(messages.writes);
        let blobs: Vec<_> = changes.blobs().iter().cloned().chain(messages.blobs).collect();
        // A message must not leave before the end that it reports is durable.
        self.write_with_blobs(run, writes, &blobs, Durability::Durable).await
    }

    fn put_active(&self, run: &RunId, active: &Put<Active>, now: Millis) -> Write {
        let write = self.put_change(run, active, now);
        if active.item.0.is_empty() { Write { change: Change::Delete, ..write } } else { write }
    }

    fn keep_task(&self, task: &Stored<Task>) -> Write {
        let key = self.run_key(&task.item.workflow_id, task_record(&task.item.step_id));
        Write { key, expect: Expect::Version(task.version), change: Change::Keep }
    }

    fn put_change<T: Entity>(&self, run: &RunId, put: &Put<T>, now: Millis) -> Write {
        let expect = put.version.map_or(Expect::Absent, Expect::Version);
        self.put(run, &*put.item, expect, now)
    }

    pub(crate) fn put_reservation(&self, reservation: &Reservation) -> Write {
        let key = self.idempotency_key(&reservation.key);
        let body = serde_json::to_vec(reservation).expect("a reservation has a JSON form");
        let content = seal::sealed(&key, body, None);
        Write { key, expect: Expect::Absent, change: Change::Put(content) }
    }
}

fn reserved(record: &Record) -> Result<Reservation, Error> {
    let wrong = |error: serde_json::Error| Error::unreadable(&record.key, Defect::Body(error.to_string()));
    serde_json::from_slice(seal::opened(record)?).map_err(wrong)
}

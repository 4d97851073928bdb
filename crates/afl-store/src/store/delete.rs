//! Counts the records of buckets, and deletes runs.

use afl_engine::id::RunId;
use afl_engine::run::Run;
use afl_engine::task::{Task, TaskKind};

use super::{Error, Reservation, Store, StoredRecord, entity, opened_json, scope};
use crate::backend::{BucketCursor, Change, Durability, Expect, Head, Ranks, Write};
use crate::paging::{Pages, last_if_full};
use crate::record::Record;

const PAGE: usize = 500;

/// The parts of a run in the order in which they are deleted: the tasks first, so that no agent works for it, and at the
/// end all that is left.
const PARTS: [&str; 6] = [entity::TASKS, entity::EVENTS, entity::BLOBS, entity::PIECES, entity::STEPS, ""];

impl Store {
    /// How many records a bucket holds, counted up to `most`.
    pub async fn count(&self, bucket: &str, most: usize) -> Result<usize, Error> {
        let mut count = 0;
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.scan_bucket(bucket, Ranks::All, pages.after(), PAGE).await?;
            count += page.len();
            pages.follow(last_if_full(&page, PAGE).filter(|_| count < most).map(BucketCursor::of));
        }
        Ok(count.min(most))
    }

    /// The buckets with this prefix that hold something.
    pub async fn buckets(&self, prefix: &str) -> Result<Vec<String>, Error> {
        Ok(self.heads(prefix).await?.into_iter().map(|head| head.bucket).collect())
    }

    pub(crate) async fn heads(&self, prefix: &str) -> Result<Vec<Head>, Error> {
        Ok(self.backend.heads(&self.tenant, prefix).await?)
    }

    /// Deletes everything of a run that has ended. The run itself and its key go last, so that a crash leaves a run
    /// that can be deleted again.
    pub async fn delete_run(&self, run: &Run) -> Result<(), Error> {
        assert!(run.status.is_terminal(), "only a run that has ended is deleted");
        // While its last write stands, no person can have retried the run.
        let unchanged = self.unchanged(run).await?;
        for part in PARTS {
            self.delete_part(&run.id, part, Some(&unchanged), Durability::Relaxed).await?;
        }
        let mut writes = Vec::new();
        if let Expect::Version(_) = unchanged.expect
            && let Some(key) = &run.idempotency_key
        {
            writes.extend(self.record(&self.idempotency_key(key)).await?.as_ref().map(Write::delete_of));
        }
        writes.push(match unchanged.expect {
            Expect::Version(_) => Write { change: Change::Delete, ..unchanged },
            Expect::Absent => unchanged,
        });
        Ok(self.write(writes, Durability::Durable).await?)
    }

    /// Deletes a system task that has ended, with its event and log; the task goes last, so that a crash leaves one
    /// that can be deleted again.
    pub async fn delete_system_task(&self, task: &StoredRecord<Task>) -> Result<(), Error> {
        assert!(task.item.kind() == TaskKind::System && task.item.state.is_terminal(), "it has ended");
        let id = &task.item.workflow_id;
        // While its last write stands, the task was not requested again.
        let key = self.run_key(id, entity::task_record(&task.item.step_id));
        let unchanged = Write::keep(key.clone(), task.version);
        for part in [entity::LOGS, entity::PIECES, entity::BLOBS, entity::EVENTS] {
            self.delete_part(id, part, Some(&unchanged), Durability::Relaxed).await?;
        }
        Ok(self.write(vec![Write::delete(key, task.version)], Durability::Relaxed).await?)
    }

    /// Deletes whatever there is of a run, readable or not. The run itself goes last, so that a crash leaves a run
    /// that can be discarded again; its tasks go first, so that no agent works for it, then its key, which can be used
    /// for another run.
    pub async fn discard_run(&self, run: &RunId) -> Result<(), Error> {
        self.delete_keys_of(run).await?;
        for part in PARTS {
            self.delete_part(run, part, None, Durability::Durable).await?;
        }
        let own = self.record(&self.run_key(run, entity::run_record())).await?;
        Ok(self.write(own.iter().map(Write::delete_of).collect(), Durability::Durable).await?)
    }

    /// Deletes records with ids of this prefix, but not the run's own record, page by page, each on the condition.
    async fn delete_part(
        &self,
        run: &RunId,
        prefix: &str,
        condition: Option<&Write>,
        durability: Durability,
    ) -> Result<(), Error> {
        loop {
            let page = self.scan_scope(run.0.clone(), prefix, None, PAGE).await?;
            let full = page.len() == PAGE;
            let parts = page.iter().filter(|record| record.key.id != entity::RUN);
            let writes: Vec<Write> = parts.map(Write::delete_of).collect();
            if !writes.is_empty() {
                self.write(condition.cloned().into_iter().chain(writes).collect(), durability).await?;
            }
            if !full {
                return Ok(());
            }
        }
    }

    /// The run may be unreadable, so its key is found by looking at all of them.
    async fn delete_keys_of(&self, run: &RunId) -> Result<(), Error> {
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.scan_scope(scope::KEYS, "", pages.after().cloned(), PAGE).await?;
            // A reservation that cannot be read belongs to no run.
            let is_of_run =
                |record: &&Record| opened_json::<Reservation>(record).is_ok_and(|it| it.run == *run);
            let writes: Vec<Write> = page.iter().filter(is_of_run).map(Write::delete_of).collect();
            if !writes.is_empty() {
                self.write(writes, Durability::Durable).await?;
            }
            pages.follow(last_if_full(&page, PAGE).map(|last| last.key.id.clone()));
        }
        Ok(())
    }

    /// The expectation that the run is still as it was read.
    async fn unchanged(&self, run: &Run) -> Result<Write, Error> {
        let key = self.run_key(&run.id, entity::run_record());
        let stored = self.run(&run.id).await?.filter(|stored| stored.item == *run);
        Ok(Write { key, expect: stored.map(|stored| stored.version).into(), change: Change::Keep })
    }
}

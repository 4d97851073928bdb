//! A group of commits and takes that share one transaction, though each stands or falls alone.
//!
//! Problem: a sync of the disk costs more than everything else, so commits must share one. But a batch that meets another
//! version is refused alone, and a damaged record or a full disk must fail only the batch that touches it.
//!
//! Approach: each job checks all its expectations before its first write, so a refused job has written nothing and the
//! transaction goes on. An error of SQLite itself rolls the group back, and the [core](super::core) tries its jobs one by
//! one.
//!
//! Rejected: a savepoint for each job. Every job would pay for it, and only damage would need it.

use std::thread;

use afl_store::backend::{Batch, Change, Durability, StoreError, Take, TakeMoment, TakeResult};
use afl_store::record::{Content, Key, QueuePosition, Tenant};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::apply::{self, ApplyError};
use super::clock::LatestTime;

/// A commit or take, and where its outcome goes.
pub(super) struct Job {
    pub(super) work: JobWork,
    pub(super) reply: oneshot::Sender<JobOutcome>,
}

pub(super) enum JobWork {
    Commit(Batch),
    Take(Box<Take>),
}

const LIGHT_WRITES: usize = 32;
const LIGHT_BYTES: usize = 64 << 10;

/// The outer error is the panic of a take's decision, which goes back to the caller. A commit moves no records.
pub(super) type JobOutcome = thread::Result<Result<TakeResult, StoreError>>;

/// Also returns whether anything was written. After an error, [`roll_back`] is due.
pub(super) fn transact(
    connection: &Connection,
    jobs: &[Job],
    moment: TakeMoment,
    latest: &mut LatestTime,
) -> rusqlite::Result<(Vec<JobOutcome>, bool)> {
    let before = connection.total_changes();
    run(connection, "BEGIN IMMEDIATE")?;
    let outcomes =
        jobs.iter().map(|job| job.apply(connection, moment)).collect::<rusqlite::Result<Vec<_>>>()?;
    let promises = jobs
        .iter()
        .zip(&outcomes)
        .any(|(job, outcome)| job.durability() == Durability::Durable && matches!(outcome, Ok(Ok(_))));
    if connection.total_changes() == before && promises {
        // A transaction without a write syncs nothing, but a durable commit must make earlier commits durable too.
        run(connection, "UPDATE meta SET value = value + 1 WHERE name = 'syncs'")?;
    }
    if connection.total_changes() != before {
        latest.note(connection, moment.now)?;
    }
    run(connection, "COMMIT")?;
    Ok((outcomes, connection.total_changes() != before))
}

pub(super) fn roll_back(connection: &Connection) -> rusqlite::Result<()> {
    // Some errors have ended the transaction already.
    if connection.is_autocommit() { Ok(()) } else { run(connection, "ROLLBACK") }
}

fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

impl Job {
    fn apply(&self, connection: &Connection, moment: TakeMoment) -> rusqlite::Result<JobOutcome> {
        let applied = match &self.work {
            JobWork::Commit(batch) => apply::commit(connection, batch).map(|()| TakeResult::default()),
            JobWork::Take(take) => apply::take(connection, take, moment),
        };
        match applied {
            Ok(taken) => Ok(Ok(Ok(taken))),
            Err(ApplyError::Refused(error)) => Ok(Ok(Err(error))),
            Err(ApplyError::Panicked(panic)) => Ok(Err(panic)),
            Err(ApplyError::Broken(error)) => Err(error),
        }
    }

    pub(super) fn durability(&self) -> Durability {
        match &self.work {
            JobWork::Commit(batch) => batch.durability,
            JobWork::Take(take) => take.durability,
        }
    }

    /// As far as it is known before the work.
    pub(super) fn bytes(&self) -> usize {
        match &self.work {
            JobWork::Commit(batch) => batch.bytes(),
            JobWork::Take(_) => 0,
        }
    }

    /// Whether it is done in the time of a read, but for a sync of the disk.
    pub(super) fn is_light(&self) -> bool {
        match &self.work {
            JobWork::Commit(batch) => batch.writes.len() <= LIGHT_WRITES && batch.bytes() <= LIGHT_BYTES,
            JobWork::Take(take) => take.limit <= LIGHT_WRITES,
        }
    }

    /// The positions that it put records into, for their watchers.
    pub(super) fn places<'a>(&'a self, taken: &'a TakeResult) -> Vec<(&'a Tenant, &'a QueuePosition)> {
        let placed = |key: &'a Key, content: &'a Content| Some((&key.tenant, content.place.as_ref()?));
        match &self.work {
            JobWork::Commit(batch) => {
                let puts = batch.writes.iter().filter_map(|write| match &write.change {
                    Change::Put(content) => placed(&write.key, content),
                    Change::Delete | Change::Keep => None,
                });
                puts.collect()
            }
            JobWork::Take(_) => {
                taken.moved.iter().filter_map(|record| placed(&record.key, &record.content)).collect()
            }
        }
    }
}

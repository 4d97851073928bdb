//! A group of commits and takes that share one transaction, though each stands or falls alone.

use std::any::Any;
use std::thread;

use afl_store::Millis;
use afl_store::backend::{Batch, Change, Durability, StoreError, Take, TakeResult};
use afl_store::record::{Content, Tenant};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::apply::{self, ApplyError};

pub(super) enum Job {
    Commit(Batch, Reply<()>),
    Take(Box<Take>, Reply<TakeResult>),
}

const LIGHT_WRITES: usize = 32;
const LIGHT_BYTES: usize = 64 << 10;

/// The error is the panic of a take's decision, which goes back to the caller.
pub(super) type Reply<T> = oneshot::Sender<thread::Result<Result<T, StoreError>>>;

pub(super) enum JobOutcome {
    Committed,
    Taken(TakeResult),
    Refused(StoreError),
    Panicked(Box<dyn Any + Send>),
}

/// Also returns whether anything was written. After an error, [`roll_back`] is due.
pub(super) fn transact(
    connection: &Connection,
    jobs: &[Job],
    now: Millis,
) -> rusqlite::Result<(Vec<JobOutcome>, bool)> {
    let before = connection.total_changes();
    run(connection, "BEGIN IMMEDIATE")?;
    let outcomes = jobs.iter().map(|job| job.apply(connection, now)).collect::<rusqlite::Result<Vec<_>>>()?;
    let promises = jobs
        .iter()
        .zip(&outcomes)
        .any(|(job, outcome)| job.durability() == Durability::Durable && !outcome.is_refused());
    if connection.total_changes() == before && promises {
        // A transaction without a write syncs nothing, but a durable commit must make earlier commits durable too.
        run(connection, "UPDATE meta SET value = value + 1 WHERE name = 'syncs'")?;
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
    fn apply(&self, connection: &Connection, now: Millis) -> rusqlite::Result<JobOutcome> {
        let applied = match self {
            Self::Commit(batch, _) => apply::commit(connection, batch).map(|()| JobOutcome::Committed),
            Self::Take(take, _) => apply::take(connection, take, now).map(JobOutcome::Taken),
        };
        match applied {
            Ok(outcome) => Ok(outcome),
            Err(ApplyError::Refused(error)) => Ok(JobOutcome::Refused(error)),
            Err(ApplyError::Panicked(panic)) => Ok(JobOutcome::Panicked(panic)),
            Err(ApplyError::Broken(error)) => Err(error),
        }
    }

    pub(super) fn durability(&self) -> Durability {
        match self {
            Self::Commit(batch, _) => batch.durability,
            Self::Take(take, _) => take.durability,
        }
    }

    /// As far as it is known before the work.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Commit(batch, _) => batch.bytes(),
            Self::Take(..) => 0,
        }
    }

    /// Whether it is done in the time of a read, but for a sync of the disk.
    pub(super) fn is_light(&self) -> bool {
        match self {
            Self::Commit(batch, _) => batch.writes.len() <= LIGHT_WRITES && batch.bytes() <= LIGHT_BYTES,
            Self::Take(take, _) => take.limit <= LIGHT_WRITES,
        }
    }

    /// The records that it wrote, for their watchers.
    pub(super) fn written<'a>(&'a self, outcome: &'a JobOutcome) -> Vec<(&'a Tenant, &'a Content)> {
        match (self, outcome) {
            (Self::Commit(batch, _), _) => batch
                .writes
                .iter()
                .filter_map(|write| match &write.change {
                    Change::Put(content) => Some((&write.key.tenant, content)),
                    Change::Delete | Change::Keep => None,
                })
                .collect(),
            (Self::Take(..), JobOutcome::Taken(taken)) => {
                taken.moved.iter().map(|record| (&record.key.tenant, &record.content)).collect()
            }
            (Self::Take(..), JobOutcome::Committed | JobOutcome::Refused(_) | JobOutcome::Panicked(_)) => {
                Vec::new()
            }
        }
    }

    pub(super) fn answer(self, outcome: JobOutcome) {
        match (self, outcome) {
            (Self::Commit(_, reply), JobOutcome::Committed) => send(reply, Ok(Ok(()))),
            (Self::Take(_, reply), JobOutcome::Taken(taken)) => send(reply, Ok(Ok(taken))),
            (Self::Commit(_, reply), JobOutcome::Refused(error)) => send(reply, Ok(Err(error))),
            (Self::Take(_, reply), JobOutcome::Refused(error)) => send(reply, Ok(Err(error))),
            (Self::Commit(_, reply), JobOutcome::Panicked(panic)) => send(reply, Err(panic)),
            (Self::Take(_, reply), JobOutcome::Panicked(panic)) => send(reply, Err(panic)),
            (Self::Commit(..), JobOutcome::Taken(_)) | (Self::Take(..), JobOutcome::Committed) => {
                unreachable!("an outcome is of its job's kind")
            }
        }
    }
}

fn send<T>(reply: Reply<T>, answer: thread::Result<Result<T, StoreError>>) {
    // A caller that does not wait any more does not want to know.
    drop(reply.send(answer));
}

impl JobOutcome {
    pub(super) fn is_refused(&self) -> bool {
        match self {
            Self::Refused(_) | Self::Panicked(_) => true,
            Self::Committed | Self::Taken(_) => false,
        }
    }
}

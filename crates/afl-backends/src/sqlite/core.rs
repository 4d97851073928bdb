//! The connection that writes, used by the writer's thread or by a caller in its place.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use afl_store::backend::{Durability, StoreError};
use afl_store::watch::Watchers;
use rusqlite::{Connection, ErrorCode};

use super::SqliteCounters;
use super::busy::{BusyWait, is_busy};
use super::clock::{LatestTime, SqliteClock};
use super::failure::explain;
use super::group::{self, Job, JobOutcome};
use super::wake_files::{WakeFolder, WakeSignals, family};
use super::wal::WriteAheadLog;

#[derive(Debug)]
pub(super) struct Core {
    connection: Connection,
    pub(super) path: PathBuf,
    wait: Arc<BusyWait>,
    clock: SqliteClock,
    latest: LatestTime,
    watchers: Arc<Watchers>,
    pub(super) counters: Arc<SqliteCounters>,
    signals: WakeSignals,
    pub(super) wal: WriteAheadLog,
    /// When the last transaction began.
    pub(super) used: Instant,
    /// The present setting of the connection.
    durability: Option<Durability>,
    /// Changes when another connection writes.
    data_version: i64,
}

/// Finished jobs whose callers still wait. They are answered without the lock, so that they find it free.
#[must_use]
pub(super) struct JobResults(Vec<(Job, JobOutcome)>);

impl JobResults {
    pub(super) fn answer(self) {
        for (job, outcome) in self.0 {
            // A caller that does not wait any more does not want to know.
            drop(job.reply.send(outcome));
        }
    }
}

impl Core {
    pub(super) fn new(
        mut connection: Connection,
        path: &Path,
        wait: Arc<BusyWait>,
        clock: SqliteClock,
        watchers: Arc<Watchers>,
        wake_folder: WakeFolder,
    ) -> Result<Self, StoreError> {
        let failed = |error| explain(path, &error);
        let wal = WriteAheadLog::attach(&mut connection).map_err(failed)?;
        let data_version = data_version(&connection).map_err(failed)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            wait,
            clock,
            latest: LatestTime::default(),
            watchers,
            counters: Arc::default(),
            signals: WakeSignals::new(wake_folder),
            wal,
            used: Instant::now(),
            durability: None,
            data_version,
        })
    }

    /// Returns the job while another process is writing.
    pub(super) fn serve_at_once(&mut self, job: Job) -> Result<JobResults, Job> {
        if BusyWait::disable(&mut self.connection).is_err() {
            return Err(job);
        }
        let outcomes = self.transact(slice::from_ref(&job));
        let waits_again = self.wait.enable(&mut self.connection);
        match (outcomes, waits_again) {
            (Ok(outcomes), _) => Ok(self.finish(vec![job], outcomes)),
            (Err(error), Ok(())) if is_busy(&error) => Err(job),
            (Err(error), _) => Ok(self.fail(vec![job], &error)),
        }
    }

    pub(super) fn serve(&mut self, jobs: Vec<Job>) -> JobResults {
        match self.transact(&jobs) {
            Ok(outcomes) => self.finish(jobs, outcomes),
            // A job that is too large or touches damage must not fail the others.
            Err(error) if jobs.len() > 1 && (is_full(&error) || is_damage(&error)) => {
                JobResults(jobs.into_iter().flat_map(|job| self.serve(vec![job]).0).collect())
            }
            Err(error) => self.fail(jobs, &error),
        }
    }

    fn fail(&mut self, jobs: Vec<Job>, error: &rusqlite::Error) -> JobResults {
        if is_full(error) {
            // The log can then start anew, in the space that it has.
            self.checkpoint();
        }
        let refused = |job| (job, Ok(Err(explain(&self.path, error))));
        JobResults(jobs.into_iter().map(refused).collect())
    }

    fn transact(&mut self, jobs: &[Job]) -> rusqlite::Result<Vec<JobOutcome>> {
        self.used = Instant::now();
        // A job that panicked left its transaction open.
        group::roll_back(&self.connection)?;
        let durability = jobs.iter().map(Job::durability).max().unwrap_or(Durability::Relaxed);
        if self.durability != Some(durability) {
            let level = match durability {
                Durability::Relaxed => "normal",
                Durability::Durable => "full",
            };
            self.connection.pragma_update(None, "synchronous", level)?;
            self.durability = Some(durability);
        }
        let written = group::transact(&self.connection, jobs, self.clock.moment(), &mut self.latest);
        let (outcomes, has_written) = match written {
            Ok(written) => written,
            Err(error) => {
                group::roll_back(&self.connection)?;
                return Err(error);
            }
        };
        self.wait.ended();
        if has_written {
            self.counters.transactions.add(1);
            self.counters.synced_transactions.add(usize::from(durability == Durability::Durable));
        }
        Ok(outcomes)
    }

    fn finish(&mut self, jobs: Vec<Job>, outcomes: Vec<JobOutcome>) -> JobResults {
        let mut families = BTreeSet::new();
        for (job, outcome) in jobs.iter().zip(&outcomes) {
            let Ok(Ok(taken)) = outcome else {
                self.counters.refused.add(1);
                continue;
            };
            self.counters.commits.add(1);
            for (tenant, place) in job.places(taken) {
                self.watchers.wake(tenant, place);
                families.insert(family(&place.bucket));
            }
        }
        self.signals.signal(&families);
        JobResults(jobs.into_iter().zip(outcomes).collect())
    }

    /// Returns how long to wait for work until the next one is due.
    pub(super) fn checkpoint(&mut self) -> Option<Duration> {
        self.counters.checkpoints.add(1);
        self.wal.checkpoint(&mut self.connection, &self.wait);
        self.wal.idle_wait()
    }

    pub(super) fn look(&mut self) {
        if self.watchers.is_empty() {
            return;
        }
        self.counters.looks.add(1);
        match data_version(&self.connection) {
            Ok(found) if found == self.data_version => {}
            Ok(found) => {
                self.data_version = found;
                self.watchers.wake_all();
            }
            // A caller that waits then reads by itself, and gets the error.
            Err(_) => self.watchers.wake_all(),
        }
    }
}

fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

fn is_damage(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}

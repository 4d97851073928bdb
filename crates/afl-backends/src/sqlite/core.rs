//! What writes: the connection with all that belongs to it, used by the writer's thread or by a caller in its place.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use afl_store::backend::{Durability, StoreError};
use afl_store::clock::Clock;
use afl_store::watch::Watchers;
use rusqlite::{Connection, ErrorCode};

use super::bells::{Bells, Ringer, family};
use super::busy::{BusyWait, is_busy};
use super::failure::explain;
use super::group::{self, Job, Outcome, Writes};
use super::log::Log;

use super::stats::{Counters, add};

#[derive(Debug)]
pub(super) struct Core {
    connection: Connection,
    path: PathBuf,
    wait: Arc<BusyWait>,
    clock: Clock,
    watchers: Arc<Watchers>,
    counters: Arc<Counters>,
    bells: Bells,
    log: Log,
    used: Instant,
    /// What the connection is set to.
    durability: Option<Durability>,
    /// Changes when another connection writes.
    data_version: i64,
}

/// Jobs that are done, whose callers do not know yet. They are told without the lock, so that they find it free.
#[must_use]
pub(super) struct Served(Vec<(Job, Outcome)>);

impl Served {
    pub(super) fn answer(self) {
        for (job, outcome) in self.0 {
            job.answer(outcome);
        }
    }
}

pub(super) enum AtOnce {
    Served(Served),
    /// Another process is writing.
    Busy(Job),
}

impl Core {
    pub(super) fn new(
        mut connection: Connection,
        path: &Path,
        wait: Arc<BusyWait>,
        clock: Clock,
        watchers: Arc<Watchers>,
        ringer: Ringer,
    ) -> Result<Self, StoreError> {
        let failed = |error| explain(path, &error);
        let log = Log::watch(&mut connection).map_err(failed)?;
        let data_version = data_version(&connection).map_err(failed)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            wait,
            clock,
            watchers,
            counters: Arc::default(),
            bells: Bells::new(ringer),
            log,
            used: Instant::now(),
            durability: None,
            data_version,
        })
    }

    pub(super) fn serve_at_once(&mut self, job: Job) -> AtOnce {
        if BusyWait::disable(&mut self.connection).is_err() {
            return AtOnce::Busy(job);
        }
        let outcomes = self.transact(slice::from_ref(&job));
        let waits_again = self.wait.enable(&mut self.connection);
        match (outcomes, waits_again) {
            (Ok(outcomes), _) => AtOnce::Served(self.settle(vec![job], outcomes)),
            (Err(error), Ok(())) if is_busy(&error) => AtOnce::Busy(job),
            (Err(error), _) => AtOnce::Served(self.fail(vec![job], &error)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    pub(super) fn idle_since(&self) -> Duration {
        self.used.elapsed()
    }

    pub(super) fn serve(&mut self, jobs: Vec<Job>) -> Served {
        match self.transact(&jobs) {
            Ok(outcomes) => self.settle(jobs, outcomes),
            // One that is too large or touches damage must not take the others with it.
            Err(error) if jobs.len() > 1 && (is_full(&error) || is_damage(&error)) => {
                Served(jobs.into_iter().flat_map(|job| self.serve(vec![job]).0).collect())
            }
            Err(error) => self.fail(jobs, &error),
        }
    }

    fn fail(&mut self, jobs: Vec<Job>, error: &rusqlite::Error) -> Served {
        if is_full(error) {
            // The log can then start anew, in the space that it has.
            self.checkpoint();
        }
        let refused = |job| (job, Outcome::Refused(explain(&self.path, error)));
        Served(jobs.into_iter().map(refused).collect())
    }

    fn transact(&mut self, jobs: &[Job]) -> rusqlite::Result<Vec<Outcome>> {
        self.used = Instant::now();
        // Whoever panicked before left its transaction open.
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
        let written = group::transact(&self.connection, jobs, self.clock.now());
        let (outcomes, writes) = match written {
            Ok(written) => written,
            Err(error) => {
                group::roll_back(&self.connection)?;
                return Err(error);
            }
        };
        self.wait.ended();
        match (writes, durability) {
            (Writes::None, _) => {}
            (Writes::Some, Durability::Relaxed) => add(&self.counters.transactions, 1),
            (Writes::Some, Durability::Durable) => {
                add(&self.counters.transactions, 1);
                add(&self.counters.synced_transactions, 1);
            }
        }
        Ok(outcomes)
    }

    fn settle(&mut self, jobs: Vec<Job>, outcomes: Vec<Outcome>) -> Served {
        let mut families = BTreeSet::new();
        for (job, outcome) in jobs.iter().zip(&outcomes) {
            if outcome.is_refused() {
                add(&self.counters.refused, 1);
                continue;
            }
            add(&self.counters.commits, 1);
            add(&self.counters.durable_commits, usize::from(job.durability() == Durability::Durable));
            for (tenant, content) in job.written(outcome) {
                add(&self.counters.body_bytes, content.body.len());
                if let Some(place) = &content.place {
                    self.watchers.wake(tenant, place);
                    families.insert(family(&place.bucket));
                }
            }
        }
        self.bells.ring(&families);
        Served(jobs.into_iter().zip(outcomes).collect())
    }

    /// Returns how long to wait for work until the next one is due.
    pub(super) fn checkpoint(&mut self) -> Option<Duration> {
        add(&self.counters.checkpoints, 1);
        self.log.checkpoint(&mut self.connection, &self.wait);
        self.log.patience()
    }

    pub(super) fn look(&mut self) {
        if self.watchers.is_empty() {
            return;
        }
        add(&self.counters.looks, 1);
        match data_version(&self.connection) {
            Ok(found) if found == self.data_version => {}
            Ok(found) => {
                self.data_version = found;
                self.watchers.wake_all();
            }
            // Whoever waits then looks for itself, and hears why.
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

//! The one thread of a process that writes: all that wait get one transaction, and one sync of the disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use afl_store::backend::{Batch, Durability, StoreError, Take};
use afl_store::clock::Clock;
use afl_store::record::Record;
use afl_store::watch::Watchers;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::failure::explain;
use super::group::{self, Job, Outcome, Reply, Writes};
use super::log::Log;
use super::notice::{Bell, Look};
use super::stats::{Counters, Stats, add};

/// How many calls may wait for the writer; more wait to be let in.
const QUEUE: usize = 4_096;

/// A group ends here, so that the first of it does not wait too long for the last.
const GROUP_JOBS: usize = 1_024;
const GROUP_BYTES: usize = 64 << 20;

/// How often to look for changes of other processes that nobody rang for. An idle process asks nothing more often.
const LOOK_EVERY: Duration = Duration::from_secs(2);

pub(super) enum Request {
    Work(Job, OwnedSemaphorePermit),
    /// Another process may have written.
    Look,
    Stop,
}

/// The handle on the thread; dropping it waits for the thread's end.
#[derive(Debug)]
pub(super) struct Writer {
    name: String,
    requests: Sender<Request>,
    queue: Arc<Semaphore>,
    counters: Arc<Counters>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        mut connection: Connection,
        path: &Path,
        clock: Clock,
        watchers: Arc<Watchers>,
    ) -> Result<Self, StoreError> {
        let (requests, receiver) = mpsc::channel();
        let counters = Arc::new(Counters::default());
        let log = Log::watch(&mut connection).map_err(|error| explain(path, &error))?;
        let work = Work {
            connection,
            path: path.to_owned(),
            clock,
            watchers,
            requests: receiver,
            counters: counters.clone(),
            bell: Bell::new(path),
            log,
            durability: None,
            data_version: None,
        };
        let name = path.display().to_string();
        let spawned = thread::Builder::new().name("afl-sqlite".to_owned()).spawn(move || work.run());
        let thread = spawned.map_err(|error| StoreError::Unavailable {
            name: name.clone(),
            reason: format!("its thread cannot be started: {error}"),
        })?;
        let queue = Arc::new(Semaphore::new(QUEUE));
        Ok(Self { name, requests, queue, counters, thread: Some(thread) })
    }

    pub(super) async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        self.ask(|reply| Job::Commit(batch, reply)).await
    }

    pub(super) async fn take(&self, take: Take) -> Result<Vec<Record>, StoreError> {
        self.ask(|reply| Job::Take(take, reply)).await
    }

    pub(super) fn looker(&self) -> Look {
        Look(self.requests.clone())
    }

    pub(super) fn stats(&self) -> Stats {
        self.counters.read()
    }

    async fn ask<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, StoreError> {
        let permit = self.queue.clone().acquire_owned().await.map_err(|_| self.stopped())?;
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request::Work(job(reply), permit)).map_err(|_| self.stopped())?;
        match answer.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => Err(self.stopped()),
        }
    }

    fn stopped(&self) -> StoreError {
        let reason = "its writer has stopped: start this program again".to_owned();
        StoreError::Unavailable { name: self.name.clone(), reason }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let asked = self.requests.send(Request::Stop);
        if asked.is_ok()
            && let Some(thread) = self.thread.take()
        {
            // Whoever waited for a writer that panicked was told so.
            thread.join().unwrap_or_default();
        }
    }
}

/// The thread's own.
struct Work {
    connection: Connection,
    path: PathBuf,
    clock: Clock,
    watchers: Arc<Watchers>,
    requests: Receiver<Request>,
    counters: Arc<Counters>,
    bell: Bell,
    log: Log,
    /// What the connection is set to.
    durability: Option<Durability>,
    /// Changes when another connection writes.
    data_version: Option<i64>,
}

/// What came in since the last turn.
#[derive(Default)]
struct Turn {
    jobs: Vec<Job>,
    permits: Vec<OwnedSemaphorePermit>,
    look: bool,
    stop: bool,
}

impl Turn {
    fn add(&mut self, request: Request) {
        match request {
            Request::Work(job, permit) => {
                self.jobs.push(job);
                self.permits.push(permit);
            }
            Request::Look => self.look = true,
            Request::Stop => self.stop = true,
        }
    }

    fn is_full(&self) -> bool {
        self.jobs.len() >= GROUP_JOBS || self.jobs.iter().map(Job::bytes).sum::<usize>() >= GROUP_BYTES
    }
}

impl Work {
    fn run(mut self) {
        loop {
            let mut turn = Turn::default();
            match self.requests.recv_timeout(self.log.patience().unwrap_or(LOOK_EVERY)) {
                Ok(request) => turn.add(request),
                Err(RecvTimeoutError::Timeout) if self.log.patience().is_some() => self.checkpoint(),
                Err(RecvTimeoutError::Timeout) => turn.look = true,
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while !turn.is_full()
                && let Ok(request) = self.requests.try_recv()
            {
                turn.add(request);
            }
            if turn.look {
                self.look();
            }
            if !turn.jobs.is_empty() {
                self.serve(turn.jobs);
            }
            if self.log.is_long() {
                self.checkpoint();
            }
            if turn.stop {
                return;
            }
        }
    }

    fn serve(&mut self, jobs: Vec<Job>) {
        match self.transact(&jobs) {
            Ok(outcomes) => self.settle(jobs, outcomes),
            // One that is too large must not take the others with it.
            Err(error) if is_full(&error) && jobs.len() > 1 => {
                for job in jobs {
                    self.serve(vec![job]);
                }
            }
            Err(error) => {
                if is_full(&error) {
                    // The log can then start anew, in the space that it has.
                    self.checkpoint();
                }
                for job in jobs {
                    job.fail(explain(&self.path, &error));
                }
            }
        }
    }

    fn transact(&mut self, jobs: &[Job]) -> rusqlite::Result<Vec<Outcome>> {
        let durability = jobs.iter().map(Job::durability).max().unwrap_or(Durability::Relaxed);
        if self.durability != Some(durability) {
            let level = match durability {
                Durability::Relaxed => "normal",
                Durability::Durable => "full",
            };
            self.connection.pragma_update(None, "synchronous", level)?;
            self.durability = Some(durability);
        }
        let written = group::transact(&self.connection, jobs, durability, self.clock.now());
        let (outcomes, writes) = match written {
            Ok(written) => written,
            Err(error) => {
                group::roll_back(&self.connection)?;
                return Err(error);
            }
        };
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

    fn settle(&mut self, jobs: Vec<Job>, outcomes: Vec<Outcome>) {
        let mut rings = false;
        for (job, outcome) in jobs.iter().zip(&outcomes) {
            if outcome.is_refused() {
                add(&self.counters.conflicts, 1);
                continue;
            }
            add(&self.counters.commits, 1);
            add(&self.counters.durable_commits, usize::from(job.durability() == Durability::Durable));
            for (tenant, content) in job.written(outcome) {
                add(&self.counters.body_bytes, content.body.len());
                if let Some(place) = &content.place {
                    self.watchers.wake(tenant, place);
                    rings = true;
                }
            }
        }
        for (job, outcome) in jobs.into_iter().zip(outcomes) {
            job.answer(outcome);
        }
        if rings {
            self.bell.ring();
        }
    }

    fn checkpoint(&mut self) {
        add(&self.counters.checkpoints, 1);
        self.log.checkpoint(&mut self.connection);
    }

    fn look(&mut self) {
        if self.watchers.is_empty() {
            return;
        }
        add(&self.counters.looks, 1);
        let found = self
            .connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(0)));
        // Whoever cannot look lets all look for themselves, and they will hear why.
        let is_same = found.is_ok_and(|found| self.data_version.replace(found) == Some(found));
        if !is_same {
            self.watchers.wake_all();
        }
    }
}

fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

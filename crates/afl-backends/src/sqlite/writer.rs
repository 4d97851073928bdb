//! The thread of a process that writes: all that wait get one transaction, and one sync of the disk.

use std::path::Path;
#[expect(
    clippy::disallowed_types,
    reason = "a channel alone costs a lone writer two changes of the thread"
)]
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use afl_store::backend::{Batch, Durability, StoreError, Take, Taken};
use afl_store::clock::Clock;
use afl_store::watch::Watchers;
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::core::Core;
use super::group::{Job, Reply};
use super::notice::Look;
use super::stats::{Counters, Stats};

/// How many calls may wait for the writer; more wait to be let in.
const QUEUE: usize = 4_096;

/// A group ends here, so that the first of it does not wait too long for the last.
const GROUP_JOBS: usize = 1_024;
const GROUP_BYTES: usize = 64 << 20;

/// How long a group waits for one more when the last one had several: those who came together come together again,
/// and a sync for each would cost them more.
const GATHER: Duration = Duration::from_micros(150);

/// How often to look for changes of other processes that nobody rang for. An idle process asks nothing more often.
const LOOK_EVERY: Duration = Duration::from_secs(2);

pub(super) enum Request {
    Work(Job, OwnedSemaphorePermit),
    /// Another process may have written.
    Look,
    /// The log has grown.
    Tidy,
    Stop,
}

/// The lock is held for one transaction by the thread, or by a caller that found it free; never across an await.
#[expect(clippy::disallowed_types, reason = "a channel alone costs a lone writer two changes of the thread")]
type Shared = Arc<Mutex<Core>>;

/// The handle on the thread; dropping it waits for the thread's end.
#[derive(Debug)]
pub(super) struct Writer {
    name: String,
    core: Shared,
    requests: Sender<Request>,
    queue: Arc<Semaphore>,
    counters: Arc<Counters>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        path: &Path,
        clock: Clock,
        watchers: Arc<Watchers>,
    ) -> Result<Self, StoreError> {
        let (requests, receiver) = mpsc::channel();
        let counters = Arc::new(Counters::default());
        let core = Core::new(connection, path, clock, watchers, counters.clone())?;
        let core: Shared = Arc::new(core.into());
        let thread = Thread { core: core.clone(), requests: receiver };
        let name = path.display().to_string();
        let spawned = thread::Builder::new().name("afl-sqlite".to_owned()).spawn(move || thread.run());
        let thread = spawned.map_err(|error| StoreError::Unavailable {
            name: name.clone(),
            reason: format!("its thread cannot be started: {error}"),
        })?;
        let queue = Arc::new(Semaphore::new(QUEUE));
        Ok(Self { name, core, requests, queue, counters, thread: Some(thread) })
    }

    pub(super) async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        self.ask(|reply| Job::Commit(batch, reply)).await
    }

    pub(super) async fn take(&self, take: Take) -> Result<Taken, StoreError> {
        self.ask(|reply| Job::Take(take, reply)).await
    }

    pub(super) fn looker(&self) -> Look {
        Look(self.requests.clone())
    }

    pub(super) fn stats(&self) -> Stats {
        self.counters.read()
    }

    async fn ask<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        if let Some(job) = self.try_at_once(job(reply)) {
            let permit = self.queue.clone().acquire_owned().await.map_err(|_| self.stopped())?;
            self.requests.send(Request::Work(job, permit)).map_err(|_| self.stopped())?;
        }
        match answer.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => Err(self.stopped()),
        }
    }

    /// A small job that need not wait for the disk is done where it comes up, when nobody else writes: two changes of
    /// the thread would cost more than the work. Any other comes back.
    fn try_at_once(&self, job: Job) -> Option<Job> {
        // Whoever waits comes first, else a busy caller could keep the thread out for ever.
        if !job.is_light() || self.queue.available_permits() < QUEUE {
            return Some(job);
        }
        let mut core = match self.core.try_lock() {
            Ok(core) => core,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Some(job),
        };
        if core.log().is_long() {
            return Some(job);
        }
        let was_short = core.log().patience().is_none();
        let job = core.serve_at_once(job);
        if was_short && core.log().patience().is_some() {
            // The thread sleeps until somebody tells it; one that is gone has no log to care for.
            self.requests.send(Request::Tidy).unwrap_or_default();
        }
        job
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
            Request::Tidy => {}
            Request::Stop => self.stop = true,
        }
    }

    /// How long to wait for one more; `crowd` came together the last time.
    fn patience(&self, crowd: usize) -> Duration {
        let is_durable = self.jobs.iter().any(|job| job.durability() == Durability::Durable);
        if crowd > 1 && is_durable { GATHER } else { Duration::ZERO }
    }

    fn is_full(&self) -> bool {
        self.jobs.len() >= GROUP_JOBS || self.jobs.iter().map(Job::bytes).sum::<usize>() >= GROUP_BYTES
    }
}

/// The thread's own.
struct Thread {
    core: Shared,
    requests: Receiver<Request>,
}

impl Thread {
    fn run(self) {
        let mut crowd = 0;
        loop {
            let wait = lock(&self.core).log().patience();
            let mut turn = Turn::default();
            match self.requests.recv_timeout(wait.unwrap_or(LOOK_EVERY)) {
                Ok(request) => turn.add(request),
                Err(RecvTimeoutError::Timeout) => turn.look = wait.is_none(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while !turn.is_full()
                && let Ok(request) = self.requests.recv_timeout(turn.patience(crowd))
            {
                turn.add(request);
            }
            crowd = turn.jobs.len();
            // They count who waits, and these are served now.
            turn.permits.clear();
            let mut core = lock(&self.core);
            if turn.look {
                core.look();
            }
            let idle = turn.jobs.is_empty();
            if !idle {
                core.serve(turn.jobs);
            }
            if core.log().is_long() || (idle && wait.is_some_and(|wait| core.idle_since() >= wait)) {
                core.checkpoint();
            }
            if turn.stop {
                return;
            }
        }
    }
}

fn lock(core: &Shared) -> MutexGuard<'_, Core> {
    // A transaction that a panic left open is rolled back by the next one.
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The thread of a process that writes: all that wait get one transaction, and one sync of the disk.

#[expect(
    clippy::disallowed_types,
    reason = "a channel alone costs a lone writer two changes of the thread"
)]
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use afl_store::backend::{Batch, Durability, StoreError, Take, TakeResult};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::core::{AtOnce, Core};
use super::group::{Job, Reply};
use super::stats::{Counters, Stats};

/// How many calls may wait for the writer; more wait to be let in.
const QUEUE: usize = 4_096;

/// A group ends here, so that the first of it does not wait too long for the last.
const GROUP_JOBS: usize = 1_024;
const GROUP_BYTES: usize = 64 << 20;

/// How long a group waits for one more when the last one had several: those who came together come together again,
/// and a sync for each would cost them more.
const GATHER: Duration = Duration::from_micros(150);

/// How often to look for changes of other processes that nobody rang for, however busy this one is.
const LOOK_EVERY: Duration = Duration::from_secs(2);

pub(super) enum Request {
    Work(Job, OwnedSemaphorePermit),
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
    /// How many had part in the thread's last transaction.
    crowd: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(core: Core) -> Result<Self, StoreError> {
        let (requests, receiver) = mpsc::channel();
        let name = core.path().display().to_string();
        let counters = core.counters().clone();
        let core: Shared = Arc::new(core.into());
        let crowd = Arc::new(AtomicUsize::new(0));
        let thread = Thread { core: core.clone(), requests: receiver, crowd: crowd.clone() };
        let spawned = thread::Builder::new().name("afl-sqlite".to_owned()).spawn(move || thread.run());
        let thread = spawned.map_err(|error| StoreError::Unavailable {
            name: name.clone(),
            reason: format!("its thread cannot be started: {error}"),
        })?;
        let queue = Arc::new(Semaphore::new(QUEUE));
        Ok(Self { name, core, requests, queue, counters, crowd, thread: Some(thread) })
    }

    pub(super) async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        self.ask(|reply| Job::Commit(batch, reply)).await
    }

    pub(super) async fn take(&self, take: Take) -> Result<TakeResult, StoreError> {
        self.ask(|reply| Job::Take(take.into(), reply)).await
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

    /// A small job is done where it comes up, when nobody else writes: two changes of the thread would cost more than the
    /// work. Any other comes back.
    fn try_at_once(&self, job: Job) -> Option<Job> {
        // Whoever waits comes first, else a busy caller could keep the thread out for ever.
        if !job.is_light() || self.queue.available_permits() < QUEUE || !self.may_wait_for(&job) {
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
        let served = core.serve_at_once(job);
        let is_long_enough = was_short && core.log().patience().is_some();
        drop(core);
        if is_long_enough {
            // The thread sleeps until somebody tells it; one that is gone has no log to care for.
            self.requests.send(Request::Tidy).unwrap_or_default();
        }
        match served {
            AtOnce::Served(served) => {
                served.answer();
                None
            }
            AtOnce::Busy(job) => Some(job),
        }
    }

    /// Whether the caller's thread may wait for the disk: when those who came last came alone, so that nobody would share
    /// the sync, and others go on with what else is to be done.
    fn may_wait_for(&self, job: &Job) -> bool {
        let is_alone = || self.crowd.load(Ordering::Relaxed) <= 1;
        let has_others = || Handle::try_current().is_ok_and(|runtime| runtime.metrics().num_workers() > 1);
        job.durability() == Durability::Relaxed || (is_alone() && has_others())
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
    stop: bool,
}

impl Turn {
    fn add(&mut self, request: Request) {
        match request {
            Request::Work(job, permit) => {
                self.jobs.push(job);
                self.permits.push(permit);
            }
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
    crowd: Arc<AtomicUsize>,
}

impl Thread {
    fn run(self) {
        let mut wait = lock(&self.core).log().patience();
        let mut looked = Instant::now();
        loop {
            let mut turn = Turn::default();
            match self.requests.recv_timeout(wait.unwrap_or(LOOK_EVERY)) {
                Ok(request) => turn.add(request),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // With the lock, so that those who come while somebody else writes have part in this turn.
            let mut core = lock(&self.core);
            while !turn.is_full()
                && let Ok(request) =
                    self.requests.recv_timeout(turn.patience(self.crowd.load(Ordering::Relaxed)))
            {
                turn.add(request);
            }
            // They count who waits, and these are served now.
            turn.permits.clear();
            if looked.elapsed() >= LOOK_EVERY {
                looked = Instant::now();
                core.look();
            }
            let served = (!turn.jobs.is_empty()).then(|| {
                self.crowd.store(turn.jobs.len(), Ordering::Relaxed);
                core.serve(turn.jobs)
            });
            let is_idle = served.is_none() && wait.is_some_and(|wait| core.idle_since() >= wait);
            let is_long = core.log().is_long();
            wait = core.log().patience();
            drop(core);
            if let Some(served) = served {
                served.answer();
            }
            if is_long || is_idle {
                wait = lock(&self.core).checkpoint();
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

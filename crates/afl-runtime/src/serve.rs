//! Drives all runs of a store: the loops around [`drive`](crate::drive) and the janitor.
//!
//! **Problem.** Outcomes arrive from this process and from others, one by one or by the thousand. Each must be
//! evaluated soon, no outcome may be forgotten after a crash, and an idle process must cost the store almost nothing.
//!
//! **Approach.** The buckets of the store are the only truth; wake-ups are hints. An outcome of this process comes by
//! channel with its event, so it needs no read. Outcomes of other processes wake a watch, and a scan of the bucket of
//! arrivals finds them. A scan begins two seconds before the end of the last one, because concurrent writers commit out
//! of order. Every 30 seconds, at the start, and after a crash of the database, a scan reads everything. So a lost
//! wake-up delays a run and never loses it. One loop owns all state; drives and scans are its jobs. The
//! [scheduler](crate::scheduler) lets one run have one drive at a time and keeps evaluations for the next arrival.
//!
//! Many outcomes of others are cheaper in one scan. So scans wait longer the more the last one found, up to 15 ms, and
//! twice as long after each scan without news, up to 60 ms. Scans that take long use at most a twentieth of the time.
//!
//! **Rejected.** A queue of wake-ups in the store costs a write for each outcome and must itself survive crashes. A
//! fixed interval of polling makes either a single outcome wait or an idle store busy.
//!
//! **Measured** by `cargo xtask bench`: a driver picks an outcome up after 0.08 ms (p50) in its own process and 0.16 ms
//! across processes on SQLite, 0.3 ms on PostgreSQL. An idle driver asks SQLite once in two seconds.

use afl_engine::evaluation::Evaluation;
use afl_engine::version::Epoch;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use afl_engine::id::RunId;
use afl_store::backend::BucketCursor;
use afl_store::store::bucket;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{self, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::drive::{DriveResult, DriveStatus, Others, RunWork};
use crate::error::{Error, StateRefusal};
use crate::find_work::{RunWithWork, RunsWithWork, WorkScan};
use crate::janitor::Janitor;
use crate::scheduler::RunScheduler;
use crate::service::Service;

/// How many wake-ups may wait; one more makes the driver look for itself.
const WAKES: usize = 10_000;
/// How long the driver trusts its wake-ups before it looks at everything.
const BACKSTOP: Duration = Duration::from_secs(30);
/// The time between two scans for outcomes of other processes. It grows with the number of outcomes that the last scan
/// found, so that many are evaluated together and a single one does not wait. Outcomes of this process come by channel;
/// so after a scan without news the next one waits twice as long.
const GATHER_EACH: Duration = Duration::from_micros(200);
const GATHER_LEAST: Duration = Duration::from_millis(1);
const GATHER_NEWS: Duration = Duration::from_millis(15);
const GATHER_MOST: Duration = Duration::from_millis(60);
/// When to look again for a run that was being driven at the last look.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Looks that are not short take one part in so many of the time, but are not put off for longer than this.
const LOOK_SHORT: Duration = Duration::from_millis(5);
const LOOK_SHARE: u32 = 20;
const LOOK_SLOWEST: Duration = Duration::from_secs(2);
/// When to see whether another process is done with a run.
const ELSEWHERE: Duration = Duration::from_secs(1);
/// How long to leave a store alone that failed.
const BACKOFF: Duration = Duration::from_millis(500);

/// A message to the driver.
#[derive(Debug)]
pub(crate) enum Wake {
    Arrived(RunWork),
    /// A run was evaluated outside the driver; it goes on from there when something arrives.
    Evaluated(Box<Evaluation>),
    /// As before, but there is more to do at once.
    Unfinished(Box<Evaluation>),
    Look,
    /// Tasks were handed out, so that a lease may end soon.
    Claimed,
}

#[derive(Debug)]
pub(crate) struct Waker {
    wakes: mpsc::Sender<Wake>,
    look: Arc<Notify>,
    claimed: Arc<Notify>,
    health: watch::Receiver<Health>,
}

/// How the driver of this process is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Health {
    /// Runs that cannot go on, most because a record cannot be read, and why. They are tried again now and then.
    pub quarantined: BTreeMap<RunId, String>,
    /// Why the store could not be used the last time, if it could not.
    pub trouble: Option<String>,
}

impl Service {
    /// Drives runs and maintains tasks until `until` resolves; then finishes the drives in progress and returns.
    ///
    /// One process needs one of these, however many runs there are. Several processes may drive one store.
    pub async fn serve(&self, until: impl Future<Output = ()> + Send) -> Result<(), Error> {
        let (sender, inbox) = mpsc::channel(WAKES);
        let (told, health) = watch::channel(Health::default());
        let (look, claimed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let waker = Waker { wakes: sender, look: Arc::clone(&look), claimed: Arc::clone(&claimed), health };
        if !self.acquire_driving(waker) {
            return Err(StateRefusal::DrivenAlready.into());
        }
        let driver = Driver::new(self.clone(), told);
        let stop = Notify::new();
        let drive = async {
            driver.run(inbox, &look, until).await;
            stop.notify_one();
        };
        tokio::join!(drive, Janitor::new(self.clone()).run(&claimed, &stop));
        *self.waker() = None;
        Ok(())
    }

    /// Registers the waker, unless this process has a driver. The waker of a driver that was dropped is closed.
    fn acquire_driving(&self, waker: Waker) -> bool {
        let mut driving = self.waker();
        let is_first = driving.as_ref().is_none_or(|other| other.wakes.is_closed());
        if is_first {
            *driving = Some(waker);
        }
        is_first
    }

    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the driver of this process is; nothing when it has none.
    pub fn health(&self) -> Option<Health> {
        let waker = self.waker();
        let waker = waker.as_ref().filter(|waker| !waker.wakes.is_closed())?;
        Some(waker.health.borrow().clone())
    }

    /// Whether this process drives runs.
    pub(crate) fn is_driven(&self) -> bool {
        self.waker().as_ref().is_some_and(|waker| !waker.wakes.is_closed())
    }

    pub(crate) fn wake(&self, wake: Wake) {
        let waker = self.waker();
        let Some(waker) = waker.as_ref() else { return };
        match wake {
            Wake::Look => waker.look.notify_one(),
            Wake::Claimed => waker.claimed.notify_one(),
            Wake::Arrived(_) | Wake::Evaluated(_) | Wake::Unfinished(_) => {
                // A wake-up that finds the channel full is no loss: a scan of the store finds the work.
                if waker.wakes.try_send(wake).is_err() {
                    waker.look.notify_one();
                }
            }
        }
    }
}

struct Driver {
    service: Service,
    scheduler: RunScheduler,
    jobs: JoinSet<JobResult>,
    /// Which run a job drives, should it panic.
    driving: HashMap<task::Id, RunId>,
    /// Where the last look ended.
    last: Option<BucketCursor>,
    looked: Instant,
    /// One scan at a time: a request meanwhile waits for its end.
    is_looking: bool,
    /// How long to wait from one look to the next.
    gather: Duration,
    /// When to scan for arrivals, and when for everything.
    next_look: Option<Instant>,
    everything: Instant,
    /// The epoch of the last look at everything.
    epoch: Epoch,
    health: watch::Sender<Health>,
}

enum JobResult {
    Drove(RunId, Result<DriveResult, Error>),
    Looked(Result<RunsWithWork, Error>),
}

type JoinedJob = Result<(task::Id, JobResult), task::JoinError>;

impl Driver {
    fn new(service: Service, health: watch::Sender<Health>) -> Self {
        let now = Instant::now();
        Self {
            scheduler: RunScheduler::default(),
            jobs: JoinSet::new(),
            driving: HashMap::new(),
            last: None,
            looked: now,
            is_looking: false,
            gather: Duration::ZERO,
            next_look: None,
            everything: now,
            epoch: service.store.epoch(),
            service,
            health,
        }
    }

    async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Wake>,
        asked: &Notify,
        until: impl Future<Output = ()> + Send,
    ) {
        let mut arrived = self.service.store.watch(bucket::ARRIVED);
        let mut until = std::pin::pin!(until);
        loop {
            self.launch();
            let next_look = self.next_look;
            tokio::select! {
                () = &mut until => break,
                Some(wake) = inbox.recv() => self.take_in(wake),
                Some(joined) = self.jobs.join_next_with_id() => self.finish(joined),
                () = asked.notified() => self.everything = Instant::now(),
                () = arrived.changed() => {
                    self.look_behind_a_loss();
                    self.look_soon(self.looked + self.gather);
                    self.look_if_due();
                }
                () = sleep_until(next_look.unwrap_or(self.everything)), if next_look.is_some() && !self.is_looking => {
                    self.look_if_due();
                }
                () = sleep_until(self.everything), if !self.is_looking => {
                    self.everything = Instant::now() + BACKSTOP;
                    self.scheduler.clear_quarantine();
                    self.look(WorkScan::Everywhere);
                }
            }
        }
        while let Some(joined) = self.jobs.join_next_with_id().await {
            self.finish(joined);
        }
    }

    fn take_in(&mut self, wake: Wake) {
        match wake {
            Wake::Arrived(work) => self.scheduler.note(work),
            Wake::Evaluated(evaluator) => self.scheduler.adopt(evaluator),
            Wake::Unfinished(evaluator) => self.scheduler.take_over(evaluator),
            Wake::Look | Wake::Claimed => {}
        }
    }

    /// Begins as many drives as may run at once.
    fn launch(&mut self) {
        while let Some((work, hot)) = self.scheduler.next() {
            let service = self.service.clone();
            let run = work.run.clone();
            let job = self.jobs.spawn(async move {
                let driven = service.drive(&work, hot, Others::Respect).await;
                JobResult::Drove(work.run, driven)
            });
            self.driving.insert(job.id(), run);
        }
    }

    /// A crash of the database may take back an evaluation. Its outcomes wait again, before the place where scans
    /// begin.
    fn look_behind_a_loss(&mut self) {
        let epoch = self.service.store.epoch();
        if self.epoch < epoch {
            self.epoch = epoch;
            self.everything = Instant::now();
        }
    }

    /// Scans at once, since a timer fires a millisecond late even when it is due.
    fn look_if_due(&mut self) {
        if !self.is_looking && self.next_look.is_some_and(|due| due <= Instant::now()) {
            self.look(self.last.clone().map_or(WorkScan::Everywhere, WorkScan::Since));
        }
    }

    fn look(&mut self, at: WorkScan) {
        self.next_look = None;
        self.looked = Instant::now();
        self.is_looking = true;
        let service = self.service.clone();
        self.jobs.spawn(async move { JobResult::Looked(service.find_work(&at).await) });
    }

    fn finish(&mut self, joined: JoinedJob) {
        let (id, done) = match joined {
            Ok((id, done)) => (id, Ok(done)),
            Err(error) => (error.id(), Err(error)),
        };
        let run = self.driving.remove(&id);
        if run.is_none() {
            self.is_looking = false;
        }
        let trouble = match done {
            Ok(JobResult::Drove(run, Ok(driven))) => {
                if driven.status == DriveStatus::Elsewhere {
                    self.look_at_everything_in(ELSEWHERE);
                }
                return self.scheduler.done(&run, driven);
            }
            Ok(JobResult::Drove(run, Err(error))) if error.is_of_run() => {
                self.scheduler.quarantine(&run, error.to_string());
                None
            }
            Ok(JobResult::Drove(run, Err(error))) => {
                self.scheduler.abandon(&run);
                Some(error.to_string())
            }
            Ok(JobResult::Looked(Ok(found))) => {
                self.take_found(found);
                self.look_if_due();
                None
            }
            Ok(JobResult::Looked(Err(error))) => Some(error.to_string()),
            // A bug that one run meets must not stop the others.
            Err(panic) => {
                if let Some(run) = run {
                    self.scheduler.quarantine(&run, panic.to_string());
                }
                Some(panic.to_string())
            }
        };
        if trouble.is_some() {
            // The failed work is still in the store.
            self.look_at_everything_in(BACKOFF);
        }
        self.health.send_replace(Health { quarantined: self.scheduler.quarantined().clone(), trouble });
    }

    fn look_at_everything_in(&mut self, span: Duration) {
        self.everything = self.everything.min(Instant::now() + span);
    }

    fn take_found(&mut self, found: RunsWithWork) {
        let share = match self.looked.elapsed() {
            short if short < LOOK_SHORT => Duration::ZERO,
            long => long.saturating_mul(LOOK_SHARE).min(LOOK_SLOWEST),
        };
        let mut last = found.last;
        let mut news: u32 = 0;
        for RunWithWork { work, first } in found.work {
            let arrivals = work.arrivals.len() as u32;
            if self.scheduler.note_found(work) {
                news += arrivals;
                continue;
            }
            // The next look begins with it, however long it is in hand.
            if first.is_some() {
                last = last.min(first);
            }
            self.look_soon(Instant::now() + LOOK_AGAIN.max(share));
        }
        self.last = last.or(self.last.take());
        let wanted = match news {
            0 => (2 * self.gather).clamp(GATHER_LEAST, GATHER_MOST),
            1 => Duration::ZERO,
            news => GATHER_EACH.saturating_mul(news).clamp(GATHER_LEAST, GATHER_NEWS),
        };
        self.gather = wanted.max(share);
    }

    /// A scan that is planned for later must not delay one that is wanted sooner.
    fn look_soon(&mut self, at: Instant) {
        self.next_look = Some(self.next_look.map_or(at, |next| next.min(at)));
    }
}

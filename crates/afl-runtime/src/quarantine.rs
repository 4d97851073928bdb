//! Takes a run out of service that kills the processes that evaluate it, or that the store refuses.
//!
//! **Problem.** An evaluation may abort its process, by memory for example. The next process takes the run up and dies,
//! and so on. No panic is caught and no error is returned, so the evidence must be in the store before the death. But a
//! write before each evaluation would cost as much as the evaluation's own commit.
//!
//! **Approach.** An evaluation that kills takes long first: memory fills in seconds. So an evaluation is watched, and one
//! that computes for longer than [`MARKED_AFTER`] without an end marks its run: an evaluation began. Almost all take less
//! and write nothing. The mark is part of the run record, so a cold evaluation reads it for free and each commit removes
//! it for free. The watch repeats the mark while its process lives. A mark that is silent for [`SILENCE`] is a death.
//! The first death lets another process try; the second holds the run with its reason, until a person resumes it.
//!
//! The mark is a relaxed commit: it outlives the process, and a power cut proves nothing against a run.
//!
//! **What can die.** Agents and foreground commands evaluate. A start that dies has stored nothing. A death before the
//! mark leaves no evidence: the evaluator's recursion is bounded, so a stack does not overflow at once. Several agents may
//! evaluate an outcome at the same moment and die together; the mark stops all later ones.
//!
//! **Rejected.** To mark all work that a process finds when it begins: a process that is killed from outside, twice, would
//! take innocent runs out of service. A file beside the process: agents on other machines do not see it.

use std::collections::HashMap;
use std::sync::Arc;
#[expect(clippy::disallowed_types, reason = "an evaluation begins on any thread and must not wait")]
use std::sync::Mutex;
use std::sync::{MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use afl_engine::evaluation::StoredRecord;
use afl_engine::id::RunId;
use afl_engine::run::{Control, EvaluationMark, Quarantine, Run};
use afl_engine::time::Millis;
use afl_engine::version::Version;
use afl_store::backend::{Durability, StoreError};
use afl_store::notification::Notification;
use afl_store::store::{self, Store};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::error::{Error, StateRefusal};
use crate::service::Service;

/// How long an evaluation may compute before it marks its run.
const MARKED_AFTER: Duration = Duration::from_millis(100);
/// How often a process looks at its evaluations, and how often in vain before it stops.
const PATROL: Duration = Duration::from_millis(50);
const IDLE_PATROLS: u32 = 20;
/// How often a living process repeats its mark.
const REPEATED: Duration = Duration::from_secs(2);
/// After so long without a word the process of a mark is dead.
pub(crate) const SILENCE: Millis = Millis(10_000);
/// The deaths in a row that a run may cause.
pub(crate) const DEATHS: u32 = 2;

/// What the mark of another process says about a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MarkVerdict {
    /// There is none, or one death is not enough.
    Go,
    /// Another process evaluates it.
    Alive,
    Deadly,
}

/// Watches the evaluations of this process. One patrol looks at all of them, so a short one costs two looks at a table.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    /// Protects the table alone, and is never held across an await.
    #[expect(clippy::disallowed_types, reason = "an evaluation begins on any thread and must not wait")]
    table: Mutex<WatchTable>,
}

#[derive(Debug, Default)]
struct WatchTable {
    entries: HashMap<u64, WatchEntry>,
    /// Counts the evaluations.
    last: u64,
    has_patrol: bool,
}

/// It has the store, and the patrol has not: a store is closed when its last user is gone, which a patrol outlives.
#[derive(Debug)]
struct WatchEntry {
    store: Store,
    by: Arc<str>,
    marked_after: Duration,
    run: RunId,
    version: Version,
    began: Instant,
    job: Option<MarkJob>,
}

/// Marks a run until its evaluation ends, and gives the last version of its record.
#[derive(Debug)]
struct MarkJob {
    ended: Arc<Notify>,
    last: JoinHandle<Option<Version>>,
}

impl Watchdog {
    fn table(&self) -> MutexGuard<'_, WatchTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing outside a runtime, as in a simulation.
    fn begin(self: &Arc<Self>, entry: WatchEntry) -> Option<u64> {
        let runtime = Handle::try_current().ok()?;
        let mut table = self.table();
        table.last += 1;
        let id = table.last;
        table.entries.insert(id, entry);
        if !std::mem::replace(&mut table.has_patrol, true) {
            let watchdog = Arc::clone(self);
            // A task would wait in the queue of the very thread that the evaluation blocks.
            let thread = thread::Builder::new().name("afl-watchdog".to_owned());
            table.has_patrol = thread.spawn(move || watchdog.patrol(&runtime)).is_ok();
        }
        Some(id)
    }

    /// Looks at the evaluations of this process now and then, as long as there are some.
    fn patrol(&self, runtime: &Handle) {
        let mut idle = 0;
        loop {
            thread::sleep(PATROL);
            let mut table = self.table();
            idle = if table.entries.is_empty() { idle + 1 } else { 0 };
            if idle == IDLE_PATROLS {
                table.has_patrol = false;
                return;
            }
            for entry in table.entries.values_mut() {
                if entry.job.is_none() && entry.began.elapsed() >= entry.marked_after {
                    entry.job = Some(entry.mark(runtime));
                }
            }
        }
    }

    /// The version of the run's record, if it was marked.
    async fn end(&self, id: u64) -> Option<Version> {
        let job = self.table().entries.remove(&id)?.job;
        let MarkJob { ended, last } = job?;
        ended.notify_one();
        last.await.ok().flatten()
    }
}

impl WatchEntry {
    fn new(store: &Store, by: &Arc<str>, run: &RunId, version: Version) -> Self {
        Self {
            store: store.clone(),
            by: Arc::clone(by),
            marked_after: MARKED_AFTER,
            run: run.clone(),
            version,
            began: Instant::now(),
            job: None,
        }
    }

    fn mark(&self, runtime: &Handle) -> MarkJob {
        let (store, by, ended) = (self.store.clone(), Arc::clone(&self.by), Arc::new(Notify::new()));
        let (run, version) = (self.run.clone(), self.version);
        let end = Arc::clone(&ended);
        let last = runtime.spawn(async move {
            let mut version = version;
            let mut latest = None;
            // The evaluator's own commit reports what goes wrong here.
            while let Ok(Some(marked)) = mark(&store, &run, version, &by).await {
                version = marked;
                latest = Some(marked);
                tokio::select! {
                    () = end.notified() => break,
                    () = sleep(REPEATED) => {}
                }
            }
            latest
        });
        MarkJob { ended, last }
    }
}

/// Says that an evaluation of this version goes on; nothing if there is another version.
async fn mark(store: &Store, id: &RunId, version: Version, by: &str) -> Result<Option<Version>, Error> {
    let Some(StoredRecord { item, .. }) = store.run(id).await?.filter(|run| run.version == version) else {
        return Ok(None);
    };
    let count = match &item.evaluating {
        Some(mark) if mark.by == by => mark.count,
        Some(mark) => mark.count + 1,
        None => 1,
    };
    let evaluating = Some(EvaluationMark { by: by.to_owned(), at: store.now().await?, count });
    store.save_run(&StoredRecord { item: Run { evaluating, ..item }, version }, Durability::Relaxed).await?;
    Ok(Some(version.next()))
}

impl Service {
    /// Watches an evaluation of a stored run, up to [`Service::end_watch`].
    pub(crate) fn watch_evaluation(&self, run: &Run, version: Option<Version>) -> Option<u64> {
        self.watchdog.begin(WatchEntry::new(&self.store, &self.process, &run.id, version?))
    }

    /// The version of the run's record, if the evaluation was marked in it.
    pub(crate) async fn end_watch(&self, watch: Option<u64>) -> Option<Version> {
        self.watchdog.end(watch?).await
    }

    /// Judges the mark of a run that is about to be evaluated.
    pub(crate) fn judge_mark(&self, run: &Run, now: Millis) -> MarkVerdict {
        let others = run.evaluating.as_ref().filter(|mark| *mark.by != *self.process);
        match others {
            // A clock that went back must not make a run wait for it.
            Some(mark) if (Millis(0)..SILENCE).contains(&now.since(mark.at)) => MarkVerdict::Alive,
            Some(mark) if mark.count >= DEATHS => MarkVerdict::Deadly,
            Some(_) | None => MarkVerdict::Go,
        }
    }

    /// Holds a run until a person resumes it.
    pub(crate) async fn quarantine(&self, run: StoredRecord<Run>, reason: String) -> Result<(), Error> {
        let now = self.store.now().await?;
        let notification = Notification::of_quarantine(&run.item, &reason, now);
        let quarantine = Some(Quarantine { since: now, reason });
        let StoredRecord { item, version } = run;
        let item = Run { control: Control::Hold, quarantine, evaluating: None, updated: now, ..item };
        Ok(self.store.quarantine_run(&StoredRecord { item, version }, &notification).await?)
    }

    /// Holds a run whose changes the store refuses again and again.
    pub(crate) async fn quarantine_refused(&self, id: &RunId, refusal: &Error) -> Result<(), Error> {
        let run = self.existing(id).await?;
        if run.item.status.is_terminal() || run.item.control != Control::Go {
            return Ok(());
        }
        self.quarantine(run, refusal.to_string()).await
    }
}

/// The reason of a run whose evaluation killed its processes.
pub(crate) fn deadly() -> String {
    format!(
        "{DEATHS} processes in a row ended while they evaluated its next steps, perhaps for lack of memory: give them \
         more of it, or cancel the run"
    )
}

/// The error of a commit. What the store refuses for its content is of this run.
pub(crate) fn commit_error(run: &RunId, error: store::Error) -> Error {
    match error {
        store::Error::Backend(refusal @ (StoreError::TooLarge { .. } | StoreError::Refused(_))) => {
            StateRefusal::Unstorable { run: run.clone(), refusal }.into()
        }
        error @ (store::Error::Backend(
            StoreError::Conflict { .. }
            | StoreError::Restarted
            | StoreError::Full
            | StoreError::Locked { .. }
            | StoreError::Unavailable { .. },
        )
        | store::Error::Unreadable { .. }
        | store::Error::Shared { .. }) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use afl_store::clock::{Clock, SimClock};
    use afl_store::memory::Memory;
    use afl_store::record::Tenant;

    use super::*;
    use crate::{StartRequest, compile};

    #[tokio::test]
    async fn g5_a_long_evaluation_marks_its_run_and_a_short_one_does_not() {
        let backend = Arc::new(Memory::new(Clock::Simulated(SimClock::new(Millis(1_000)))));
        let service = Service::new(backend, Tenant::new(Tenant::LOCAL).expect("a tenant"));
        let text = "event facet E()\nworkflow W() andThen { e = E() }";
        let program = service.publish(&compile("w.afl", text).expect("it compiles")).await.expect("stored");
        let id = service.start(StartRequest::new(program)).await.expect("started").run;

        for (process, count) in [("one", 1), ("one", 1), ("two", 2)] {
            let version = service.existing(&id).await.expect("it is there").version;
            let watchdog = Arc::<Watchdog>::default();
            let entry = WatchEntry::new(&service.store, &process.into(), &id, version);
            let watch = watchdog.begin(WatchEntry { marked_after: Duration::ZERO, ..entry });
            let watch = watch.expect("there is a runtime");
            let marked = loop {
                let run = service.existing(&id).await.expect("it is there");
                if run.version != version {
                    break run;
                }
                tokio::task::yield_now().await;
            };
            let mark = marked.item.evaluating.expect("a mark");
            assert_eq!((mark.by.as_str(), mark.count), (process, count));
            assert_eq!(watchdog.end(watch).await, Some(marked.version));
        }
        let run = service.existing(&id).await.expect("it is there");
        let watch = service.watch_evaluation(&run.item, Some(run.version));
        assert_eq!(service.end_watch(watch).await, None, "it was short");
        assert_eq!(service.existing(&id).await.expect("it is there").version, run.version);
    }
}

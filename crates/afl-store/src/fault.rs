//! A store that fails on demand, for tests of its callers.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};

use afl_engine::time::Millis;
use afl_engine::version::Epoch;
use async_trait::async_trait;

use crate::backend::{
    Backend, Batch, ClockStatus, Decide, Durability, Head, Limits, Scan, StoreError, Take, TakeResult,
};
use crate::record::{Key, Record, Tenant};
use crate::watch::Watch;

/// The fault of one call. A fault that makes no sense for a call lets it through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    None,
    /// Unavailable, and nothing was done.
    ErrorBefore,
    /// Unavailable, although it was done.
    ErrorAfter,
    /// Waits for the pause given to [`Faulty::pausing`].
    Delay(FaultMoment),
    /// This call and those after it are unavailable, so many in all.
    Disconnect {
        calls: u64,
    },
    /// A commit reports a conflict although there is no other writer.
    Conflict,
    /// A commit or a take finds no space.
    Full,
    /// A commit is refused for what it writes.
    Refused,
    /// A scan answers what the same scan answered the last time.
    StaleScan,
    /// This process ends at once, as by `kill -9`.
    Abort(FaultMoment),
    /// As [`Fault::Abort`] for a test that goes on itself: this and every later call is unavailable.
    Gone(FaultMoment),
}

/// With regard to the work of the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultMoment {
    Before,
    After,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackendVerb {
    Now,
    Get,
    Scan,
    Heads,
    Scopes,
    Commit,
    Take,
}

impl BackendVerb {
    fn writes(self) -> bool {
        match self {
            Self::Commit | Self::Take => true,
            Self::Now | Self::Get | Self::Scan | Self::Heads | Self::Scopes => false,
        }
    }
}

/// A call about to be made, as a plan sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackendCall {
    pub verb: BackendVerb,
    /// Which commit or take it is, from one; none for a call that only reads.
    pub write: Option<u64>,
}

/// The calls on the store. A test enumerates its crash points from one to `writes()`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallCounts {
    pub calls: u64,
    pub relaxed_commits: u64,
    pub durable_commits: u64,
    pub takes: u64,
    /// Keys that were asked for, records that a scan or a take looked at, and writes.
    pub records: u64,
}

impl CallCounts {
    pub fn writes(&self) -> u64 {
        self.relaxed_commits + self.durable_commits + self.takes
    }
}

/// A fault for the commit or take of this number, from one; all else goes well.
pub fn at_write(write: u64, fault: Fault) -> impl FnMut(BackendCall) -> Fault + Send {
    move |call| if call.write == Some(write) { fault } else { Fault::None }
}

pub struct Faulty {
    inner: Arc<dyn Backend>,
    limits: Limits,
    pause: Pause,
    /// Held while a plan is asked, never across an await.
    #[expect(clippy::disallowed_types, reason = "the simulation has no task that could own the state")]
    state: std::sync::Mutex<FaultState>,
}

pub type Pause = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

struct FaultState {
    plan: Box<dyn FnMut(BackendCall) -> Fault + Send>,
    counts: CallCounts,
    /// So many calls from now on are unavailable.
    disconnected: u64,
    /// The latest answers, for stale ones.
    answers: Vec<(Scan, Vec<Record>)>,
}

/// How many scans can be answered stale.
const ANSWERS: usize = 64;

impl Faulty {
    pub fn new(inner: Arc<dyn Backend>, plan: impl FnMut(BackendCall) -> Fault + Send + 'static) -> Self {
        let plan = Box::new(plan);
        let state = FaultState { plan, counts: CallCounts::default(), disconnected: 0, answers: Vec::new() };
        let limits = inner.limits();
        Self { inner, limits, pause: Arc::new(|| Box::pin(std::future::ready(()))), state: state.into() }
    }

    /// A store that takes less at once.
    #[must_use]
    pub fn limited(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Waits for `pause` in each delay.
    #[must_use]
    pub fn pausing(self, pause: Pause) -> Self {
        Self { pause, ..self }
    }

    pub fn counts(&self) -> CallCounts {
        self.lock().counts
    }

    /// The faults from now on; the counts and a disconnection stay.
    pub fn plan(&self, plan: impl FnMut(BackendCall) -> Fault + Send + 'static) {
        self.lock().plan = Box::new(plan);
    }

    fn lock(&self) -> MutexGuard<'_, FaultState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call<T>(
        &self,
        fault: Fault,
        work: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.suffer(fault, FaultMoment::Before).await?;
        let answer = work.await?;
        self.suffer(fault, FaultMoment::After).await?;
        Ok(answer)
    }

    async fn suffer(&self, fault: Fault, moment: FaultMoment) -> Result<(), StoreError> {
        match (fault, moment) {
            (Fault::ErrorBefore, FaultMoment::Before) | (Fault::ErrorAfter, FaultMoment::After) => {
                Err(unavailable())
            }
            (Fault::Delay(at), _) if at == moment => {
                (self.pause)().await;
                Ok(())
            }
            (Fault::Disconnect { calls }, FaultMoment::Before) => {
                self.lock().disconnected = calls.saturating_sub(1);
                Err(unavailable())
            }
            (Fault::Abort(at), _) if at == moment => std::process::abort(),
            (Fault::Gone(at), _) if at == moment => {
                self.lock().disconnected = u64::MAX;
                Err(unavailable())
            }
            _ => Ok(()),
        }
    }

    fn begin(&self, verb: BackendVerb, count: impl FnOnce(&mut CallCounts)) -> Result<Fault, StoreError> {
        let mut state = self.lock();
        state.counts.calls += 1;
        count(&mut state.counts);
        if state.disconnected > 0 {
            state.disconnected -= 1;
            return Err(unavailable());
        }
        let write = verb.writes().then(|| state.counts.writes());
        match (state.plan)(BackendCall { verb, write }) {
            Fault::Full if verb.writes() => Err(StoreError::Full),
            Fault::Refused if verb == BackendVerb::Commit => {
                Err(StoreError::Refused("a name is too long".to_owned()))
            }
            fault => Ok(fault),
        }
    }

    fn begin_read(&self, verb: BackendVerb) -> Result<Fault, StoreError> {
        self.begin(verb, |_| ())
    }

    fn count_records(&self, records: usize) {
        self.lock().counts.records += records as u64;
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable {
        name: "the store under test".to_owned(),
        reason: "the test wants it so".to_owned(),
    }
}

#[async_trait]
impl Backend for Faulty {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn epoch(&self) -> Epoch {
        self.inner.epoch()
    }

    async fn now(&self) -> Result<Millis, StoreError> {
        self.call(self.begin_read(BackendVerb::Now)?, self.inner.now()).await
    }

    async fn clock(&self) -> Result<ClockStatus, StoreError> {
        self.call(self.begin_read(BackendVerb::Now)?, self.inner.clock()).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.count_records(keys.len());
        self.call(self.begin_read(BackendVerb::Get)?, self.inner.get(keys)).await
    }

    async fn scan(&self, scan: &Scan) -> Result<Vec<Record>, StoreError> {
        let fault = self.begin_read(BackendVerb::Scan)?;
        if fault == Fault::StaleScan
            && let Some((_, answer)) = self.lock().answers.iter().find(|(asked, _)| asked == scan)
        {
            return Ok(answer.clone());
        }
        let answer = self.call(fault, self.inner.scan(scan)).await?;
        self.count_records(answer.len());
        let mut state = self.lock();
        state.answers.retain(|(asked, _)| asked != scan);
        state.answers.push((scan.clone(), answer.clone()));
        if state.answers.len() > ANSWERS {
            state.answers.remove(0);
        }
        Ok(answer)
    }

    async fn heads(&self, tenant: &Tenant, prefix: &str) -> Result<Vec<Head>, StoreError> {
        let heads = self.call(self.begin_read(BackendVerb::Heads)?, self.inner.heads(tenant, prefix)).await?;
        self.count_records(heads.len());
        Ok(heads)
    }

    async fn scopes(&self, tenant: &Tenant, after: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        self.call(self.begin_read(BackendVerb::Scopes)?, self.inner.scopes(tenant, after, limit)).await
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        let fault = self.begin(BackendVerb::Commit, |counts| match batch.durability {
            Durability::Relaxed => counts.relaxed_commits += 1,
            Durability::Durable => counts.durable_commits += 1,
        })?;
        self.count_records(batch.writes.len());
        match (fault, batch.writes.first()) {
            (Fault::Conflict, Some(write)) => Err(StoreError::Conflict { key: write.key.clone() }),
            (fault, _) => {
                self.limits.check(&batch)?;
                self.call(fault, self.inner.commit(batch)).await
            }
        }
    }

    async fn take(&self, take: Take) -> Result<TakeResult, StoreError> {
        let fault = self.begin(BackendVerb::Take, |counts| counts.takes += 1)?;
        let (looks, decide) = (Arc::new(AtomicUsize::new(0)), take.decide);
        let counted = looks.clone();
        let decide: Decide = Arc::new(move |record, moment| {
            counted.fetch_add(1, Ordering::Relaxed);
            decide(record, moment)
        });
        let taken = self.call(fault, self.inner.take(Take { decide, ..take })).await?;
        self.count_records(looks.load(Ordering::Relaxed) + taken.moved.len() + taken.also_read.len());
        Ok(taken)
    }

    fn watch(&self, tenant: &Tenant, prefix: &str) -> Watch {
        self.inner.watch(tenant, prefix)
    }

    async fn check_integrity(&self) -> Result<Vec<String>, StoreError> {
        self.inner.check_integrity().await
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Change, Expect, Write};
    use crate::clock::Clock;
    use crate::memory::Memory;
    use crate::record::{Content, Seal};

    crate::conformance!(faultless, Arc::new(faulty(|_| Fault::None)));

    fn faulty(plan: impl FnMut(BackendCall) -> Fault + Send + 'static) -> Faulty {
        Faulty::new(Arc::new(Memory::new(Clock::System)), plan)
    }

    async fn insert(store: &Faulty, id: &str) -> Result<(), StoreError> {
        let content = Content { place: None, body: b"{}".to_vec(), seal: Seal::default() };
        let write = Write { key: key(id), expect: Expect::Absent, change: Change::Put(content) };
        store.commit(Batch::new(vec![write], Durability::Durable)).await
    }

    fn key(id: &str) -> Key {
        Key { tenant: Tenant::new(Tenant::LOCAL).unwrap(), scope: "run".into(), id: id.to_owned() }
    }

    async fn there(store: &Faulty) -> Vec<String> {
        store.plan(|_| Fault::None);
        store.scan(&all()).await.unwrap().into_iter().map(|record| record.key.id).collect()
    }

    fn all() -> Scan {
        let Key { tenant, scope, .. } = key("");
        Scan::Scope { tenant, scope, prefix: String::new(), after: None, limit: 9 }
    }

    #[tokio::test]
    async fn a_fault_strikes_the_write_it_is_planned_for() {
        for (fault, expected) in [
            (Fault::None, vec!["1", "2", "3"]),
            (Fault::Delay(FaultMoment::Before), vec!["1", "2", "3"]),
            (Fault::ErrorBefore, vec!["1", "3"]),
            (Fault::ErrorAfter, vec!["1", "2", "3"]),
            (Fault::Conflict, vec!["1", "3"]),
            (Fault::Full, vec!["1", "3"]),
            (Fault::Disconnect { calls: 2 }, vec!["1"]),
        ] {
            let store = faulty(at_write(2, fault));
            insert(&store, "1").await.unwrap();
            let answer = insert(&store, "2").await;
            let goes_well = matches!(fault, Fault::None | Fault::Delay(_));
            assert_eq!(answer.is_ok(), goes_well, "{fault:?}: {answer:?}");
            let answer = insert(&store, "3").await;
            assert_eq!(answer.is_err(), matches!(fault, Fault::Disconnect { .. }), "{fault:?}: {answer:?}");
            assert_eq!(there(&store).await, expected, "{fault:?}");
            assert_eq!((store.counts().writes(), store.counts().durable_commits), (3, 3));
        }
    }

    #[tokio::test]
    async fn a_limited_store_takes_no_more_than_it_says() {
        let limits = Limits { batch_writes: 0, ..crate::memory::LIMITS };
        let store = faulty(|_| Fault::None).limited(limits);
        assert_eq!(store.limits(), limits);
        assert!(matches!(insert(&store, "1").await, Err(StoreError::TooLarge { size: 1, limit: 0, .. })));
        assert!(there(&store).await.is_empty());
    }

    #[tokio::test]
    async fn a_dead_process_does_nothing_more() {
        for (moment, expected) in [(FaultMoment::Before, vec!["1"]), (FaultMoment::After, vec!["1", "2"])] {
            let memory = Arc::new(Memory::new(Clock::System));
            let store = Faulty::new(memory.clone(), at_write(2, Fault::Gone(moment)));
            insert(&store, "1").await.unwrap();
            for id in ["2", "3", "4"] {
                insert(&store, id).await.unwrap_err();
            }
            store.scan(&all()).await.unwrap_err();
            assert_eq!(there(&Faulty::new(memory, |_| Fault::None)).await, expected);
        }
    }

    #[tokio::test]
    async fn a_stale_scan_is_an_earlier_answer() {
        let store = faulty(|_| Fault::None);
        insert(&store, "1").await.unwrap();
        assert_eq!(store.scan(&all()).await.unwrap().len(), 1);
        insert(&store, "2").await.unwrap();
        store.plan(|_| Fault::StaleScan);
        assert_eq!(store.scan(&all()).await.unwrap().len(), 1);
        assert_eq!(there(&store).await.len(), 2);
    }
}

//! Whose turn it is: the most urgent tasks first, and names in turn where several have equally urgent ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use afl_engine::policy::Effect;
use afl_engine::task::Task;
use afl_engine::time::Millis;
use tokio::sync::watch;

use super::head_cache::{HeadCache, OpenBucket};
use crate::backend::{Head, Ranks};
use crate::store::last_as_urgent;
use crate::watch::Watch;

/// Which names this process served last. It is not stored: processes that take turns each for themselves are fair
/// together, and whoever starts anew begins with the oldest.
#[derive(Clone, Debug, Default)]
pub(super) struct ClaimOrder {
    state: Arc<watch::Sender<ClaimState>>,
}

#[derive(Debug, Default)]
struct ClaimState {
    claims: u64,
    buckets: BTreeMap<String, BucketUse>,
    heads: HeadCache,
    /// The bucket that the last claims took from, and how many of them.
    streak: (String, u32),
    /// Who found that nothing waited, at the last look: others may ask for other things.
    rests: Option<String>,
    /// Owners whose last claim met a full `Limit`.
    turned_away: BTreeSet<String>,
}

/// After so many claims of one bucket the next task is expected there.
const STREAK: u32 = 2;

#[derive(Clone, Copy, Debug, Default)]
struct BucketUse {
    /// The number of the claim that took something; zero for none.
    claim: u64,
    class: TaskClass,
}

/// Buckets of equal priority, in the order of their turns, and the last rank that a claim may take from them.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct PriorityBand {
    pub(super) buckets: Vec<OpenBucket>,
    pub(super) ranks: Ranks,
}

impl ClaimOrder {
    /// What to take from the buckets of one look: those of the highest priority first. A name that has waited longest
    /// for its turn comes first among equals, then the one whose first task is the oldest.
    ///
    /// Behind what it sees, a bucket may hold tasks of a lower priority. The last band takes those too, for when
    /// nothing else could be taken.
    pub(super) fn bands(&self, mut open: Vec<OpenBucket>) -> Vec<PriorityBand> {
        if open.len() == 1 {
            return vec![PriorityBand { buckets: open, ranks: Ranks::All }];
        }
        {
            let state = self.state.borrow();
            open.sort_by_cached_key(|open| (state.seen(&open.bucket).claim, open.rank));
        }
        let mut ends: Vec<i64> = open.iter().map(|open| last_as_urgent(open.rank)).collect();
        ends.sort_unstable();
        ends.dedup();
        let band = |ranks: Ranks| {
            let buckets = open.iter().filter(|open| open.rank <= ranks.highest()).cloned().collect();
            PriorityBand { buckets, ranks }
        };
        ends.into_iter().map(Ranks::UpTo).chain([Ranks::All]).map(band).collect()
    }

    /// What a look saw; nothing is kept of names that have no task any more.
    pub(super) fn looked(&self, prefix: &str, watch: Option<Watch>, heads: Vec<Head>) -> Vec<OpenBucket> {
        self.change(|state| {
            let is_gone = |bucket: &str| {
                bucket.starts_with(prefix)
                    && heads.binary_search_by(|head| head.bucket.as_str().cmp(bucket)).is_err()
            };
            state.buckets.retain(|bucket, _| !is_gone(bucket));
            state.heads.add(prefix, watch, heads)
        })
    }

    pub(super) fn has_backlog(&self, prefix: &str) -> bool {
        self.state.borrow().heads.has_backlog(prefix)
    }

    /// What the last look saw, if nothing can have come since.
    pub(super) fn known(&self, prefix: &str, now: Millis) -> Option<Vec<OpenBucket>> {
        self.state.borrow().heads.known(prefix, now)
    }

    /// A bucket has no more to give, or could not be asked.
    pub(super) fn emptied(&self, open: &OpenBucket) {
        self.change(|state| state.heads.emptied(open));
    }

    /// As many tasks as were wanted were taken from a bucket, the last of them of this rank.
    pub(super) fn filled(&self, open: &OpenBucket, rank: i64, now: Millis) {
        self.change(|state| state.heads.filled(open, rank, now));
    }

    /// Nobody waits for it.
    fn change<T>(&self, change: impl FnOnce(&mut ClaimState) -> T) -> T {
        let mut result = None;
        self.state.send_if_modified(|state| {
            result = Some(change(state));
            false
        });
        result.expect("the change was made")
    }

    pub(super) fn took_from(&self, bucket: &str) {
        self.change(|state| {
            state.claims += 1;
            let claim = state.claims;
            state.entry(bucket).claim = claim;
            match &mut state.streak {
                (last, count) if last == bucket => *count = count.saturating_add(1),
                streak => *streak = (bucket.to_owned(), 1),
            }
            state.rests = None;
        });
    }

    pub(super) fn nothing_waits(&self, owner: &str) {
        self.change(|state| state.rests = Some(owner.to_owned()));
    }

    pub(super) fn asks(&self, owner: &str) {
        self.change(|state| state.turned_away.remove(owner));
    }

    pub(super) fn turned_away(&self, owner: &str) {
        self.change(|state| state.turned_away.insert(owner.to_owned()));
    }

    pub(super) fn was_turned_away(&self, owner: &str) -> bool {
        self.state.borrow().turned_away.contains(owner)
    }

    /// Where a task is likely to be, when nothing waited before: whatever has come since passes none that waited longer.
    /// After a wrong guess the queue reads the heads until there is reason for another guess.
    pub(super) fn guess(&self, owner: &str) -> Option<String> {
        self.change(|state| {
            let is_likely = state.rests.as_deref() == Some(owner) && state.streak.1 >= STREAK;
            is_likely.then(|| {
                state.rests = None;
                state.streak.1 = 0;
                state.streak.0.clone()
            })
        })
    }

    /// A guess was right.
    pub(super) fn guessed(&self) {
        self.change(|state| state.streak.1 = STREAK);
    }

    /// The class of the task that a take met last.
    pub(super) fn class(&self, bucket: &str) -> TaskClass {
        self.state.borrow().seen(bucket).class
    }

    pub(super) fn report(&self, bucket: &str, class: TaskClass) {
        self.change(|state| state.entry(bucket).class = class);
    }
}

impl ClaimState {
    fn seen(&self, bucket: &str) -> BucketUse {
        self.buckets.get(bucket).copied().unwrap_or_default()
    }

    fn entry(&mut self, bucket: &str) -> &mut BucketUse {
        self.buckets.entry(bucket.to_owned()).or_default()
    }
}

/// Tasks that can be taken in one go: the limit and the durability are of the whole take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct TaskClass {
    pub(super) limit: Option<u32>,
    pub(super) effect: Option<Effect>,
}

impl TaskClass {
    pub(super) fn of(task: &Task) -> Self {
        Self { limit: task.policy.limit, effect: task.policy.effect.filter(|effect| *effect == Effect::Once) }
    }
}

/// The tasks that a take met and did not move.
#[derive(Clone, Debug)]
pub(super) struct TakeReport(Arc<Codes>);

#[derive(Debug)]
struct Codes {
    class: AtomicU64,
    for_another: AtomicBool,
}

impl TakeReport {
    const NOWHERE: u64 = u64::MAX;
    const LIMITED: u64 = 1 << 32;
    const ONCE: u64 = 1 << 33;

    pub(super) fn nothing() -> Self {
        let (class, for_another) = (AtomicU64::new(Self::NOWHERE), AtomicBool::new(false));
        Self(Arc::new(Codes { class, for_another }))
    }

    /// A task that is left to another server.
    pub(super) fn one_for_another(&self) {
        self.0.for_another.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_some_for_another(&self) -> bool {
        self.0.for_another.load(Ordering::SeqCst)
    }

    /// A task of another class, at which it stopped.
    pub(super) fn stop_at(&self, class: TaskClass) {
        let once = class.effect.map_or(0, |_| Self::ONCE);
        let limit = class.limit.map_or(0, |limit| u64::from(limit) | Self::LIMITED);
        self.0.class.store(limit | once, Ordering::SeqCst);
    }

    pub(super) fn stopped_at(&self) -> Option<TaskClass> {
        let code = self.0.class.load(Ordering::SeqCst);
        (code != Self::NOWHERE).then(|| TaskClass {
            limit: (code & Self::LIMITED != 0).then_some(code as u32),
            effect: (code & Self::ONCE != 0).then_some(Effect::Once),
        })
    }
}

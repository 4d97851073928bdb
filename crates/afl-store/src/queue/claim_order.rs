//! The order in which a claim takes from buckets.
//!
//! **Problem.** Each facet has buckets of its own. A facet with a backlog must not starve the others, an urgent task
//! must not wait for one that is less urgent, and neither may cost a write or a read for each claim.
//!
//! **Approach.** The buckets of a claim fall into bands of priority. Within a band the bucket that this process served
//! least recently comes first, then the one with the oldest task; a claim of many tasks gives each bucket an equal
//! share. Behind its head a bucket may hold tasks of a lower priority. So each band ends at its priority, holds the more
//! urgent buckets again, and the last band takes any rank when no other band gave a task.
//!
//! **Rejected.** A stored position of the round: every claim would write it, and all agents would compete for the
//! record. Processes that take turns independently are fair together, and a process that starts begins with the oldest
//! task. One bucket for all facets: an agent would step over the tasks of facets that it does not serve.
//!
//! **Measured** by the counts of `queue/tests/fair.rs`: beside 600 waiting tasks of two facets, a claim of one task is one
//! read of the heads and one take. The next claim, of 64 tasks, is two takes and no read.

use std::collections::{BTreeMap, BTreeSet};

use super::head_cache::{CachedHeads, HeadCache};
use crate::backend::{Durability, Head, MaxInBucket, Ranks};
use crate::store::{bucket, last_as_urgent};

/// The turns of this process's claims. It is not stored.
#[derive(Debug, Default)]
pub(super) struct ClaimOrder {
    takes: u64,
    /// The number of the last take that got a task, by bucket.
    served: BTreeMap<String, u64>,
    pub(super) heads: HeadCache,
    /// The bucket of the last takes, and how many of them there were.
    streak: (String, u32),
    /// The owner whose last read of the heads found no task.
    pub(super) idle: Option<String>,
    /// Owners whose last claim met a full `Limit`.
    pub(super) turned_away: BTreeSet<String>,
}

/// After so many takes from one bucket the next task is expected there.
const STREAK: u32 = 2;

/// A bucket that a claim may take from, with the policies that its name carries: they hold for a whole take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct OpenBucket {
    pub(super) head: Head,
    pub(super) max_in_bucket: Option<MaxInBucket>,
    pub(super) durability: Durability,
    /// Its tasks are left to another server for a while.
    pub(super) is_for_another: bool,
}

impl OpenBucket {
    /// Whether a take may get less than it wants though there is more.
    pub(super) fn may_hold_back(&self) -> bool {
        self.is_for_another || self.max_in_bucket.is_some()
    }
}

/// Buckets in the order of their turns, and the last rank that a claim may take from them.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct PriorityBand {
    pub(super) buckets: Vec<OpenBucket>,
    pub(super) ranks: Ranks,
}

impl ClaimOrder {
    pub(super) fn bands(&self, mut open: Vec<OpenBucket>) -> Vec<PriorityBand> {
        if open.len() == 1 {
            return vec![PriorityBand { buckets: open, ranks: Ranks::All }];
        }
        let served = |open: &OpenBucket| self.served.get(&open.head.bucket).copied().unwrap_or_default();
        open.sort_by_cached_key(|open| (served(open), open.head.rank));
        let ends: BTreeSet<i64> = open.iter().map(|open| last_as_urgent(open.head.rank)).collect();
        let band = |ranks: Ranks| {
            let buckets = open.iter().filter(|open| open.head.rank <= ranks.highest()).cloned().collect();
            PriorityBand { buckets, ranks }
        };
        ends.into_iter().map(Ranks::UpTo).chain([Ranks::All]).map(band).collect()
    }

    /// The heads of a list were read. Buckets that hold no task any more lose their turn.
    pub(super) fn read(&mut self, list: &str, cached: CachedHeads) {
        let (prefix, heads) = (bucket::tasks(list, ""), &cached.heads);
        let holds = |bucket: &str| heads.binary_search_by(|head| head.bucket.as_str().cmp(bucket)).is_ok();
        self.served.retain(|bucket, _| !bucket.starts_with(&prefix) || holds(bucket));
        self.heads.insert(list, cached);
    }

    /// A take got tasks from a bucket.
    pub(super) fn served(&mut self, bucket: &str) {
        self.takes += 1;
        self.served.insert(bucket.to_owned(), self.takes);
        self.idle = None;
        match &mut self.streak {
            (last, takes) if last == bucket => *takes = takes.saturating_add(1),
            streak => *streak = (bucket.to_owned(), 1),
        }
    }

    /// The bucket where an idle agent expects its next task, which saves the read of the heads: none that waited longer
    /// can be passed. The streak ends unless the guess is right.
    pub(super) fn guess(&mut self, owner: &str) -> Option<Head> {
        let is_likely = self.idle.as_deref() == Some(owner) && self.streak.1 >= STREAK;
        is_likely.then(|| {
            self.streak.1 = 0;
            Head { bucket: self.streak.0.clone(), rank: i64::MIN }
        })
    }

    pub(super) fn guessed(&mut self) {
        self.streak.1 = STREAK;
    }
}

//! The heads of the buckets of tasks as they were read last.
//!
//! **Problem.** A claim must know which buckets hold tasks and how urgent the first of each is. Reading these heads for
//! every claim is expensive on PostgreSQL: the index keeps an entry for each task that was taken since the last vacuum,
//! and both the read and the take step over all of them. At 100,000 tasks that was a quarter of the server's time, and
//! it grew with the square of their number.
//!
//! **Approach.** One read serves the claims of this process while no task arrives, for at most [`LASTS`]. A watch that
//! is made before the read detects arrivals. A take that gets all it wanted raises the head of its bucket, so the next
//! take begins where that one ended. A take that gets less shows that the cache is out of date, and its list is read
//! again.
//!
//! **Rejected.** A cache without an end: a task can become free without arriving, as when its desired server stays away
//! or another claim is rolled back. One cursor for each bucket in the store: every claim would write it.

use std::collections::BTreeMap;

use afl_engine::time::Millis;

use crate::backend::Head;
use crate::watch::Watch;

/// How long heads are good for at most.
const LASTS: Millis = Millis(1_000);

#[derive(Debug, Default)]
pub(super) struct HeadCache {
    by_list: BTreeMap<String, CachedHeads>,
}

#[derive(Debug)]
pub(super) struct CachedHeads {
    /// Made before the heads were read.
    pub(super) watch: Watch,
    pub(super) read: Millis,
    pub(super) heads: Vec<Head>,
}

impl HeadCache {
    pub(super) fn insert(&mut self, list: &str, cached: CachedHeads) {
        self.by_list.insert(list.to_owned(), cached);
    }

    /// The heads of a list, if no task can have arrived since they were read.
    pub(super) fn get(&self, list: &str, now: Millis) -> Option<&[Head]> {
        let cached = self.by_list.get(list)?;
        let is_fresh = (Millis(0)..LASTS).contains(&now.since(cached.read)) && !cached.watch.has_changed();
        is_fresh.then_some(&*cached.heads)
    }

    /// All tasks of the bucket up to this rank were taken, beginning at the head that is cached. Another head was read
    /// after the take, and stays.
    pub(super) fn raise(&mut self, taken: &Head, rank: i64) {
        let heads = self.by_list.values_mut().flat_map(|cached| &mut cached.heads);
        heads.filter(|head| *head == taken).for_each(|head| head.rank = rank);
    }

    /// The bucket held less than its head promised.
    pub(super) fn forget(&mut self, bucket: &str) {
        self.by_list.retain(|_, cached| cached.heads.iter().all(|head| head.bucket != bucket));
    }

    pub(super) fn clear(&mut self) {
        self.by_list.clear();
    }
}

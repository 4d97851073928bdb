//! What the last looks at the queues saw, good for as long as nothing comes into them.

use std::collections::BTreeMap;

use afl_engine::time::Millis;

use crate::backend::Head;
use crate::watch::Watch;

/// How long a look is good for at most: a task may become free without coming into its queue, as when the server that it
/// wanted stays away, or somebody who was about to take it fails.
const LASTS: Millis = Millis(1_000);

/// One look for each prefix of buckets.
#[derive(Debug, Default)]
pub(super) struct HeadCache {
    count: u64,
    by_prefix: BTreeMap<String, CachedHeads>,
}

#[derive(Debug)]
struct CachedHeads {
    number: u64,
    /// Made before the look; there as long as the look may serve more than one claim.
    watch: Option<Watch>,
    /// When a bucket first gave all that was wanted of it.
    filled: Option<Millis>,
    /// Their ranks rise with what is taken.
    heads: Vec<Head>,
}

/// A bucket that may hold tasks, from a rank on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct OpenBucket {
    pub(super) bucket: String,
    pub(super) rank: i64,
    /// By which look.
    look: u64,
}

impl OpenBucket {
    /// Without a look.
    pub(super) fn guessed(bucket: String) -> Self {
        Self { bucket, rank: i64::MIN, look: 0 }
    }
}

impl HeadCache {
    /// Whether there was enough at the last look: then there may be more than one claim takes, and a watch is worth it.
    pub(super) fn has_backlog(&self, prefix: &str) -> bool {
        self.by_prefix.get(prefix).is_some_and(|last| last.filled.is_some())
    }

    /// What a new look saw.
    pub(super) fn add(&mut self, prefix: &str, watch: Option<Watch>, heads: Vec<Head>) -> Vec<OpenBucket> {
        self.count += 1;
        let look = CachedHeads { number: self.count, watch, filled: None, heads };
        let open = look.open();
        self.by_prefix.insert(prefix.to_owned(), look);
        open
    }

    /// What is known without a new look.
    pub(super) fn known(&self, prefix: &str, now: Millis) -> Option<Vec<OpenBucket>> {
        let look = self.by_prefix.get(prefix)?;
        let is_fresh = (Millis(0)..LASTS).contains(&now.since(look.filled?));
        (is_fresh && !look.watch.as_ref()?.has_changed()).then(|| look.open())
    }

    /// All that was wanted was there, up to this rank.
    pub(super) fn filled(&mut self, open: &OpenBucket, rank: i64, now: Millis) {
        let Some(look) = self.of(open) else { return };
        look.filled.get_or_insert(now);
        if let Some(head) = look.heads.iter_mut().find(|head| head.bucket == open.bucket) {
            head.rank = head.rank.max(rank);
        }
    }

    /// There was less than it promised.
    pub(super) fn emptied(&mut self, open: &OpenBucket) {
        if let Some(look) = self.of(open) {
            look.watch = None;
        }
    }

    /// The look by which a bucket is open, if there was no later one.
    fn of(&mut self, open: &OpenBucket) -> Option<&mut CachedHeads> {
        self.by_prefix.values_mut().find(|look| look.number == open.look)
    }
}

impl CachedHeads {
    fn open(&self) -> Vec<OpenBucket> {
        let open =
            |head: &Head| OpenBucket { bucket: head.bucket.clone(), rank: head.rank, look: self.number };
        self.heads.iter().map(open).collect()
    }
}

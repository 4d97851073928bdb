//! The joint effect of a group's batches: each batch is checked against those before it, and fails alone.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use afl_store::Epoch;
use afl_store::backend::{Batch, Change, StoreError};
use afl_store::record::{Content, Key, QueuePosition, Tenant};

/// The versions of records that are known when a plan is made.
#[derive(Clone, Copy, Debug)]
pub(super) enum KnownVersions<'a> {
    /// None: the first batch's expectation of a key is assumed to hold, and the transaction fails if it does not.
    Nothing,
    /// The versions of all records of the group, which are locked.
    Versions(&'a BTreeMap<Key, u64>),
}

#[derive(Debug)]
pub(super) struct GroupPlan<'a> {
    /// In the order of keys, in which all transactions lock, so that there is no deadlock.
    slots: BTreeMap<&'a Key, KeySlot<'a>>,
    pub(super) verdicts: Verdicts,
}

/// The result of each batch.
pub(super) type Verdicts = Vec<Result<(), StoreError>>;

/// One key before and after the group.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeySlot<'a> {
    pub(super) found: Option<u64>,
    pub(super) after: SlotAfter<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum SlotAfter<'a> {
    Kept,
    Put { version: u64, content: &'a Content },
    Gone,
}

impl<'a> GroupPlan<'a> {
    /// For a connection that began this epoch.
    pub(super) fn new(
        batches: impl Iterator<Item = &'a Batch>,
        epoch: Epoch,
        known: KnownVersions<'_>,
    ) -> Self {
        let mut plan = Self { slots: BTreeMap::new(), verdicts: Vec::new() };
        for batch in batches {
            let verdict = plan.check(batch, epoch, known);
            if verdict.is_ok() {
                plan.apply(batch);
            }
            plan.verdicts.push(verdict);
        }
        plan
    }

    fn check(&self, batch: &Batch, epoch: Epoch, known: KnownVersions<'_>) -> Result<(), StoreError> {
        if batch.is_outdated(epoch) {
            return Err(StoreError::Restarted);
        }
        for write in &batch.writes {
            let found = match (self.slots.get(&write.key), known) {
                (Some(slot), _) => slot.version(),
                (None, KnownVersions::Nothing) => continue,
                (None, KnownVersions::Versions(versions)) => versions.get(&write.key).copied(),
            };
            if found != write.expect.version().map(|version| version.number) {
                return Err(StoreError::Conflict { key: write.key.clone() });
            }
        }
        Ok(())
    }

    fn apply(&mut self, batch: &'a Batch) {
        for write in &batch.writes {
            let expected = write.expect.version().map(|version| version.number);
            let slot = match self.slots.entry(&write.key) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(KeySlot { found: expected, after: SlotAfter::Kept }),
            };
            match &write.change {
                Change::Put(content) => {
                    slot.after = SlotAfter::Put { version: expected.unwrap_or(0) + 1, content };
                }
                Change::Delete => slot.after = SlotAfter::Gone,
                Change::Keep => {}
            }
        }
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = (&'a Key, KeySlot<'a>)> {
        self.slots.iter().map(|(key, slot)| (*key, *slot))
    }

    /// The positions that the group puts records into.
    pub(super) fn places(&self) -> impl Iterator<Item = (&'a Tenant, &'a QueuePosition)> {
        self.slots().filter_map(|(key, slot)| match slot.after {
            SlotAfter::Put { content, .. } => content.place.as_ref().map(|place| (&key.tenant, place)),
            SlotAfter::Kept | SlotAfter::Gone => None,
        })
    }
}

impl KeySlot<'_> {
    fn version(&self) -> Option<u64> {
        match self.after {
            SlotAfter::Kept => self.found,
            SlotAfter::Put { version, .. } => Some(version),
            SlotAfter::Gone => None,
        }
    }
}

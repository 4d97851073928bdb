//! The records that an evaluation has read and written so far.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::attribute::{Blob, BlobHash, ValueRef, blob_of};
use crate::changes::Put;
use crate::event::Event;
use crate::id::StepId;
use crate::plan::Node;
use crate::step::Step;
use crate::task::Task;
use crate::value::{Map, Value};
use crate::version::{Epoch, Version};

/// Records by their steps. A record that is not here is not known; one that is `None` is not stored.
#[derive(Debug, Default)]
pub(super) struct KnownRecords {
    pub(super) steps: RecordCache<StepEntry>,
    pub(super) events: RecordCache<Event>,
    pub(super) tasks: RecordCache<Task>,
    blobs: FxHashMap<BlobHash, Value>,
    /// Of the texts of all blobs at hand.
    blob_bytes: usize,
    new_blobs: Vec<Blob>,
    pub(super) new_blob_bytes: usize,
}

#[derive(Clone, Debug)]
pub(super) struct StepEntry {
    pub(super) step: Arc<Step>,
    pub(super) node: Node,
}

impl KnownRecords {
    pub(super) fn step(&self, id: &StepId) -> Option<&Step> {
        self.steps.get(id).map(|entry| &*entry.step)
    }

    /// The value of an attribute; `None` when it is a large one that has not been read.
    pub(super) fn value<'k>(&'k self, held: &'k ValueRef) -> Option<&'k Value> {
        match held {
            ValueRef::Inline(value) => Some(value),
            ValueRef::Blob(blob) => self.blobs.get(&blob.hash),
        }
    }

    /// The entries of a map; none where there is no map.
    pub(super) fn object(&self, held: Option<&ValueRef>) -> Map<String, Value> {
        let value = held.and_then(|held| self.value(held));
        value.and_then(Value::as_object).cloned().unwrap_or_default()
    }

    pub(super) fn supply_blob(&mut self, hash: BlobHash, value: Value, bytes: usize) {
        self.blob_bytes += bytes;
        self.blobs.insert(hash, value);
    }

    /// Keeps a value for an attribute, a large one as a blob to be written.
    pub(super) fn hold(&mut self, value: Value) -> ValueRef {
        let Some(blob) = blob_of(&value) else { return ValueRef::Inline(value) };
        let held = blob.held();
        self.supply_blob(blob.hash.clone(), value, blob.text.len());
        self.new_blob_bytes += blob.text.len();
        self.new_blobs.push(blob);
        held
    }

    pub(super) fn writes(&self) -> usize {
        self.steps.dirty.len() + self.events.dirty.len() + self.tasks.dirty.len() + self.new_blobs.len()
    }

    pub(super) fn take_blobs(&mut self) -> Vec<Blob> {
        self.new_blob_bytes = 0;
        std::mem::take(&mut self.new_blobs)
    }

    /// Forgets clean records when there are many of them. Only after a commit.
    pub(super) fn shrink(&mut self, most: usize, most_bytes: usize) {
        if self.steps.len() > most {
            self.steps.forget_clean();
            self.events.forget_clean();
            self.tasks.forget_clean();
        }
        if self.blob_bytes > most_bytes {
            self.blobs.clear();
            self.blob_bytes = 0;
        }
    }
}

/// Records of one kind.
#[derive(Debug)]
pub(super) struct RecordCache<T> {
    entries: FxHashMap<StepId, Option<RecordSlot<T>>>,
    dirty: Vec<StepId>,
    /// Taken for a commit whose outcome is not known yet.
    taken: Vec<StepId>,
}

#[derive(Debug)]
struct RecordSlot<T> {
    item: T,
    /// The stored version; `None` before the first commit.
    version: Option<Version>,
    is_dirty: bool,
}

impl<T> Default for RecordCache<T> {
    fn default() -> Self {
        Self { entries: FxHashMap::default(), dirty: Vec::new(), taken: Vec::new() }
    }
}

impl<T: Clone> RecordCache<T> {
    pub(super) fn is_known(&self, id: &StepId) -> bool {
        self.entries.contains_key(id)
    }

    pub(super) fn get(&self, id: &StepId) -> Option<&T> {
        self.entries.get(id)?.as_ref().map(|slot| &slot.item)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// As read from the store. Writes of this evaluation stay.
    pub(super) fn supply(&mut self, id: StepId, stored: Option<(T, Version)>) {
        let slot = stored.map(|(item, version)| RecordSlot { item, version: Some(version), is_dirty: false });
        self.entries.entry(id).or_insert(slot);
    }

    /// A record that is not stored yet. Creating the same one twice is creating it once.
    pub(super) fn create(&mut self, id: StepId, item: T) {
        let slot = self.entries.entry(id.clone()).or_default();
        if slot.is_none() {
            *slot = Some(RecordSlot { item, version: None, is_dirty: true });
            self.dirty.push(id);
        }
    }

    /// A record in place of whatever is stored.
    pub(super) fn put(&mut self, id: &StepId, item: T) {
        if self.get(id).is_some() {
            *self.change(id) = item;
        } else {
            self.create(id.clone(), item);
        }
    }

    /// The record to change; it is written with the next commit.
    pub(super) fn change(&mut self, id: &StepId) -> &mut T {
        let slot =
            self.entries.get_mut(id).and_then(Option::as_mut).expect("a record is read before it is changed");
        if !slot.is_dirty {
            slot.is_dirty = true;
            self.dirty.push(id.clone());
        }
        &mut slot.item
    }

    pub(super) fn take<U>(&mut self, arc: impl Fn(&T) -> Arc<U>) -> Vec<Put<U>> {
        let entries = &mut self.entries;
        let put = |id: &StepId| {
            let slot = entries.get_mut(id).and_then(Option::as_mut).expect("a dirty record is known");
            slot.is_dirty = false;
            Put { item: arc(&slot.item), version: slot.version }
        };
        let puts = self.dirty.iter().map(put).collect();
        self.taken.append(&mut self.dirty);
        puts
    }

    pub(super) fn committed(&mut self, epoch: Epoch) {
        for id in self.taken.drain(..) {
            let slot = self.entries.get_mut(&id).and_then(Option::as_mut).expect("a written record is known");
            slot.version = Some(slot.version.map_or(Version::first(epoch), Version::next));
        }
    }

    /// Forgets a record that other writers change too, so that it is read again.
    pub(super) fn forget(&mut self, id: &StepId) {
        if self.entries.get(id).is_some_and(|slot| slot.as_ref().is_none_or(|slot| !slot.is_dirty)) {
            self.entries.remove(id);
        }
    }

    fn forget_clean(&mut self) {
        self.entries
            .retain(|_, slot| slot.as_ref().is_some_and(|slot| slot.is_dirty || slot.version.is_none()));
    }
}

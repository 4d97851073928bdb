//! The records that an evaluation asks for.
//!
//! Problem: evaluation is pure, so it cannot read the store. But a result in a run of a million steps needs only a few
//! records, and which ones depends on values that are in other records.
//!
//! Approach: work that meets an unknown record notes it in [`Wants`] and returns [`MissingRecord`]. The driver gets
//! `Advance::Need`, reads all wanted records in one call and supplies them; then the same work starts again. Three
//! rules make that sound:
//!
//! - Work asks for its records before it makes a change that a second start would repeat.
//! - Work that needs several records asks for all of them before it stops ([`all`]), so that one read brings them.
//! - A wanted step brings its ancestors along, because its end usually wakes several of them.
//!
//! Rejected: futures that await the store. They would tie the pure engine to a runtime and its tests to a store.
//! Rejected too: loading the whole run. A result would cost more the more siblings its step has; the tests of T5 count
//! the records that a result reads.

use rustc_hash::FxHashSet;

use super::Evaluation;
use super::known::RecordCache;
use crate::attribute::{BlobHash, ValueRef};
use crate::id::StepId;
use crate::step::{Step, Transmission};

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wants {
    pub steps: FxHashSet<StepId>,
    pub events: FxHashSet<StepId>,
    pub tasks: FxHashSet<StepId>,
    pub blobs: FxHashSet<BlobHash>,
}

impl Wants {
    /// The event and the task of a step that was sent out. An event may be stored beside these: that of a script before
    /// the body, whose result was taken.
    pub fn add_work(&mut self, step: &Step) {
        match step.event {
            Transmission::None => {}
            Transmission::Sent | Transmission::Answered => {
                self.events.insert(step.id.clone());
                self.tasks.insert(step.id.clone());
            }
        }
    }
}

/// Something is not at hand; it has been asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct MissingRecord;

/// How many ancestors are asked for along with a step: a result usually wakes several of them.
const ANCESTORS_AHEAD: usize = 16;

impl Evaluation {
    /// Needs a step; its ancestors come along.
    pub(super) fn need_with_ancestors(&mut self, id: &StepId) -> Result<(), MissingRecord> {
        if self.known.steps.is_known(id)
            && id.parent().is_none_or(|parent| self.known.steps.is_known(&parent))
        {
            return Ok(());
        }
        let mut next = Some(id.clone());
        for _ in 0..ANCESTORS_AHEAD {
            let Some(ancestor) = next else { break };
            next = ancestor.parent();
            if !self.known.steps.is_known(&ancestor) {
                self.wants.steps.insert(ancestor);
            }
        }
        Err(MissingRecord)
    }

    pub(super) fn need_step(&mut self, id: &StepId) -> Result<(), MissingRecord> {
        need(&self.known.steps, &mut self.wants.steps, id)
    }

    pub(super) fn need_event(&mut self, id: &StepId) -> Result<(), MissingRecord> {
        need(&self.known.events, &mut self.wants.events, id)
    }

    /// The event of a step, and the task of that.
    pub(super) fn need_work(&mut self, id: &StepId) -> Result<(), MissingRecord> {
        all([self.need_event(id), need(&self.known.tasks, &mut self.wants.tasks, id)])
    }

    pub(super) fn need_values(&mut self, values: &[ValueRef]) -> Result<(), MissingRecord> {
        all(values.iter().map(|held| self.need_value(held)))
    }

    fn need_value(&mut self, held: &ValueRef) -> Result<(), MissingRecord> {
        match held {
            ValueRef::Blob(blob) if self.known.value(held).is_none() => {
                self.wants.blobs.insert(blob.hash.clone());
                Err(MissingRecord)
            }
            ValueRef::Inline(_) | ValueRef::Blob(_) => Ok(()),
        }
    }
}

/// Whether all of these are at hand. A missing one does not end the questions, so that one read brings all of them.
pub(super) fn all(needs: impl IntoIterator<Item = Result<(), MissingRecord>>) -> Result<(), MissingRecord> {
    needs.into_iter().fold(Ok(()), Result::and)
}

fn need<T: Clone>(
    known: &RecordCache<T>,
    wanted: &mut FxHashSet<StepId>,
    id: &StepId,
) -> Result<(), MissingRecord> {
    if known.is_known(id) {
        return Ok(());
    }
    wanted.insert(id.clone());
    Err(MissingRecord)
}

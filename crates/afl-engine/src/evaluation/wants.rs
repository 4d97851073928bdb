//! The records an evaluation asks for.

use rustc_hash::FxHashSet;

use super::Evaluation;
use crate::attribute::{BlobHash, Held};
use crate::id::StepId;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wants {
    pub steps: FxHashSet<StepId>,
    pub events: FxHashSet<StepId>,
    pub tasks: FxHashSet<StepId>,
    pub blobs: FxHashSet<BlobHash>,
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
        if self.known.steps.is_known(id) {
            return Ok(());
        }
        self.wants.steps.insert(id.clone());
        Err(MissingRecord)
    }

    pub(super) fn need_event(&mut self, id: &StepId) -> Result<(), MissingRecord> {
        if self.known.events.is_known(id) {
            return Ok(());
        }
        self.wants.events.insert(id.clone());
        Err(MissingRecord)
    }

    pub(super) fn need_task(&mut self, id: &StepId) -> Result<(), MissingRecord> {
        if self.known.tasks.is_known(id) {
            return Ok(());
        }
        self.wants.tasks.insert(id.clone());
        Err(MissingRecord)
    }

    pub(super) fn need_value(&mut self, held: &Held) -> Result<(), MissingRecord> {
        match held {
            Held::Blob(blob) if self.known.value(held).is_none() => {
                self.wants.blobs.insert(blob.hash.clone());
                Err(MissingRecord)
            }
            Held::Inline(_) | Held::Blob(_) => Ok(()),
        }
    }
}

/// Whether all of these were at hand. They have all been asked for before, so that one read brings all of them.
pub(super) fn all(needs: impl IntoIterator<Item = Result<(), MissingRecord>>) -> Result<(), MissingRecord> {
    needs.into_iter().collect()
}

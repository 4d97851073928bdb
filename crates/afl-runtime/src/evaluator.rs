//! An evaluation with the epoch of the store that it relies on.

use std::ops::{Deref, DerefMut};

use afl_engine::evaluation::Evaluation;
use afl_store::backend::Epoch;

/// What an evaluation has read is true while nobody else writes its run and the store loses nothing. The versions of its
/// commits tell of others; the epoch tells of what was lost, after which the same versions may hold something else.
#[derive(Debug)]
pub(crate) struct Evaluator {
    evaluation: Evaluation,
    pub(crate) epoch: Epoch,
}

impl Evaluator {
    /// The epoch is that of a time before the evaluation read anything.
    pub(crate) fn new(evaluation: Evaluation, epoch: Epoch) -> Self {
        Self { evaluation, epoch }
    }

    /// Which of two evaluators of one run knows more.
    pub(crate) fn newness(&self) -> (Epoch, Option<u64>) {
        (self.epoch, self.evaluation.run_version())
    }
}

impl Deref for Evaluator {
    type Target = Evaluation;

    fn deref(&self) -> &Evaluation {
        &self.evaluation
    }
}

impl DerefMut for Evaluator {
    fn deref_mut(&mut self) -> &mut Evaluation {
        &mut self.evaluation
    }
}

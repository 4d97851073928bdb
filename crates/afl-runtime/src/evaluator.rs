//! An evaluation with the era of the store that it relies on.

use std::ops::{Deref, DerefMut};

use afl_engine::evaluation::Evaluation;
use afl_store::backend::Era;

/// What an evaluation has read is true while nobody else writes its run and the store loses nothing. The versions of its
/// commits tell of others; the era tells of what was lost, after which the same versions may hold something else.
#[derive(Debug)]
pub(crate) struct Evaluator {
    evaluation: Evaluation,
    pub(crate) era: Era,
}

impl Evaluator {
    /// The era is that of a time before the evaluation read anything.
    pub(crate) fn new(evaluation: Evaluation, era: Era) -> Self {
        Self { evaluation, era }
    }

    /// Which of two evaluators of one run knows more.
    pub(crate) fn newness(&self) -> (Era, Option<u64>) {
        (self.era, self.evaluation.run_version())
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

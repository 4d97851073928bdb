//! Numbers from a seed, the same in every release: a seed that found a mistake stays a test for ever.

use crate::entropy::{STEP, mixed};

/// `SplitMix64`, written out because the random crates may change their sequences between versions.
#[derive(Clone, Debug)]
pub struct SeededRng(u64);

impl SeededRng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mixed(self.0)
    }

    /// From zero up to, not including, `end`.
    pub fn below(&mut self, end: usize) -> usize {
        assert!(end > 0, "nothing is below zero");
        (self.number() % end as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

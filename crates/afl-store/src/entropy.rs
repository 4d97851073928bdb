//! Where secrets and ids come from: the machine, or a seed so that a simulation can be repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Debug)]
pub enum Entropy {
    /// Unguessable.
    System,
    /// The same in every run with the same seed; its clones draw from the same sequence.
    Seeded(Arc<AtomicU64>),
}

impl Entropy {
    pub fn seeded(seed: u64) -> Self {
        Self::Seeded(Arc::new(AtomicU64::new(seed)))
    }

    pub fn number(&self) -> u64 {
        match self {
            Self::System => getrandom::u64().expect("the system gives random numbers"),
            Self::Seeded(state) => mixed(state.fetch_add(STEP, Ordering::SeqCst).wrapping_add(STEP)),
        }
    }

    /// 128 bits that no other process can guess.
    pub fn secret(&self) -> String {
        format!("{:016x}{:016x}", self.number(), self.number())
    }
}

/// The state of `SplitMix64` grows by this for each number.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number for a state of `SplitMix64`.
pub(crate) fn mixed(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

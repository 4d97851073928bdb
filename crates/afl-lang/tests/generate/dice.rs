//! Chance, from a seed or from bytes that a fuzzer chooses.

/// A source of choices. The same seed or the same bytes give the same choices.
pub(crate) struct Dice<'b> {
    source: Source<'b>,
}

enum Source<'b> {
    /// The state of `SplitMix64`.
    Seed(u64),
    /// When the bytes are used up every choice is the first one, so whatever is generated comes to an end.
    Bytes(&'b [u8]),
}

impl<'b> Dice<'b> {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self { source: Source::Seed(seed) }
    }

    pub(crate) fn from_bytes(bytes: &'b [u8]) -> Self {
        Self { source: Source::Bytes(bytes) }
    }

    /// A number below `count`, which is not zero.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        assert!(count > 0, "there is nothing to choose from");
        match &mut self.source {
            Source::Seed(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = *state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                (mixed ^ (mixed >> 31)) as usize % count
            }
            Source::Bytes(bytes) => {
                // As few bytes as the choice needs, so that a fuzzer's byte is a decision.
                let needed = if count <= 1 << 8 { 1 } else { 4 };
                let (taken, rest) = bytes.split_at(bytes.len().min(needed));
                *bytes = rest;
                taken.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)) % count
            }
        }
    }

    /// True in so many of a hundred cases; never when the bytes are used up.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) >= 100 - percent
    }

    pub(crate) fn pick<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len())]
    }

    /// Puts things into another order.
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for at in (1..things.len()).rev() {
            let other = at - self.below(at + 1);
            things.swap(at, other);
        }
    }
}

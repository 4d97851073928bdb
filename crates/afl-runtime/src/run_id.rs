//! The ids of runs: short enough to type, ordered by time, not to be guessed.

use afl_engine::id::RunId;
use afl_engine::time::Millis;
use afl_store::entropy::Entropy;

/// Crockford's base 32: no letter that looks like a digit.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Enough seconds for a thousand years. Runs of one time stand together in the store, which saves it work.
const TIME_DIGITS: u32 = 7;
const RANDOM_DIGITS: u32 = 12;

pub(crate) fn fresh(now: Millis, entropy: &Entropy) -> RunId {
    let seconds = (now.0 / 1_000).unsigned_abs();
    let mut id = String::with_capacity((TIME_DIGITS + RANDOM_DIGITS) as usize);
    push(&mut id, seconds, TIME_DIGITS);
    push(&mut id, entropy.number(), RANDOM_DIGITS);
    RunId(id.into())
}

fn push(id: &mut String, number: u64, digits: u32) {
    for digit in (0..digits).rev() {
        id.push(char::from(DIGITS[(number >> (5 * digit)) as usize & 31]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_distinct_and_ordered_by_time() {
        let entropy = Entropy::seeded(1);
        let ids: Vec<RunId> =
            (0..50).map(|day| fresh(Millis(1_700_000_000_000 + day * 86_400_000), &entropy)).collect();
        assert!(ids.is_sorted());
        assert_eq!(ids[0].0.len(), 19);
        assert_ne!(fresh(Millis(0), &entropy), fresh(Millis(0), &entropy));
    }
}

//! Moments and spans, which the caller always provides, and the waits between tries.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since the epoch by the store's clock, or a span of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// The moment `span` later; the end of time when there is none.
    #[must_use]
    pub const fn plus(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The span from `earlier` to here; negative when the clock went back.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// A span for a timer; a negative one is over already.
    pub fn as_duration(self) -> Duration {
        Duration::from_millis(u64::try_from(self.0).unwrap_or(0))
    }
}

impl From<Duration> for Millis {
    fn from(span: Duration) -> Self {
        Self(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Waits between tries: each is longer than the one before by a factor, up to a limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Backoff {
    pub first: Millis,
    pub factor: f64,
    pub most: Millis,
}

impl Backoff {
    pub const fn doubling(first: Millis, most: Millis) -> Self {
        Self { first, factor: 2.0, most }
    }

    /// How long to wait after so many failures in a row.
    pub fn after(&self, failures: u32) -> Millis {
        let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let wait = to_double(self.first) * self.factor.powi(exponent);
        Millis(wait.clamp(0.0, to_double(self.most).max(0.0)) as i64)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a wait of millennia may be off by a millisecond")]
fn to_double(span: Millis) -> f64 {
    span.0 as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_their_limit_and_never_overflow() {
        let backoff = Backoff::doubling(Millis(100), Millis(1_000));
        let waits = [0, 1, 2, 3, 4, 5, u32::MAX].map(|failures| backoff.after(failures).0);
        assert_eq!(waits, [100, 100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(Backoff { factor: 0.5, ..backoff }.after(3), Millis(25));
        assert_eq!(Backoff { most: Millis(i64::MAX), ..backoff }.after(u32::MAX), Millis(i64::MAX));
    }
}

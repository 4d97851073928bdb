//! The server's time, computed here from a recent answer of the server.
//!
//! Problem: all processes must agree on the time, whatever their own clocks say, and a round trip for each look is slow.
//!
//! Approach: the server's answer and the monotonic time of its arrival form an anchor. For five seconds the time is the
//! anchor plus the monotonic time since. A new answer moves the anchor only as far as the round trip leaves no doubt.
//!
//! Rejected: the wall clock of this machine. Machines disagree, and an operator can set a clock.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use afl_store::Millis;

use super::failure::PostgresFailure;
use super::server::{Connections, apart};

/// Clocks drift by less than a millisecond in this time, and a step of the server's clock is followed this soon.
const FRESH: Duration = Duration::from_secs(5);

const ASK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

#[derive(Debug, Default)]
pub(super) struct ServerClock {
    /// Protects the last anchor, and is held to copy or to replace it.
    #[expect(clippy::disallowed_types, reason = "every call reads the clock; a channel would make it wait")]
    anchor: std::sync::Mutex<Option<ClockAnchor>>,
}

/// The server's time at a moment of this process's monotonic clock.
#[derive(Clone, Copy, Debug)]
struct ClockAnchor {
    server: Millis,
    here: Instant,
}

impl ServerClock {
    pub(super) async fn now(&self, connections: &Arc<Connections>) -> Result<Millis, PostgresFailure> {
        let anchor = *self.lock();
        if let Some(anchor) = anchor
            && anchor.here.elapsed() < FRESH
        {
            return Ok(anchor.time(Instant::now()));
        }
        let asked = Instant::now();
        let connections = connections.clone();
        let rows = apart(async move { connections.query(ASK, &[]).await }).await?;
        let answered = Instant::now();
        let answer = ClockAnchor { server: Millis(rows[0].get(0)), here: answered };
        let anchor = anchor.map_or(answer, |known| known.corrected(answer, answered - asked));
        *self.lock() = Some(anchor);
        Ok(anchor.time(Instant::now()))
    }

    fn lock(&self) -> MutexGuard<'_, Option<ClockAnchor>> {
        self.anchor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClockAnchor {
    fn time(&self, at: Instant) -> Millis {
        let since = at.saturating_duration_since(self.here).as_millis();
        self.server.plus(Millis(i64::try_from(since).unwrap_or(i64::MAX)))
    }

    /// The server read its clock at some moment between question and answer. Within that doubt the time of before stands,
    /// so that a slow answer does not turn time back.
    fn corrected(self, answer: Self, doubt: Duration) -> Self {
        let latest = answer.server.plus(Millis::from(doubt));
        Self { server: self.time(answer.here).clamp(answer.server, latest), here: answer.here }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corrected(known_ms: i64, answer_ms: i64, doubt_ms: u64) -> i64 {
        let here = Instant::now();
        let at = |ms| ClockAnchor { server: Millis(ms), here };
        at(known_ms).corrected(at(answer_ms), Duration::from_millis(doubt_ms)).server.0
    }

    #[test]
    fn a_slow_answer_does_not_turn_time_back_but_a_clock_that_was_set_does() {
        assert_eq!(corrected(10_000, 10_005, 3), 10_005);
        assert_eq!(corrected(10_000, 9_990, 20), 10_000);
        assert_eq!(corrected(10_000, 9_990, 2), 9_992);
        assert_eq!(corrected(10_000_000, 10_000, 3), 10_003);
        assert_eq!(corrected(10_000, 10_000_000, 3), 10_000_000);
    }
}

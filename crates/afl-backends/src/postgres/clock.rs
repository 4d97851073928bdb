//! The server's time, computed here from a recent answer of the server.
//!
//! Problem: all processes must agree on the time, whatever their own clocks say, and a round trip for each look is slow.
//!
//! Approach: the server's answer and the monotonic time of its arrival form an anchor. For five seconds the time is the
//! anchor plus the monotonic time since. A new answer moves the anchor only as far as the round trip leaves no doubt.
//!
//! An answer ahead of the monotonic time shows that the server's clock was set, or that a server with another clock took
//! over. This process follows it and keeps the jump: leases from before it are judged by the time since then.
//!
//! Rejected: the wall clock of this machine. Machines disagree, and an operator can set a clock.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use afl_store::Millis;
use afl_store::backend::{ClockJump, ClockStatus};
use afl_store::clock::Clock;

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

/// A smaller step is harmless to every lease, and clocks drift apart by less than a thousandth.
const LEAST_JUMP: Duration = Duration::from_secs(1);
const MOST_DRIFT: u32 = 1_000;

/// The server's time at a moment of this process's monotonic clock.
#[derive(Clone, Copy, Debug)]
struct ClockAnchor {
    server: Millis,
    here: Instant,
    /// The last jump ahead since the process began.
    jump: Option<ClockJump>,
}

impl ServerClock {
    pub(super) async fn now(&self, connections: &Arc<Connections>) -> Result<Millis, PostgresFailure> {
        Ok(self.anchor(connections).await?.time(Instant::now()))
    }

    /// The wall clock is the server's.
    pub(super) async fn status(
        &self,
        connections: &Arc<Connections>,
    ) -> Result<ClockStatus, PostgresFailure> {
        let anchor = self.anchor(connections).await?;
        let now = anchor.time(Instant::now());
        Ok(ClockStatus { now, wall: now, machine: Clock::System.now(), jump: anchor.jump })
    }

    async fn anchor(&self, connections: &Arc<Connections>) -> Result<ClockAnchor, PostgresFailure> {
        let anchor = *self.lock();
        if let Some(anchor) = anchor
            && anchor.here.elapsed() < FRESH
        {
            return Ok(anchor);
        }
        let asked = Instant::now();
        let connections = connections.clone();
        let rows = apart(async move { connections.query(ASK, &[]).await }).await?;
        let answered = Instant::now();
        let answer = ClockAnchor { server: Millis(rows[0].get(0)), here: answered, jump: None };
        let anchor = anchor.map_or(answer, |known| known.corrected(answer, answered - asked));
        *self.lock() = Some(anchor);
        Ok(anchor)
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
        let expected = self.time(answer.here);
        let elapsed = answer.here.saturating_duration_since(self.here);
        let by = answer.server.since(expected);
        let is_jump = by > Millis::from(LEAST_JUMP + elapsed / MOST_DRIFT);
        let jump = if is_jump { Some(ClockJump { at: answer.server, by }) } else { self.jump };
        Self { server: expected.clamp(answer.server, latest), here: answer.here, jump }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corrected(known_ms: i64, answer_ms: i64, doubt_ms: u64) -> i64 {
        anchor(known_ms, answer_ms, doubt_ms).server.0
    }

    fn anchor(known_ms: i64, answer_ms: i64, doubt_ms: u64) -> ClockAnchor {
        let here = Instant::now();
        let at = |ms| ClockAnchor { server: Millis(ms), here, jump: None };
        at(known_ms).corrected(at(answer_ms), Duration::from_millis(doubt_ms))
    }

    #[test]
    fn g10_a_clock_that_was_set_ahead_is_a_jump_and_a_slow_answer_or_a_clock_set_back_is_none() {
        let jump = Some(ClockJump { at: Millis(3_610_000), by: Millis(3_600_000) });
        assert_eq!(anchor(10_000, 3_610_000, 3).jump, jump);
        for (answer_ms, doubt_ms) in [(10_000, 3), (10_900, 3), (9_000, 5_000), (-3_590_000, 3)] {
            assert_eq!(anchor(10_000, answer_ms, doubt_ms).jump, None, "{answer_ms}");
        }
        // Later answers keep it.
        let known = anchor(10_000, 3_610_000, 3);
        assert_eq!(known.corrected(ClockAnchor { jump: None, ..known }, Duration::ZERO).jump, jump);
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

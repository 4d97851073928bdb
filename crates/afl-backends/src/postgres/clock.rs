//! The server's clock, told without asking the server each time.

use std::time::{Duration, Instant};

use afl_store::Millis;
use tokio::sync::watch;

use super::failure::PostgresFailure;
use super::server::Connections;

/// Clocks drift by less than a millisecond in this time, and a step of the server's clock is followed this soon.
const FRESH: Duration = Duration::from_secs(5);

const ASK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

#[derive(Debug)]
pub(super) struct ServerClock {
    anchor: watch::Sender<Option<ClockAnchor>>,
}

/// The server's time at a moment of this process, by the clock that nobody can set.
#[derive(Clone, Copy, Debug)]
struct ClockAnchor {
    server: Millis,
    here: Instant,
}

impl ServerClock {
    pub(super) fn new() -> Self {
        Self { anchor: watch::Sender::new(None) }
    }

    pub(super) async fn now(&self, connections: &Connections) -> Result<Millis, PostgresFailure> {
        let anchor = *self.anchor.borrow();
        if let Some(anchor) = anchor
            && anchor.here.elapsed() < FRESH
        {
            return Ok(anchor.time(Instant::now()));
        }
        let asked = Instant::now();
        let rows = connections.query(ASK, &[]).await?;
        let answered = Instant::now();
        let answer = ClockAnchor { server: Millis(rows[0].get(0)), here: answered };
        let anchor = anchor.map_or(answer, |known| known.corrected(answer, answered - asked));
        self.anchor.send_replace(Some(anchor));
        Ok(anchor.time(Instant::now()))
    }
}

impl ClockAnchor {
    fn time(&self, at: Instant) -> Millis {
        let since = at.saturating_duration_since(self.here).as_millis();
        self.server.plus(Millis(i64::try_from(since).unwrap_or(i64::MAX)))
    }

    /// The server looked at its clock somewhere between question and answer. Within that doubt we stay with what we told
    /// before, so that time does not go back with a slow answer.
    fn corrected(self, answer: Self, doubt: Duration) -> Self {
        let latest = answer.server.plus(Millis(i64::try_from(doubt.as_millis()).unwrap_or(i64::MAX)));
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

//! Points and spans of time as people type them.

use std::time::Duration;

use afl_engine::time::Millis;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, Zoned};

use crate::failure::Failure;

/// A span before now, such as `30d` or `2h 5m`, a date, or a timestamp.
pub(crate) fn past(text: &str) -> Result<Millis, Failure> {
    let wrong = || Failure::BadTime { text: text.to_owned() };
    if let Ok(span) = text.parse::<Span>() {
        let before = Zoned::now().checked_sub(span.abs()).map_err(|_| wrong())?;
        return Ok(Millis(before.timestamp().as_millisecond()));
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(Millis(at.as_millisecond()));
    }
    let local = text.parse::<DateTime>().map_err(|_| wrong())?;
    let at = local.to_zoned(TimeZone::system()).map_err(|_| wrong())?;
    Ok(Millis(at.timestamp().as_millisecond()))
}

/// A span such as `30s`, `5m` or `0s`.
pub(crate) fn wait(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no span of time: write it as 30s, 5m or 2h");
    let span = text.parse::<SignedDuration>().map_err(|_| wrong())?;
    Duration::try_from(span).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_dates_and_timestamps_are_times() {
        let now = Timestamp::now().as_millisecond();
        let hour = past("1h").unwrap().0 - (now - 3_600_000);
        assert!((0..60_000).contains(&hour), "{hour}");
        assert!(past("30d").unwrap() < past("2 weeks").unwrap());
        assert_eq!(past("2026-01-31T12:00:00Z").unwrap(), Millis(1_769_860_800_000));
        assert!(past("2026-01-31").unwrap() < past("2026-02-01 08:30").unwrap());
        assert!(past("yesterday").is_err());
    }

    #[test]
    fn a_wait_is_a_span_that_is_not_negative() {
        assert_eq!(["0s", "90s", "1m 30s"].map(|text| wait(text).unwrap().as_secs()), [0, 90, 90]);
        assert!(["", "soon", "-1s", "5"].iter().all(|text| wait(text).is_err()));
    }
}

//! Points in time as people type them.

use afl_engine::time::Millis;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

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
}

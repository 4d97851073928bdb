//! Moments as text: RFC 3339, in milliseconds since the epoch. Times before the year 0 have no text.
//!
//! The pure crates use no crate of dates, because those read the clock and the time zones of the machine.

/// The moment that a text like `2026-11-18T09:30:00+01:00` names; `None` when the text is not of RFC 3339. Digits below
/// a millisecond are dropped, and a leap second is the second after it.
pub fn parse(text: &str) -> Option<i64> {
    let (date, time) = (text.get(..10)?, text.get(11..)?);
    if !matches!(text.as_bytes()[10], b'T' | b't' | b' ') {
        return None;
    }
    let [year, month, day] = fields(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = fields(time.get(..8)?, ':', [2, 2, 2])?;
    let is_date = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (millis, zone) = fraction(&time[8..])?;
    let seconds = days_since_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some((seconds - offset(zone)?) * 1_000 + millis)
}

/// The same in UTC, to the millisecond.
pub fn format(millis: i64) -> String {
    let (days, rest) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    let (year, month, day) = date_of(days);
    let (hour, minute, second, millis) =
        (rest / 3_600_000, rest / 60_000 % 60, rest / 1_000 % 60, rest % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

fn fields(text: &str, separator: char, widths: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(separator);
    let fields = widths.map(|width| parts.next().filter(|part| part.len() == width).and_then(number));
    match (fields, parts.next()) {
        ([Some(first), Some(second), Some(third)], None) => Some([first, second, third]),
        _ => None,
    }
}

fn number(digits: &str) -> Option<i64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// The milliseconds after the seconds, and the text behind them.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(text) = text.strip_prefix('.') else { return Some((0, text)) };
    let (digits, zone) = text.split_at(text.find(|it: char| !it.is_ascii_digit())?);
    let thousandths: String = digits.chars().chain("00".chars()).take(3).collect();
    Some((number(digits).and(number(&thousandths))?, zone))
}

/// Seconds east of UTC.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let (hours, minutes) = match (hours.len(), minutes.len()) {
        (2, 2) => (number(hours)?, number(minutes)?),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

fn days_in(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Counts years from March, so that the leap day is the last of its year (Hinnant, "chrono-compatible low-level date
/// algorithms"). 719,468 days lie between March 1 of the year 0 and the epoch.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_moment_is_read_with_its_zone_and_its_fraction() {
        let same = [
            "2026-11-18T09:30:00Z",
            "2026-11-18t09:30:00.000z",
            "2026-11-18 10:30:00+01:00",
            "2026-11-18T00:00:00.0-09:30",
        ];
        for text in same {
            assert_eq!(parse(text), Some(1_794_994_200_000), "{text}");
        }
        assert_eq!(parse("1970-01-01T00:00:00.12Z"), Some(120));
        assert_eq!(parse("1970-01-01T00:00:00.123999Z"), Some(123));
        assert_eq!(parse("1969-12-31T23:59:59.999Z"), Some(-1));
        assert_eq!(parse("2024-02-29T00:00:00Z").map(format).as_deref(), Some("2024-02-29T00:00:00.000Z"));
    }

    #[test]
    fn other_texts_are_no_moment() {
        let wrong = [
            "",
            "tomorrow",
            "2026-11-18",
            "2026-11-18T09:30:00",
            "2026-11-18T09:30Z",
            "2026-11-18T24:00:00Z",
            "2026-13-01T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2026-11-18T09:30:00+1:00",
            "2026-11-18T09:30:00.Z",
            "2026-11-18T09:30:00Zulu",
            "+026-11-18T09:30:00Z",
            "2026-11-18T09:30:0éZ",
            "2026-11-1é09:30:00Z",
        ];
        for text in wrong {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_written_moment_is_read_again(millis in -62_135_596_800_000_i64..253_402_300_800_000) {
            prop_assert_eq!(parse(&format(millis)), Some(millis));
        }

        #[test]
        fn no_text_is_too_strange(text in "\\PC{0,40}|[0-9T:Z+. -]{0,40}") {
            parse(&text);
        }
    }
}

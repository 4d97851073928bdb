//! Values, times and states as people read them.

use afl_engine::attribute::ValueRef;
use afl_engine::time::Millis;
use afl_engine::value::Value;
pub(crate) use afl_lang::program::cut;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// How much of a value stands in a line.
const VALUE_CHARS: usize = 60;

/// A value as JSON, cut when it is long.
pub(crate) fn value(value: &Value) -> String {
    cut(&value.to_string(), VALUE_CHARS)
}

pub(crate) fn held(held: &ValueRef) -> String {
    match held {
        ValueRef::Inline(inline) => value(inline),
        ValueRef::Blob(blob) => format!("<{}>", bytes(blob.bytes)),
    }
}

/// `name=value name=value`; a value that is no map stands alone.
pub(crate) fn pairs(values: &Value) -> String {
    let Value::Object(entries) = values else { return values.to_string() };
    let pairs: Vec<String> = entries.iter().map(|(name, value)| format!("{name}={value}")).collect();
    inert(&pairs.join(" "))
}

/// A stranger's text that cannot steer the terminal: each control character is shown as its code.
pub(crate) fn inert(text: &str) -> String {
    let steers = |character: char| match character {
        '\n' | '\t' => false,
        // Marks that turn the direction of writing.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        character => character.is_control(),
    };
    let show = |character: char| {
        if steers(character) { character.escape_unicode().to_string() } else { character.to_string() }
    };
    text.chars().map(show).collect()
}

/// The first line of a text of a stranger, for where one line has room.
pub(crate) fn headline(text: &str) -> String {
    match text.split_once('\n') {
        Some((first, _)) => format!("{} …", inert(first.trim_end())),
        None => inert(text),
    }
}

/// A text of a stranger behind some words of ours; its further lines are set off from what follows.
pub(crate) fn indented(text: &str) -> String {
    inert(text).replace('\n', "\n  ")
}

/// How long something took. `None` for a step that began and ended in one evaluation, at the same time of the store's
/// clock.
pub(crate) fn took(from: Millis, to: Option<Millis>) -> Option<String> {
    let took = to?.since(from);
    (took.0 > 0).then(|| span(took))
}

#[expect(clippy::cast_precision_loss, reason = "sizes are rounded anyway")]
pub(crate) fn bytes(count: usize) -> String {
    match count {
        0..1_024 => format!("{count} bytes"),
        1_024..1_048_576 => format!("{:.1} KiB", count as f64 / 1_024.0),
        _ => format!("{:.1} MiB", count as f64 / 1_048_576.0),
    }
}

/// A point in time, by the store's clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Moment(pub(crate) Millis);

impl Moment {
    pub(crate) fn now() -> Self {
        Self(Millis(Timestamp::now().as_millisecond()))
    }

    /// `2025-11-16 02:08:19`, in the zone of the user.
    pub(crate) fn local(self) -> String {
        match Timestamp::from_millisecond(self.0.0) {
            Ok(at) => at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
            Err(_) => self.0.0.to_string(),
        }
    }

    /// `3 min ago`, `in 20 s`, `now`.
    pub(crate) fn from(self, now: Self) -> String {
        let away = self.0.since(now.0).0;
        match away {
            -999..=0 => "now".into(),
            1.. => format!("in {}", span(Millis(away))),
            _ => format!("{} ago", span(Millis(-away))),
        }
    }
}

/// A field of an object for people; `times` names the fields that are times.
pub(crate) fn field(name: &str, value: &Value, times: &[&str]) -> String {
    let time = value.as_i64().filter(|_| times.contains(&name));
    match (time, value) {
        (Some(at), _) => Moment(Millis(at)).local(),
        (None, Value::String(text)) => inert(text),
        (None, other) => inert(&other.to_string()),
    }
}

/// The two largest units of a span: `2 h 5 min`, `3.2 s`, `40 ms`.
pub(crate) fn span(span: Millis) -> String {
    let millis = span.0.max(0);
    let seconds = millis / 1_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let two = |large: i64, unit: &str, small: i64, part: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {part}"),
    };
    match () {
        () if millis < 1_000 => format!("{millis} ms"),
        () if seconds < 10 => format!("{seconds}.{} s", millis % 1_000 / 100),
        () if minutes < 1 => format!("{seconds} s"),
        () if hours < 1 => two(minutes, "min", seconds % 60, "s"),
        () if days < 1 => two(hours, "h", minutes % 60, "min"),
        () => two(days, "d", hours % 24, "h"),
    }
}

/// Columns with two spaces between them, the last one ragged.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    use comfy_table::{Table, presets};
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header.to_vec());
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_the_units_that_fit_it() {
        for (millis, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_500, "1.5 s"),
            (42_000, "42 s"),
            (120_000, "2 min"),
            (125_000, "2 min 5 s"),
            (7_500_000, "2 h 5 min"),
            (180_000_000, "2 d 2 h"),
        ] {
            assert_eq!(span(Millis(millis)), text);
        }
        let at = |millis| Moment(Millis(millis));
        assert_eq!(at(0).from(at(61_000)), "1 min 1 s ago");
        assert_eq!(at(2_000).from(at(0)), "in 2.0 s");
        assert_eq!(at(0).from(at(10)), "now");
    }

    #[test]
    fn a_text_of_a_stranger_cannot_steer_the_terminal() {
        assert_eq!(inert("gone\x1b[2J\u{9b}2J\u{202e}!\nnext"), "gone\\u{1b}[2J\\u{9b}2J\\u{202e}!\nnext");
    }

    #[test]
    fn a_headline_has_one_line() {
        assert_eq!(headline("it broke\r\nTraceback"), "it broke …");
        assert_eq!(headline("it broke"), "it broke");
        assert_eq!(indented("it broke\nTraceback"), "it broke\n  Traceback");
    }

    #[test]
    fn a_duration_of_zero_is_not_shown() {
        assert_eq!(took(Millis(5), Some(Millis(5))), None);
        assert_eq!(took(Millis(5), None), None);
        assert_eq!(took(Millis(5), Some(Millis(7))).as_deref(), Some("2 ms"));
    }

    #[test]
    fn a_long_value_is_cut_between_letters() {
        assert_eq!(cut("äöü", 2), "äö…");
        assert_eq!(cut("äöü", 3), "äöü");
    }
}

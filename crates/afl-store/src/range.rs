//! Where the texts with a prefix end, in the order of bytes.

/// The least text above all that begin with `prefix`; none when there is no such text.
///
/// The order of characters is the order of their UTF-8, so counting the last character up is enough.
pub fn end_of_prefix(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        if let Some(next) = next_char(last) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

fn next_char(character: char) -> Option<char> {
    (character..=char::MAX).nth(1)
}

#[cfg(test)]
mod tests {
    use super::end_of_prefix;

    #[test]
    fn the_end_is_above_all_that_begin_with_the_prefix() {
        for prefix in ["a", "run/", "a\u{10ffff}", "é", "\u{d7ff}", "\u{7f}"] {
            let end = end_of_prefix(prefix).expect("there is a greater character");
            assert!(end.as_str() > prefix, "{prefix:?} {end:?}");
            assert!(end > format!("{prefix}\u{10ffff}\u{10ffff}z"), "{prefix:?} {end:?}");
            assert!(!end.starts_with(prefix), "{prefix:?} {end:?}");
        }
        assert_eq!(end_of_prefix("ab"), Some("ac".to_owned()));
        assert_eq!(end_of_prefix(""), None);
        assert_eq!(end_of_prefix("\u{10ffff}"), None);
    }
}

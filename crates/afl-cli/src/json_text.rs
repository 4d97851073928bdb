//! Reads JSON that people and their editors wrote.

use serde::de::DeserializeOwned;

#[derive(Debug, thiserror::Error)]
pub(crate) enum NotJson {
    #[error("its lists and objects nest too deep")]
    TooDeep,
    #[error("it is not JSON ({0})")]
    Wrong(serde_json::Error),
}

/// Some editors put this in front of every text.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// The only thing by which the parser lets this mistake be known from others.
const TOO_DEEP: &str = "recursion limit exceeded";

pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, NotJson> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    serde_json::from_str(text).map_err(|error| {
        if error.to_string().starts_with(TOO_DEEP) { NotJson::TooDeep } else { NotJson::Wrong(error) }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_it() {
        assert_eq!(parse::<Value>("\u{feff}[1]").unwrap(), json!([1]));
    }

    #[test]
    fn deep_nesting_is_distinguished_from_invalid_json() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert!(matches!(parse::<Value>(&deep), Err(NotJson::TooDeep)));
        assert!(matches!(parse::<Value>("[1"), Err(NotJson::Wrong(_))));
    }
}

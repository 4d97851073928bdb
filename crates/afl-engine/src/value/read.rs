//! Reads JSON from outside: of handlers, callers and files.
//!
//! Problem: a parser of JSON reads an integer beyond 64 bits as the nearest double and keeps the last of two equal
//! keys. Both change a value silently, so both are refused by their path.
//!
//! Approach: the parser hands out such an integer as a large double. Only a text with a large double is scanned for
//! its numbers, and then read once more to learn the path. Other texts are read once. A path is put together while an
//! error returns from the inner to the outer value, so a text without an error pays nothing for it.
//!
//! Rejected: numbers of arbitrary precision in the parser. That setting applies to the whole program and makes every
//! number a text.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Map, Value};

/// Why a text from outside is no value.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    #[error("it is not JSON ({0})")]
    Syntax(serde_json::Error),
    #[error("its lists and objects nest too deep")]
    TooDeep,
    #[error("`{path}` is an integer beyond 64 bits: write it as text")]
    BeyondLong { path: String },
    #[error("`{path}` is given twice")]
    RepeatedKey { path: String },
}

/// The only sign by which the parser distinguishes this error from others.
const TOO_DEEP: &str = "recursion limit exceeded";

/// Integers have 64 bits, signed or not. The smallest double that can stand for a larger one.
const BEYOND: f64 = 9_223_372_036_854_775_808.0;

/// The value of a text. `name` is what a path to one of its parts begins with, such as `result`.
pub fn read_json(text: &[u8], name: &str) -> Result<Value, JsonError> {
    let mut read = JsonRead::default();
    let value = read.value(text, name)?;
    let refused = if read.has_large_double { long_integer(text) } else { None };
    if refused.is_some() {
        return JsonRead { refused, ..JsonRead::default() }.value(text, name);
    }
    Ok(value)
}

#[derive(Default)]
struct JsonRead {
    /// How many numbers were read.
    numbers: usize,
    has_large_double: bool,
    /// The position of a number to refuse.
    refused: Option<usize>,
    problem: Option<JsonProblem>,
    /// The path of the problem, the innermost segment first.
    path: Vec<String>,
}

#[derive(Clone, Copy)]
enum JsonProblem {
    BeyondLong,
    RepeatedKey,
}

impl JsonRead {
    fn value(&mut self, text: &[u8], name: &str) -> Result<Value, JsonError> {
        let mut json = Deserializer::from_slice(text);
        let read = ValueSeed(self).deserialize(&mut json).and_then(|value| json.end().map(|()| value));
        read.map_err(|error| self.error(error, name))
    }

    fn error(&mut self, error: serde_json::Error, name: &str) -> JsonError {
        let path = || {
            let segments = self.path.iter().rev().map(String::as_str);
            let path: String = std::iter::once(name).chain(segments).collect();
            path.strip_prefix('.').map_or(path.clone(), str::to_owned)
        };
        match self.problem {
            Some(JsonProblem::BeyondLong) => JsonError::BeyondLong { path: path() },
            Some(JsonProblem::RepeatedKey) => JsonError::RepeatedKey { path: path() },
            None if error.to_string().starts_with(TOO_DEEP) => JsonError::TooDeep,
            None => JsonError::Syntax(error),
        }
    }

    fn number<E: serde::de::Error>(&mut self, number: impl Into<Value>) -> Result<Value, E> {
        let at = self.numbers;
        self.numbers += 1;
        if self.refused == Some(at) {
            self.problem = Some(JsonProblem::BeyondLong);
            return Err(E::custom("an integer beyond 64 bits"));
        }
        Ok(number.into())
    }
}

struct ValueSeed<'r>(&'r mut JsonRead);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Value, E> {
        self.0.number(number)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Value, E> {
        self.0.number(number)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        self.0.has_large_double |= number.abs() >= BEYOND;
        self.0.number(number)
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        loop {
            let element = list.next_element_seed(ValueSeed(self.0));
            match element.inspect_err(|_| self.0.path.push(format!("[{}]", elements.len())))? {
                Some(element) => elements.push(element),
                None => return Ok(Value::Array(elements)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut entries = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            if entries.contains_key(&name) {
                self.0.problem = Some(JsonProblem::RepeatedKey);
                self.0.path.push(format!(".{name}"));
                return Err(A::Error::custom("a key is given twice"));
            }
            let value = object.next_value_seed(ValueSeed(self.0));
            let value = value.inspect_err(|_| self.0.path.push(format!(".{name}")))?;
            entries.insert(name, value);
        }
        Ok(Value::Object(entries))
    }
}

/// The position, among the numbers of valid JSON, of the first integer beyond 64 bits.
fn long_integer(text: &[u8]) -> Option<usize> {
    let mut rest = text;
    let mut numbers = 0;
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'"' => after_string(after),
            b'-' | b'0'..=b'9' => {
                let length = rest.iter().take_while(|byte| is_of_number(**byte)).count();
                let (number, after) = rest.split_at(length);
                if is_long_integer(number) {
                    return Some(numbers);
                }
                numbers += 1;
                after
            }
            _ => after,
        };
    }
    None
}

fn after_string(mut text: &[u8]) -> &[u8] {
    loop {
        text = match text {
            [] => return text,
            [b'"', after @ ..] => return after,
            [b'\\', _, after @ ..] | [_, after @ ..] => after,
        };
    }
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

fn is_long_integer(number: &[u8]) -> bool {
    let is_integer = number.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
    let text = std::str::from_utf8(number).expect("the bytes of a number are ASCII");
    is_integer && text.parse::<i64>().is_err() && text.parse::<u64>().is_err()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        read_json(text.as_bytes(), "result").map_err(|error| error.to_string())
    }

    #[test]
    fn a_value_is_read_as_the_parser_reads_it() {
        for text in [
            "null",
            "[]",
            "{\"a\": [true, {\"b\": \"\\u00e9 \\\" 99999999999999999999\"}], \"\": -0.0}",
            "[18446744073709551615, -9223372036854775808, 1e300, 99999999999999999999.0, -1E+25]",
        ] {
            assert_eq!(read(text), Ok(serde_json::from_str(text).unwrap()), "{text}");
        }
        assert_eq!(read(" 7 "), Ok(json!(7)));
    }

    #[test]
    fn an_integer_beyond_64_bits_is_refused_by_its_path() {
        for (text, path) in [
            ("18446744073709551616", "result"),
            ("[1e300, -9223372036854775809]", "result[1]"),
            ("{\"a\": [1, \"\\\"2\", {\"b c\": 99999999999999999999}]}", "result.a[2].b c"),
        ] {
            let message = format!("`{path}` is an integer beyond 64 bits: write it as text");
            assert_eq!(read(text), Err(message), "{text}");
        }
    }

    #[test]
    fn a_key_that_is_given_twice_is_refused_by_its_path() {
        assert_eq!(read("[{\"a\": 1, \"b\": 2, \"a\": 1}]"), Err("`result[0].a` is given twice".to_owned()));
        let error = read_json(b"{\"a\": {\"b\": 1, \"b\": 1}}", "").unwrap_err();
        assert_eq!(error.to_string(), "`a.b` is given twice");
    }

    #[test]
    fn deep_nesting_is_distinguished_from_invalid_json() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert!(matches!(read_json(deep.as_bytes(), ""), Err(JsonError::TooDeep)));
        for text in ["[1", "[1] 2", "{\"a\": 01}", "\"\\ud800\""] {
            assert!(matches!(read_json(text.as_bytes(), ""), Err(JsonError::Syntax(_))), "{text}");
        }
    }
}

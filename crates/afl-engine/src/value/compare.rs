//! When values are equal, and which comes first.

use std::cmp::Ordering;

use serde_json::Value;

use super::Number;

/// Deep, numbers by value. Values of different kinds are not equal.
pub fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Number(left), Value::Number(right)) => Number::of(left).order(Number::of(right)).is_eq(),
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| right.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => false,
    }
}

/// Numbers by value, strings by code point; nothing else has an order.
pub fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Some(Number::of(left).order(Number::of(right))),
        // The order of UTF-8 bytes is the order of code points.
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

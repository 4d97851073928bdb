//! The JSON Schema, and that it describes emitted documents.

use afl_lang::program::{Emit, json_schema};
use proptest::prelude::*;
use serde_json::Value;

use crate::{random, shop};

#[test]
fn the_schema_is_published_as_it_stands_here() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&json_schema()).expect("JSON"));
}

#[test]
fn the_schema_refuses_what_the_loader_refuses() {
    let changes = [
        ("", "type", Value::from("Module")),
        ("", "formatVersion", Value::from(2)),
        ("", "extra", Value::from(1)),
        ("/declarations/0", "fields", Value::from("none")),
        ("/declarations/1/declarations/5/body/0/steps/1", "call", Value::Null),
        ("/declarations/1/declarations/5/body/0/steps/2/condition", "operator", Value::from("=")),
    ];
    let schema = json_schema();
    let mut document = serde_json::to_value(shop()).expect("JSON");
    assert!(follows(&document, &schema, &schema));
    for (node, key, value) in changes {
        let whole = document.clone();
        document.pointer_mut(node).expect(node)[key] = value;
        assert!(!follows(&document, &schema, &schema), "{node}/{key}");
        document = whole;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn every_program_follows_the_schema(program in random::program()) {
        let json: Value = serde_json::from_slice(&program.emit(Emit::WHOLE).to_vec()).expect("JSON");
        let schema = json_schema();
        prop_assert!(follows(&json, &schema, &schema));
    }
}

/// Checks the part of JSON Schema that the schema uses. A validator from the registry agrees with it, but
/// brings sixty crates.
fn follows(value: &Value, schema: &Value, root: &Value) -> bool {
    let keywords = schema.as_object().expect("a schema is an object");
    keywords.iter().all(|(keyword, given)| match &**keyword {
        "$ref" => {
            let pointer = given.as_str().and_then(|it| it.strip_prefix('#')).expect("a local reference");
            follows(value, root.pointer(pointer).expect(pointer), root)
        }
        "oneOf" => items(given).filter(|choice| follows(value, choice, root)).count() == 1,
        "const" => value == given,
        "enum" => items(given).any(|choice| value == choice),
        "type" => match given.as_str().expect("one type") {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            other => panic!("unknown type {other}"),
        },
        "items" => items(value).all(|item| follows(item, given, root)),
        "required" => items(given).all(|key| value.get(key.as_str().expect("a key")).is_some()),
        "properties" => entries(value).all(|(key, value)| match given.get(key) {
            Some(schema) => follows(value, schema, root),
            None => schema.get("additionalProperties") != Some(&Value::Bool(false)),
        }),
        "$schema"
        | "$defs"
        | "title"
        | "description"
        | "additionalProperties"
        | "pattern"
        | "minimum"
        | "maximum" => true,
        other => panic!("unknown keyword {other}"),
    })
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

//! That the programs leave nothing out: each kind of node of a compiled program, and each part that it can have, is in
//! one of them, and each policy.

use std::collections::BTreeSet;

use afl_engine::policy::PolicyKind;
use afl_lang::program::json_schema;
use serde_json::Value;

use crate::programs::PROGRAMS;

/// Parts that do nothing when the program runs, and lists that repeat members of `declarations`.
const IDLE: &[&str] = &[
    "location",
    "doc",
    "sourceId",
    "hash",
    "provenance",
    "namespaces",
    "facets",
    "eventFacets",
    "workflows",
    "implicits",
    "schemas",
];

/// A node and a part of it.
type Parts = BTreeSet<(String, String)>;

#[test]
fn the_programs_have_every_construct() {
    let schema = json_schema();
    let nodes = schema["$defs"].as_object().expect("nodes have names");
    let parts = |(node, described): (&String, &Value)| {
        let parts = described["properties"].as_object().cloned().unwrap_or_default();
        let node = node.clone();
        parts.into_iter().map(move |(part, _)| (node.clone(), part)).collect::<Vec<_>>()
    };
    let mut missing: Parts = nodes.iter().filter(|(node, _)| *node != "Location").flat_map(parts).collect();
    missing.retain(|(_, part)| !IDLE.contains(&part.as_str()));
    assert!(missing.len() > 100, "only {} parts", missing.len());
    let mut policies: BTreeSet<&str> = PolicyKind::ALL.iter().map(|policy| policy.name()).collect();
    for program in PROGRAMS {
        let compiled = afl_runtime::compile(program.name, program.text).expect("the program compiles");
        let text = compiled.canonical();
        let json: Value = serde_json::from_slice(&text).expect("it is JSON");
        find(&json, &schema, &schema, &mut missing);
        let text = String::from_utf8_lossy(&text);
        policies.retain(|policy| !text.contains(policy));
    }
    assert_eq!((missing, policies), (Parts::new(), BTreeSet::new()));
}

/// Takes away what a node has, by the part of the schema that describes it.
fn find(json: &Value, described: &Value, schema: &Value, missing: &mut Parts) {
    let (name, described) = resolved(json, described, schema);
    match json {
        Value::Array(items) => items.iter().for_each(|item| find(item, &described["items"], schema, missing)),
        Value::Object(parts) => {
            for (part, value) in parts {
                missing.remove(&(name.to_owned(), part.clone()));
                find(value, &described["properties"][part], schema, missing);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The node that a reference or a choice stands for, with its name.
fn resolved<'s>(json: &Value, described: &'s Value, schema: &'s Value) -> (&'s str, &'s Value) {
    if let Some(choices) = described["oneOf"].as_array() {
        let choices = choices.iter().map(|choice| resolved(json, choice, schema));
        let mut fitting = choices.filter(|(_, node)| node["properties"]["type"]["const"] == json["type"]);
        return fitting.next().expect("a node is one of the choices");
    }
    let Some(reference) = described["$ref"].as_str() else { return ("", described) };
    let name = reference.rsplit('/').next().expect("a split has a last part");
    match &schema["$defs"][name] {
        choice if choice["oneOf"].is_array() => resolved(json, choice, schema),
        node => (name, node),
    }
}

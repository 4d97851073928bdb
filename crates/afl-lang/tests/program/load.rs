//! The documents that the loader refuses, and its messages (F17).

use afl_lang::limits::{MAX_EXPRESSION_HEIGHT, MAX_NESTING};
use afl_lang::program::{Emit, LoadError, load};
use serde_json::{Value, json};

use crate::{compiled, shop};

/// The shop's document after a change of one key.
fn changed((node, key, value): (&str, &str, Value)) -> Value {
    let mut document = serde_json::to_value(shop()).expect("JSON");
    document.pointer_mut(node).expect(node)[key] = value;
    document
}

fn message(document: &Value) -> String {
    load(document.to_string().as_bytes()).expect_err("it must be refused").to_string()
}

/// Like [`message`], for a document whose hash is right.
fn message_despite_hash(mut document: Value) -> String {
    match load(document.to_string().as_bytes()) {
        Err(LoadError::HashMismatch { computed, .. }) => {
            document["hash"] = json!(computed.to_string());
            message(&document)
        }
        Err(error) => error.to_string(),
        Ok(_) => panic!("it must be refused"),
    }
}

#[test]
fn invalid_json_is_refused_with_its_position() {
    let cases: [&[u8]; 6] = [
        b"",
        b"{\"type\": \"Program\",\n  oops}",
        b"{\"a\": 1} x",
        b"[1,\n\xff]",
        b"[\"\x01\"]",
        b"{\"a\":1",
    ];
    let messages = cases.map(|json| load(json).expect_err("it is not JSON").to_string());
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_document_may_not_nest_without_end() {
    let nested = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
    insta::assert_snapshot!(load(nested.as_bytes()).expect_err("it is too deep"));
}

#[test]
fn the_deepest_program_that_compiles_can_be_loaded() {
    let high = "1 + ".repeat(MAX_EXPRESSION_HEIGHT as usize - 1) + "1";
    // The namespace and its workflow's own block are two of the levels.
    let nesting = MAX_NESTING as usize - 2;
    let open = "a = W() andThen {".repeat(nesting);
    let close = "}".repeat(nesting);
    let program = compiled(&format!(
        "namespace n {{ facet W(x: Long = 0)  workflow V() andThen {{ {open} a = W(x = {high}) {close} }} }}"
    ));
    // Not `assert_eq`: its message would print both programs whole.
    assert!(load(&program.emit(Emit::WHOLE).to_vec()).unwrap() == program);
}

#[test]
fn categories_may_be_left_out() {
    let mut document = serde_json::to_value(shop()).unwrap();
    for key in ["namespaces", "facets", "eventFacets", "workflows", "implicits", "schemas"] {
        document.as_object_mut().unwrap().remove(key);
        document["declarations"][1].as_object_mut().unwrap().remove(key);
    }
    assert_eq!(load(document.to_string().as_bytes()).unwrap(), shop());
}

#[test]
fn provenance_may_say_more() {
    let document = changed(("/provenance", "builder", json!({"name": "make"})));
    assert_eq!(load(document.to_string().as_bytes()).unwrap(), shop());
    let document = changed(("/provenance/sources/0", "bytes", json!(12)));
    assert_eq!(load(document.to_string().as_bytes()).unwrap(), shop());
}

#[test]
fn a_malformed_node_is_named_by_its_path() {
    let workflow = "/declarations/1/declarations/5";
    let changes = [
        ("", "type", json!("Module")),
        ("", "formatVersion", json!("one")),
        ("", "hash", json!("sha256:12")),
        ("", "extra", json!(1)),
        ("", "declarations", json!(null)),
        ("/declarations/0", "sourceId", json!("elsewhere.afl")),
        ("/declarations/0", "type", json!("FunctionDecl")),
        ("/declarations/0", "fields", json!({})),
        ("/declarations/0/fields/0", "type", json!("List<Long>")),
        ("/declarations/1/declarations/0", "type", json!("Namespace")),
        (&format!("{workflow}/body/0/steps/1/call"), "target", json!(7)),
        (&format!("{workflow}/body/0/steps/2/condition"), "operator", json!("=")),
        (&format!("{workflow}/body/1/steps/0/call/args/0/value"), "operator", json!("+")),
        (&format!("{workflow}/body/2"), "after", json!([-1])),
        (&format!("{workflow}/body/1"), "when", json!({"type": "WhenBlock"})),
        (&format!("{workflow}/body/1/foreach"), "in", json!([])),
    ];
    let mut messages: Vec<String> = changes.map(|change| message(&changed(change))).into();
    messages.push(message(&json!([])));
    messages.push(message(&json!({"type": "Program"})));
    insta::assert_snapshot!(messages.join("\n"));
}

/// The shop as text, with one part replaced.
fn replaced(part: &str, by: &str) -> String {
    let text = String::from_utf8(shop().emit(Emit::WHOLE).to_vec()).expect("UTF-8");
    load(text.replacen(part, by, 1).as_bytes()).expect_err("it must be refused").to_string()
}

#[test]
fn a_repeated_key_is_refused() {
    insta::assert_snapshot!(replaced(r#""formatVersion":1"#, r#""formatVersion":1,"formatVersion":1"#));
}

#[test]
fn half_a_character_is_refused() {
    insta::assert_snapshot!(replaced(r#""name":"Gift""#, r#""name":"\ud800""#));
}

#[test]
fn another_version_is_refused() {
    insta::assert_snapshot!(message(&changed(("", "formatVersion", json!(7)))));
}

#[test]
fn a_changed_program_is_refused() {
    insta::assert_snapshot!(message(&changed(("/declarations/0", "name", json!("Present")))));
}

#[test]
fn a_name_that_leads_nowhere_is_refused() {
    let shop = "/declarations/1/declarations";
    let body = "/declarations/1/declarations/5/body";
    let nowhere = json!({"type": "StepRef", "path": ["gone", "x"]});
    let changes = [
        (&format!("{shop}/1/params/1"), "type", json!("[shop.Gone?]")),
        (&format!("{shop}/1/mixins/0"), "target", json!("shop.Gone")),
        (&format!("{shop}/0/fields/1"), "default", nowhere.clone()),
        (&format!("{body}/0/steps/0/call"), "target", json!("shop.Gone")),
        (&format!("{body}/0/steps/0/call/args/0"), "value", nowhere.clone()),
        (&format!("{body}/0/steps/0/call/args/0"), "implicit", json!("shop.gone")),
        (&format!("{body}/0/steps/1"), "dependsOn", json!(["gone"])),
        (&format!("{body}/0/steps/1/catch/yields/0"), "target", json!("shop.Gone")),
        (&format!("{body}/0/yields/0/args/0/value"), "clause", json!(0)),
        (&format!("{body}/1/foreach"), "iterable", nowhere),
        (&format!("{body}/2/when/cases/0/condition/left/left"), "clause", json!(1)),
    ];
    let messages = changes.map(|(node, key, value)| message_despite_hash(changed((node, key, value))));
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_document_that_no_compiler_writes_is_refused() {
    let body = "/declarations/1/declarations/5/body";
    let changes = [
        ("/declarations/1/declarations/1", "id", json!("shop.Ask")),
        (&format!("{body}/0/steps/1"), "name", json!("price")),
        (&format!("{body}/0/yields/0/args/0/value"), "path", json!([])),
        (&format!("{body}/1"), "after", json!([1])),
        (&format!("{body}/2/when/cases/1"), "condition", json!({"type": "Boolean", "value": true})),
    ];
    let messages = changes.map(|change| message_despite_hash(changed(change)));
    insta::assert_snapshot!(messages.join("\n"));
}

//! What the loader refuses, and what it says.

use afl_lang::limits::{MAX_EXPRESSION_HEIGHT, MAX_NESTING, MAX_PROGRAM_NESTING};
use afl_lang::program::{
    AndThenBlock, BinaryOp, Decl, Emit, FacetDecl, FacetKind, LoadError, Namespace, Program, Statement, load,
};
use serde_json::{Value, json};

use crate::build::{
    binary, block, catch, facet, foreach, input, int, mixin, name_body, program, read, read_clause, shop,
    step, step_stmt, when, yields,
};

/// Loads the shop's document after a change.
fn load_changed(change: impl FnOnce(&mut Value)) -> Result<Program, LoadError> {
    let mut document = serde_json::to_value(shop()).expect("JSON");
    change(&mut document);
    load(document.to_string().as_bytes())
}

fn message(result: Result<Program, LoadError>) -> String {
    result.expect_err("it must be refused").to_string()
}

#[test]
fn what_is_not_json_is_refused_with_its_place() {
    let cases: [&[u8]; 6] = [
        b"",
        b"{\"type\": \"Program\",\n  oops}",
        b"{\"a\": 1} x",
        b"[1,\n\xff]",
        b"[\"\x01\"]",
        b"{\"a\":1",
    ];
    let messages: Vec<String> = cases.iter().map(|json| message(load(json))).collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_document_may_nest_to_the_limit() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let at_limit = message(load(nested(MAX_PROGRAM_NESTING).as_bytes()));
    let beyond = message(load(nested(1_000_000).as_bytes()));
    insta::assert_snapshot!(format!("{at_limit}\n{beyond}"));
}

#[test]
fn the_deepest_program_that_compiles_can_be_loaded() {
    let add = |inner, _| binary(int(1), BinaryOp::Add, inner);
    let high = (0..MAX_EXPRESSION_HEIGHT).fold(int(1), add);
    let nest = |inner, _| {
        let mut outer = step_stmt("a", "W", &[]);
        outer.body = vec![block(vec![Statement::Step(inner)], vec![])];
        outer
    };
    let deep = (0..MAX_NESTING).fold(step_stmt("a", "W", &[("x", high)]), nest);
    let namespace = Namespace {
        name: "n".into(),
        doc: None,
        uses: vec![],
        declarations: vec![Decl::Facet(workflow(&[], vec![block(vec![Statement::Step(deep)], vec![])]))],
        location: None,
        source: None,
    };
    let program = program(vec![Decl::Namespace(namespace)]);
    let json = program.emit(Emit::WHOLE).to_vec();
    // Not `assert_eq`: the message would not fit anywhere.
    assert!(load(&json).unwrap() == program);
}

#[test]
fn the_order_of_keys_does_not_matter() {
    // `serde_json::Value` sorts them, so that `type` comes late.
    assert_eq!(load_changed(|_| {}).unwrap(), shop());
}

#[test]
fn categories_may_be_left_out() {
    let loaded = load_changed(|document| {
        let keys = ["namespaces", "facets", "eventFacets", "workflows", "implicits", "schemas"];
        for key in keys {
            document.as_object_mut().unwrap().remove(key);
            document["declarations"][0].as_object_mut().unwrap().remove(key);
        }
    });
    assert_eq!(loaded.unwrap(), shop());
}

#[test]
fn provenance_may_say_more() {
    let loaded = load_changed(|document| {
        document["provenance"]["builder"] = json!({"name": "make"});
        document["provenance"]["sources"][0]["bytes"] = json!(12);
    });
    assert_eq!(loaded.unwrap(), shop());
}

#[test]
fn a_malformed_node_is_named_by_its_path() {
    let block = "/declarations/0/declarations/5/body/0";
    let each = "/declarations/0/declarations/5/body/1";
    let changes = [
        ("", "type", json!("Module")),
        ("", "formatVersion", json!("one")),
        ("", "hash", json!("sha256:12")),
        ("", "extra", json!(1)),
        ("", "declarations", json!(null)),
        ("/declarations/0", "sourceId", json!("elsewhere.afl")),
        ("/declarations/1", "type", json!("FunctionDecl")),
        ("/declarations/1", "params", json!({})),
        ("/declarations/1/params/0", "type", json!("List<Long>")),
        (&format!("{block}/steps/1/call"), "target", json!(7)),
        (&format!("{block}/steps/2/condition"), "operator", json!("=")),
        (&format!("{block}/steps/2/condition/right"), "value", json!(1.5)),
        (each, "when", json!({"type": "WhenBlock"})),
        (&format!("{each}/foreach"), "in", json!([])),
    ];
    let message_after = |(node, key, value): (&str, &str, Value)| {
        message(load_changed(|document| document.pointer_mut(node).expect(node)[key] = value))
    };
    let mut messages: Vec<String> = changes.into_iter().map(message_after).collect();
    messages.push(message(load(b"[]")));
    messages.push(message(load(br#"{"type": "Program"}"#)));
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_repeated_key_is_refused() {
    let text = String::from_utf8(shop().emit(Emit::WHOLE).to_vec()).unwrap();
    let repeated = text.replacen(r#""formatVersion":1"#, r#""formatVersion":1,"formatVersion":1"#, 1);
    insta::assert_snapshot!(message(load(repeated.as_bytes())));
}

#[test]
fn half_a_character_is_refused() {
    let text = String::from_utf8(shop().emit(Emit::WHOLE).to_vec()).unwrap();
    let broken = text.replace(r#""name":"Value""#, r#""name":"\ud800""#);
    insta::assert_snapshot!(message(load(broken.as_bytes())));
}

#[test]
fn another_version_is_refused() {
    insta::assert_snapshot!(message(load_changed(|it| it["formatVersion"] = json!(7))));
}

#[test]
fn a_changed_program_is_refused() {
    let changed = load_changed(|it| it["declarations"][1]["name"] = json!("Worth"));
    insta::assert_snapshot!(message(changed));
}

fn refused(facet: FacetDecl) -> String {
    message(load(&program(vec![Decl::Facet(facet)]).emit(Emit::WHOLE).to_vec()))
}

fn workflow(params: &[&str], body: Vec<AndThenBlock>) -> FacetDecl {
    facet(FacetKind::Workflow, "W", params, &[], body)
}

#[test]
fn a_name_that_leads_nowhere_is_refused() {
    let a = || step("a", "W", &[]);
    let yield_x = |of| vec![yields("W", &[("x", of)])];
    let mut with_mixin = workflow(&[], vec![]);
    with_mixin.mixins = vec![mixin("Gone", None, &[])];
    let mut with_catch = workflow(&[], vec![]);
    with_catch.catch = Some(catch(vec![], yield_x(read("gone.x"))));
    name_body("W", &mut with_catch.body, with_catch.catch.as_mut());
    let mut with_implicit = step_stmt("a", "W", &[("x", int(1))]);
    with_implicit.call.args[0].implicit = Some("gone".into());
    let messages = [
        refused(workflow(&["x: [Gone?]"], vec![])),
        refused(workflow(&[], vec![block(vec![step("a", "Gone", &[])], vec![])])),
        refused(workflow(&[], vec![block(vec![a()], vec![yields("Gone", &[])])])),
        refused(workflow(&[], vec![block(vec![step("a", "W", &[("x", read("gone.x"))])], vec![])])),
        refused(workflow(&[], vec![block(vec![a()], vec![]), block(vec![], yield_x(read("a.x")))])),
        refused(workflow(&[], vec![block(vec![a()], yield_x(read_clause(0, "a.x")))])),
        refused(workflow(&[], vec![foreach("v", read("a.x"), vec![a()], vec![])])),
        refused(with_mixin),
        refused(with_catch),
        refused(workflow(&[], vec![block(vec![Statement::Step(with_implicit)], vec![])])),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn what_no_compiler_writes_is_refused() {
    let a = || step("a", "W", &[]);
    let mut waits = block(vec![], vec![]);
    waits.after = vec![0];
    let twice = Decl::Facet(workflow(&[], vec![]));
    let messages = [
        refused(workflow(&[], vec![when(vec![(Some(input("x")), vec![], vec![])])])),
        refused(workflow(&[], vec![when(vec![(None, vec![], vec![]), (None, vec![], vec![])])])),
        refused(workflow(&[], vec![block(vec![a(), a()], vec![])])),
        refused(workflow(&[], vec![block(vec![step("a", "W", &[("x", read(""))])], vec![])])),
        refused(workflow(&[], vec![waits])),
        message(load(&program(vec![twice.clone(), twice]).emit(Emit::WHOLE).to_vec())),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_default_that_reads_a_step_is_refused() {
    let mut value = facet(FacetKind::Plain, "Value", &["input: Long"], &[], vec![]);
    value.params[0].default = Some(read("a.x"));
    insta::assert_snapshot!(refused(value));
}

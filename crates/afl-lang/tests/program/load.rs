//! What the loader refuses, and what it says.

use afl_lang::limits::MAX_PROGRAM_NESTING;
use afl_lang::program::{
    AndThenBlock, Decl, Emit, ExprKind, FacetDecl, FacetKind, LoadError, Program, Statement, UnaryOp, load,
};
use serde_json::{Value, json};

use crate::build::{
    block, catch, expr, facet, foreach, input, int, mixin, name_body, program, read, read_clause, shop, step,
    step_stmt, when, yields,
};

/// Loads the shop's document after a change.
fn load_changed(change: impl FnOnce(&mut Value)) -> Result<Program, LoadError> {
    let mut document = serde_json::to_value(shop()).unwrap();
    change(&mut document);
    load(&serde_json::to_vec(&document).unwrap())
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
fn a_program_as_deep_as_the_limit_loads_on_a_small_stack() {
    // The default stands five levels deep.
    let negate = |inner, _| expr(ExprKind::Unary(UnaryOp::Negate, Box::new(inner)));
    let deep = (0..MAX_PROGRAM_NESTING - 6).fold(int(1), negate);
    let mut value = facet(FacetKind::Plain, "Value", &["input: Long"], &[], vec![]);
    value.params[0].default = Some(deep);
    let program = program(vec![Decl::Facet(value)]);
    let json = program.emit(Emit::WHOLE).to_vec();
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
    type Change = fn(&mut Value);
    let changes: [Change; 16] = [
        |it| *it = json!([]),
        |it| it["type"] = json!("Module"),
        |it| drop(it.as_object_mut().unwrap().remove("formatVersion")),
        |it| it["formatVersion"] = json!("one"),
        |it| it["hash"] = json!("sha256:12"),
        |it| it["extra"] = json!(1),
        |it| drop(it.as_object_mut().unwrap().remove("declarations")),
        |it| it["declarations"][1]["type"] = json!("FunctionDecl"),
        |it| it["declarations"][1]["params"] = json!({}),
        |it| it["declarations"][1]["params"][0]["type"] = json!("List<Long>"),
        |it| it["declarations"][0]["sourceId"] = json!("elsewhere.afl"),
        |it| it["declarations"][0]["declarations"][5]["body"][0]["steps"][1]["call"]["target"] = json!(7),
        |it| {
            it["declarations"][0]["declarations"][5]["body"][0]["steps"][2]["condition"]["operator"] =
                json!("=")
        },
        |it| {
            it["declarations"][0]["declarations"][5]["body"][0]["steps"][2]["condition"]["right"]["value"] =
                json!(1.5)
        },
        |it| it["declarations"][0]["declarations"][5]["body"][1]["when"] = json!({}),
        |it| it["declarations"][0]["declarations"][5]["body"][1]["foreach"]["in"] = json!(null),
    ];
    let messages: Vec<String> = changes.into_iter().map(|change| message(load_changed(change))).collect();
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

//! The values that fit a declared type, the messages for others, and the fields that defaults fill in.

use afl_engine::Value;
use afl_engine::types::{Schemas, as_declared, fits};
use afl_lang::program::{Decl, FacetDecl, Program};
use afl_lang::source::Sources;
use afl_lang::types::TypeRef;
use afl_lang::{Validation, compile};
use serde_json::json;

const PROGRAM: &str = r#"
namespace shop {
  schema Price { amount: Double, currency: String = "EUR" }
  schema Item { name: String, price: Price = #{amount: 0}, tags: [String] = [] }
  schema Tree { children: [Tree] = [] }
  schema Endless { inner: Endless = #{} }
}
"#;

#[test]
fn each_type_takes_its_values() {
    check("String", &json!("x"), "");
    check("Boolean", &json!(true), "");
    check("Long", &json!(-9_223_372_036_854_775_808_i64), "");
    check("Int", &json!(3), "");
    check("Double", &json!(3), "");
    check("Double", &json!(3.5), "");
    check("Json", &json!([1, {"a": null}]), "");
    check("Json", &json!(null), "");
    check("Long?", &json!(null), "");
    check("Long?", &json!(1), "");
    check("[Long]", &json!([]), "");
    check("[[Long]]", &json!([[1], []]), "");
}

#[test]
fn a_misfit_names_the_value_and_both_types() {
    check("Long", &json!("many"), "`v` must be Long, but is String");
    check("Long", &json!(3.5), "`v` must be Long, but is Double");
    check("Long", &json!(3.0), "`v` must be Long, but is Double");
    check("Int", &json!(null), "`v` must be Int, but is null");
    check("Long", &json!(9_223_372_036_854_775_808_u64), "`v` must be Long, but does not fit in 64 bits");
    check("Double", &json!("1"), "`v` must be Double, but is String");
    check("String", &json!(1), "`v` must be String, but is Long");
    check("Boolean", &json!({}), "`v` must be Boolean, but is a map");
    check("Long?", &json!([]), "`v` must be Long?, but is a list");
    check("[Long]", &json!({}), "`v` must be [Long], but is a map");
    check("[Long]", &json!([1, "2"]), "`v[1]` must be Long, but is String");
    check("[[Long?]]", &json!([[1], [null, true]]), "`v[1][1]` must be Long?, but is Boolean");
}

#[test]
fn a_schema_takes_a_map_of_its_fields() {
    check("shop.Price", &json!({"amount": 1, "currency": "USD"}), "");
    check("shop.Price", &json!({"amount": 1}), "");
    check("shop.Price", &json!({"amount": 1, "note": "kept"}), "");
    check("shop.Price", &json!([]), "`v` must be shop.Price, but is a list");
    check("shop.Price", &json!({}), "`v.amount` must be Double, but is missing");
    check("shop.Price", &json!({"amount": null}), "`v.amount` must be Double, but is null");
    let item = json!([{"name": "a"}, {"name": "b", "price": {"amount": "1"}}]);
    check("[shop.Item]", &item, "`v[1].price.amount` must be Double, but is String");
}

#[test]
fn a_value_that_nests_too_deep_for_the_reader_does_not_fit() {
    let deep = |levels: usize| (0..levels).fold(json!(1), |value, _| json!([value]));
    check("Json", &deep(100), "");
    check("Json", &deep(101), "`v` must be Json, but nests deeper than 100 levels");
    let tree = (0..60).fold(json!({}), |tree, _| json!({"children": [tree]}));
    let program = program("shop.Tree");
    let misfit = fits("v", &tree, parameter(&program), &Schemas::of(&program)).expect_err("too deep");
    assert!(misfit.to_string().ends_with("must be shop.Tree, but nests deeper than 100 levels"), "{misfit}");
}

#[test]
fn defaults_fill_in_at_every_depth() {
    let full = json!({"name": "a", "price": {"amount": 0.0, "currency": "EUR"}, "tags": []});
    check_filled("shop.Item", json!({"name": "a"}), &full);
    check_filled("[shop.Item?]", json!([null, {"name": "a"}]), &json!([null, full]));
    let given = json!({"name": "a", "price": {"amount": 2.5, "currency": "USD"}, "tags": ["t"], "more": 1});
    check_filled("shop.Item", given.clone(), &given);
    check_filled("shop.Item", json!("no item"), &json!("no item"));
    check_filled("Json", json!({"name": "a"}), &json!({"name": "a"}));
}

#[test]
fn integers_widen_where_a_double_is_declared_and_nowhere_else() {
    check_filled("[Double?]", json!([1, null, 2.5]), &json!([1.0, null, 2.5]));
    check_filled(
        "shop.Price",
        json!({"amount": 1, "more": 1}),
        &json!({"amount": 1.0, "currency": "EUR", "more": 1}),
    );
    for other in ["Long", "Json"] {
        check_filled(other, json!(1), &json!(1));
    }
}

#[test]
fn a_default_without_end_is_an_error() {
    let program = program("shop.Endless");
    let error = as_declared(json!({}), parameter(&program), &Schemas::of(&program)).expect_err("no end");
    assert_eq!(error.to_string(), "`#{}` nests lists and maps deeper than 100 levels");
}

/// An empty message means that the value fits.
fn check(ty: &str, value: &Value, message: &str) {
    let program = program(ty);
    let result = fits("v", value, parameter(&program), &Schemas::of(&program));
    assert_eq!(result.err().map(|misfit| misfit.to_string()).unwrap_or_default(), message, "{value} as {ty}");
}

fn check_filled(ty: &str, value: Value, expected: &Value) {
    let program = program(ty);
    let filled = as_declared(value, parameter(&program), &Schemas::of(&program));
    assert_eq!(filled.as_ref(), Ok(expected));
}

/// A program with a facet `F` whose only parameter has the type.
fn program(ty: &str) -> Program {
    let sources = Sources::one("types.afl", format!("{PROGRAM}facet F(v: {ty})"));
    let compiled = compile(&sources, Validation::Require);
    compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

fn parameter(program: &Program) -> &TypeRef {
    match program.declarations.last() {
        Some(Decl::Facet(FacetDecl { params, .. })) => &params[0].ty,
        other => panic!("{other:?} is no facet"),
    }
}

//! The compiled form of programs, read as people read it.
#![expect(clippy::disallowed_methods, reason = "fixtures are files")]

use std::fs;
use std::path::Path;

use afl_lang::program::{Decl, Emit, JsonLayout, Locations, Program, Provenance};
use afl_lang::source::{Source, Sources};
use afl_lang::{Validation, compile};

const READABLE: Emit =
    Emit { layout: JsonLayout::Pretty, locations: Locations::Strip, provenance: Provenance::Omit };

fn program(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile").join(name).with_extension("afl");
    let text = fs::read_to_string(path).expect("the fixture is there");
    let compiled = compile(&Sources::one(format!("{name}.afl"), text), Validation::Require);
    let errors: Vec<_> = compiled.diagnostics.iter().filter(|d| d.is_error()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    compiled.program.expect("no error withholds it")
}

/// The declarations alone: the categorised copies of them would say everything twice.
fn snapshot(name: &str) {
    let document = program(name).emit(READABLE).to_vec();
    let value: serde_json::Value = serde_json::from_slice(&document).expect("a document is JSON");
    let mut declarations = value["declarations"].clone();
    drop_copies(&mut declarations);
    insta::assert_snapshot!(
        name,
        serde_json::to_string_pretty(&declarations).expect("values can be written")
    );
}

fn drop_copies(declarations: &mut serde_json::Value) {
    for node in declarations.as_array_mut().into_iter().flatten().filter_map(|node| node.as_object_mut()) {
        if let Some(inner) = node.get_mut("declarations") {
            drop_copies(inner);
            for category in ["facets", "eventFacets", "workflows", "schemas", "implicits", "namespaces"] {
                node.remove(category);
            }
        }
    }
}

// covers: RT-2-a, RT-8.3-a, RT-8.3-b, RT-8.3-c, RT-W1-a
#[test]
fn blocks_stand_with_their_owner_and_steps_name_what_they_read() {
    snapshot("blocks");
}

#[test]
fn references_say_where_their_first_name_is_found() {
    snapshot("references");
}

#[test]
fn mixins_carry_whole_targets_and_implicit_arguments() {
    snapshot("mixins");
}

#[test]
fn scripts_prompts_and_catches_see_the_names_in_scope() {
    snapshot("script_results");
}

#[test]
fn declarations_carry_their_whole_name() {
    let program = program("blocks");
    let Decl::Namespace(shop) = &program.declarations[0] else {
        unreachable!("the fixture is one namespace")
    };
    let ids: Vec<&str> = shop
        .declarations
        .iter()
        .filter_map(|decl| match decl {
            Decl::Facet(facet) => Some(&*facet.id),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["shop.Price", "shop.Weigh", "shop.Order"]);
}

#[test]
fn layout_and_comments_do_not_change_the_hash() {
    let hash = |text: &str| {
        compile(&Sources::one("a.afl", text), Validation::Require).program.expect("it compiles").hash()
    };
    let plain = "facet A(x: Long)\nworkflow W() andThen { a = A(x = 1 + 2) }";
    let other =
        "/** doc */ facet A(\n  x: Long,\n);\nworkflow W() /* c */ andThen {\n  a = A(x = (1 + 2)) // end\n}";
    assert_eq!(hash(plain), hash(other));
    assert_ne!(hash(plain), hash(&plain.replace("2)", "3)")));
}

#[test]
fn a_library_gets_no_warnings_and_its_errors_are_reported() {
    let codes = |library: &str| {
        let sources =
            Sources(vec![Source::new("main.afl", "facet A()"), Source::library("lib.afl", library)]);
        let diagnostics = compile(&sources, Validation::Require).diagnostics;
        diagnostics.iter().map(|diagnostic| diagnostic.code.text()).collect::<Vec<_>>()
    };
    assert_eq!(codes(r#"facet B(x: String = "\d") => (y: Long)"#), [""; 0]);
    assert_eq!(codes("facet B(x: Nope)"), ["AFL0202"]);
}

// covers: RT-11.1-c
#[test]
fn short_and_qualified_names_find_the_same_declaration() {
    let text = "namespace 4.a { facet F() }
        namespace b { use 4.a workflow W() andThen { s = F() q = 4.a.F() } }
        workflow Top() andThen { far = F() }";
    let program =
        compile(&Sources::one("names.afl", text), Validation::Require).program.expect("it compiles");
    let document: serde_json::Value =
        serde_json::from_slice(&program.emit(READABLE).to_vec()).expect("it is JSON");
    let targets = |workflow: &serde_json::Value| {
        let steps = workflow["body"][0]["steps"].as_array().expect("it has steps").clone();
        steps.iter().map(|step| step["call"]["target"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(targets(&document["namespaces"][1]["workflows"][0]), ["4.a.F", "4.a.F"]);
    assert_eq!(targets(&document["workflows"][0]), ["4.a.F"]);
}

// covers: RT-11.1-b
#[test]
fn a_facet_is_found_by_its_whole_name_or_by_a_short_one_that_only_it_has() {
    let text = "namespace a { facet F(x: Long) event facet Once() }
        namespace b { facet F() workflow W() andThen { s = Once() } }";
    let program =
        compile(&Sources::one("names.afl", text), Validation::Require).program.expect("it compiles");
    let found = |name: &str| program.facet(name).map(|facet| facet.id.to_string());
    assert_eq!(found("a.F").as_deref(), Some("a.F"));
    assert_eq!(found("Once").as_deref(), Some("a.Once"));
    assert_eq!(found("F"), None);
    assert_eq!(found("c.F"), None);
    assert_eq!(program.facet("a.F").expect("it is declared").params.len(), 1);
}

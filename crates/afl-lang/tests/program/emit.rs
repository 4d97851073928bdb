//! The JSON of a program, and the part that its hash covers.

use afl_lang::program::{Emit, JsonLayout, Locations, Program, Provenance};
use afl_lang::source::{Source, Sources};
use afl_lang::{Validation, compile};

use crate::{compiled, shop};

const PRETTY: Emit =
    Emit { layout: JsonLayout::Pretty, locations: Locations::Keep, provenance: Provenance::Include };
const BARE: Emit =
    Emit { layout: JsonLayout::Pretty, locations: Locations::Strip, provenance: Provenance::Omit };

fn text(program: &Program, how: Emit) -> String {
    String::from_utf8(program.emit(how).to_vec()).expect("UTF-8")
}

#[test]
fn a_program_has_every_declaration_in_order_and_by_category() {
    insta::assert_snapshot!(text(&shop(), BARE));
}

#[test]
fn every_node_has_its_location_and_every_declaration_its_source() {
    let first = Source::new("first.afl", "facet Value(input: Long = 1)");
    let second = Source::new("second.afl", "namespace a {\n  facet Value()\n}");
    let compiled = compile(&Sources(vec![first, second]), Validation::Require);
    insta::assert_snapshot!(text(&compiled.program.expect("a program"), PRETTY));
}

#[test]
fn the_canonical_form_has_executable_parts_and_nothing_else() {
    insta::assert_snapshot!(String::from_utf8(shop().canonical()).expect("UTF-8"));
}

#[test]
fn an_empty_program_still_has_its_declarations() {
    insta::assert_snapshot!(text(&compiled(""), BARE));
}

#[test]
fn both_layouts_say_the_same() {
    let value = |how| serde_json::from_str::<serde_json::Value>(&text(&shop(), how)).expect("JSON");
    let compact = text(&shop(), Emit { layout: JsonLayout::Compact, ..PRETTY });
    assert_eq!(value(PRETTY).to_string().len(), compact.len());
    assert_eq!(value(PRETTY), value(Emit { layout: JsonLayout::Compact, ..PRETTY }));
}

#[test]
fn a_document_can_be_written_piece_by_piece() {
    let mut written = Vec::new();
    shop().emit(PRETTY).write_to(&mut written).unwrap();
    assert_eq!(written, shop().emit(PRETTY).to_vec());
}

#[test]
fn the_hash_covers_executable_parts_and_not_their_positions() {
    let hash = |text: &str| compiled(text).hash();
    let before = hash("facet Value(input: Long = 1)");
    assert_eq!(before, hash("/** A value. */\n\nfacet Value( // in\n  input: Long = 1)"));
    assert_ne!(before, hash("facet Value(input: Long = 2)"));
    assert_ne!(before, hash("event facet Value(input: Long = 1)"));
}

#[test]
fn a_program_stands_in_other_json() {
    #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
    struct Record {
        version: u32,
        program: Program,
    }
    let record = Record { version: 1, program: shop() };
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    let value = serde_json::to_value(&record).unwrap();
    assert_eq!(serde_json::from_value::<Record>(value).unwrap(), record);
}

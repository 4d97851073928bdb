//! What a program looks like as JSON, and what its hash covers.

use afl_lang::program::{Decl, Emit, FacetDecl, Layout, Location, Locations, Program, Provenance};
use afl_lang::source::FileId;

use crate::build::{int, program, shop};

const PRETTY: Emit =
    Emit { layout: Layout::Pretty, locations: Locations::Keep, provenance: Provenance::Include };

fn text(program: &Program, how: Emit) -> String {
    String::from_utf8(program.emit(how).to_vec()).expect("UTF-8")
}

#[test]
fn a_program_has_every_declaration_in_order_and_by_category() {
    insta::assert_snapshot!(text(&shop(), PRETTY));
}

#[test]
fn the_canonical_form_has_what_runs_and_nothing_else() {
    insta::assert_snapshot!(String::from_utf8(shop().canonical()).unwrap());
}

#[test]
fn both_layouts_say_the_same() {
    let compact = Emit { layout: Layout::Compact, ..PRETTY };
    let value = |how| serde_json::from_str::<serde_json::Value>(&text(&shop(), how)).unwrap();
    assert_eq!(value(PRETTY), value(compact));
    let reprinted = serde_json::to_string(&value(compact)).unwrap();
    assert_eq!(reprinted.len(), text(&shop(), compact).len());
}

#[test]
fn an_empty_program_still_has_its_declarations() {
    insta::assert_snapshot!(text(&program(vec![]), PRETTY));
}

#[test]
fn locations_and_provenance_can_be_left_out() {
    let bare = text(
        &shop(),
        Emit { layout: Layout::Compact, locations: Locations::Strip, provenance: Provenance::Omit },
    );
    for key in ["location", "provenance", "sourceId"] {
        assert!(!bare.contains(&format!("\"{key}\"")), "{key}");
    }
}

#[test]
fn a_document_can_be_written_piece_by_piece() {
    let mut written = Vec::new();
    shop().emit(PRETTY).write_to(&mut written).unwrap();
    assert_eq!(written, shop().emit(PRETTY).to_vec());
}

/// The hash of the shop after a change.
fn hash_after(change: impl FnOnce(&mut Program)) -> String {
    let mut program = shop();
    change(&mut program);
    program.hash().to_string()
}

#[test]
fn the_hash_covers_what_runs_and_not_where_it_stands() {
    let top = |program: &mut Program, change: fn(&mut FacetDecl)| {
        let Some(Decl::Facet(facet)) = program.declarations.last_mut() else { panic!("a facet") };
        change(facet);
    };
    let before = hash_after(|_| {});
    let moved = hash_after(|program| {
        top(program, |facet| {
            facet.location = Some(Location { line: 7, column: 1, end_line: 7, end_column: 9 });
            facet.source = Some(FileId(1));
            facet.doc = Some("A value.".into());
        });
    });
    let renamed = hash_after(|program| program.sources = vec!["other.afl".into()]);
    let changed = hash_after(|program| top(program, |facet| facet.params[0].default = Some(int(1))));
    assert_eq!([&before, &before], [&moved, &renamed]);
    assert_ne!(before, changed);
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

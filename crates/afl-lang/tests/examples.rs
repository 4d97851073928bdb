//! The programs under `examples/` are what newcomers read first: right, silent and in the canonical style.

#![expect(clippy::disallowed_methods, reason = "the crate reads no file, its tests read fixtures")]

mod fixture;

use std::fs;
use std::path::Path;

use afl_lang::Validation;
use afl_lang::render::{self, Color};
use afl_lang::source::{Source, Sources};
use fixture::Fixture;

const FOLDER: &str = "../../examples";

#[test]
fn an_example_compiles_without_a_word() {
    for sources in programs() {
        let compiled = afl_lang::compile(&sources, Validation::Require);
        assert!(compiled.program.is_some());
        assert!(
            compiled.diagnostics.is_empty(),
            "{}",
            render::human(&sources, &compiled.diagnostics, Color::Plain)
        );
    }
}

#[test]
fn an_example_is_in_the_canonical_style_and_says_what_it_shows() {
    for Source { name, text, .. } in programs().into_iter().flat_map(|sources| sources.0) {
        let formatted = afl_lang::format::format(&text).expect("an example has no mistakes");
        assert_eq!(text, formatted, "{name}");
        let number = &name[1..2];
        assert!(text.starts_with(&format!("// {number}. ")), "{name} begins with its number and subject");
    }
}

/// Each file is a program, and so is each folder.
fn programs() -> Vec<Sources> {
    let source = |file: Fixture, folder: &str| Source::new(format!("{folder}{}.afl", file.name), file.text);
    let files = fixture::read(FOLDER, "afl").into_iter().map(|file| Sources(vec![source(file, "")]));
    let folders = folders().into_iter().map(|name| {
        let files = fixture::read(&format!("{FOLDER}/{name}"), "afl").into_iter();
        Sources(files.map(|file| source(file, &format!("{name}/"))).collect())
    });
    let programs: Vec<Sources> = files.chain(folders).collect();
    assert!(programs.len() >= 8);
    programs
}

fn folders() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    let entries =
        fs::read_dir(folder).expect("the examples are there").map(|entry| entry.expect("it can be read"));
    let folders = entries.filter(|entry| entry.path().is_dir());
    folders.map(|folder| folder.file_name().to_str().expect("examples have plain names").to_owned()).collect()
}

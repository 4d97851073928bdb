//! Every kind of mistake as a newcomer meets it: each snapshot holds a program and what is said about it.
//!
//! A fixture is one file; a line `//- name.afl` in it begins another source of the same program.

#![expect(clippy::disallowed_methods, reason = "the crate reads no file, its tests read fixtures")]

mod large;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use afl_lang::Validation;
use afl_lang::code::Code;
use afl_lang::diagnostic::Diagnostic;
use afl_lang::render::{self, Color};
use afl_lang::source::{Source, Sources};

#[test]
fn a_mistake_is_shown_with_its_source() {
    for fixture in fixtures() {
        let name = fixture.file_stem().unwrap().to_str().unwrap();
        let text = fs::read_to_string(&fixture).unwrap();
        let sources = split(&format!("{name}.afl"), &text);
        let shown = render::human(&sources, &diagnostics(&sources), Color::Plain);
        assert_snapshot(name, &format!("{text}\n-----\n{shown}"));
    }
}

#[test]
fn a_limit_is_named_where_it_is_passed() {
    for large in large::programs() {
        let sources = Sources::one(format!("{}.afl", large.name), large.text);
        let mut diagnostics = diagnostics(&sources);
        diagnostics.retain(|diagnostic| diagnostic.code == large.code);
        let shown = render::human(&sources, &diagnostics, Color::Plain);
        assert_snapshot(large.name, &format!("({})\n\n-----\n{shown}", large.what));
    }
}

#[test]
fn every_code_has_a_fixture() {
    let mut seen: BTreeSet<Code> = large::programs().iter().map(|large| large.code).collect();
    for fixture in fixtures() {
        let sources = split("fixture.afl", &fs::read_to_string(fixture).unwrap());
        seen.extend(diagnostics(&sources).iter().map(|diagnostic| diagnostic.code));
    }
    let of_syntax = |code: &&Code| **code < Code::UnknownFacet;
    let missing: Vec<_> = Code::ALL.iter().filter(of_syntax).filter(|code| !seen.contains(code)).collect();
    assert!(missing.is_empty(), "add a fixture to {} for {missing:?}", folder().display());
}

fn diagnostics(sources: &Sources) -> Vec<Diagnostic> {
    afl_lang::compile(sources, Validation::Require).diagnostics
}

fn split(first: &str, text: &str) -> Sources {
    let mut sources = vec![Source::new(first, "")];
    for line in text.split_inclusive('\n') {
        match line.strip_prefix("//- ") {
            Some(name) => sources.push(Source::new(name.trim(), "")),
            None => sources.last_mut().expect("the first is there").text.push_str(line),
        }
    }
    Sources(sources)
}

fn fixtures() -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder()).expect("the folder is there").filter_map(|entry| Some(entry.ok()?.path()));
    let mut fixtures: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "afl")).collect();
    fixtures.sort();
    fixtures
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics")
}

fn assert_snapshot(name: &str, shown: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, shown));
}

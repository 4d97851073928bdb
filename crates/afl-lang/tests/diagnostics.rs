//! Every kind of mistake as a newcomer meets it: each snapshot holds a program and its diagnostics.
//!
//! A fixture is one file; a line `//- name.afl` in it begins another source of the same program.

#![expect(clippy::disallowed_methods, reason = "the crate reads no file, its tests read fixtures")]

mod fixture;
mod large;
mod snapshot;

use std::collections::BTreeSet;

use afl_lang::Validation;
use afl_lang::code::Code;
use afl_lang::diagnostic::Diagnostic;
use afl_lang::render::{self, Color};
use afl_lang::source::{Source, Sources};
use fixture::Fixture;

const FOLDER: &str = "tests/diagnostics";

#[test]
fn a_mistake_is_shown_with_its_source() {
    for Fixture { name, text } in fixture::read(FOLDER, "afl") {
        let sources = split(&format!("{name}.afl"), &text);
        let shown = render::human(&sources, &diagnostics(&sources), Color::Plain);
        snapshot::assert(FOLDER, &name, &format!("{text}\n-----\n{shown}"));
    }
}

#[test]
fn a_limit_is_named_where_it_is_passed() {
    for large in large::programs() {
        let sources = Sources::one(format!("{}.afl", large.name), large.text);
        let mut diagnostics = diagnostics(&sources);
        diagnostics.retain(|diagnostic| diagnostic.code == large.code);
        let shown = render::human(&sources, &diagnostics, Color::Plain);
        snapshot::assert(FOLDER, large.name, &format!("({})\n\n-----\n{shown}", large.what));
    }
}

#[test]
fn every_code_has_a_fixture() {
    let mut seen: BTreeSet<Code> = large::programs().iter().map(|large| large.code).collect();
    for fixture in fixture::read(FOLDER, "afl") {
        let sources = split("fixture.afl", &fixture.text);
        seen.extend(diagnostics(&sources).iter().map(|diagnostic| diagnostic.code));
    }
    let missing: Vec<_> = Code::ALL.iter().filter(|code| !seen.contains(code)).collect();
    assert!(missing.is_empty(), "add a fixture to {FOLDER} for {missing:?}");
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

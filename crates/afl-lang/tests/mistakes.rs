//! Mistakes of newcomers and the messages for them: each snapshot holds a program and its messages.
//!
//! A fixture has one mistake and gets one message; those called `several_…` have more.

#![expect(clippy::disallowed_methods, reason = "the crate reads no file, its tests read fixtures")]

mod fixture;
mod snapshot;

use afl_lang::Validation;
use afl_lang::render::{self, Color};
use afl_lang::source::Sources;

const FOLDER: &str = "tests/mistakes";

#[test]
fn a_typical_mistake_gets_one_message() {
    let fixtures = fixture::read(FOLDER, "afl");
    assert!(fixtures.len() >= 30);
    let mut talkative = Vec::new();
    for fixture in fixtures {
        let sources = Sources::one(format!("{}.afl", fixture.name), &*fixture.text);
        let diagnostics = afl_lang::compile(&sources, Validation::Require).diagnostics;
        let shown = render::human(&sources, &diagnostics, Color::Plain);
        snapshot::assert(FOLDER, &fixture.name, &format!("{}\n-----\n{shown}", fixture.text));
        let errors = diagnostics.iter().filter(|one| one.is_error()).count();
        if (errors, diagnostics.len()) != (1, 1) && !fixture.name.starts_with("several_") {
            talkative.push(fixture.name);
        }
    }
    assert!(talkative.is_empty(), "one mistake does not give one error in {talkative:?}");
}

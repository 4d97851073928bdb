//! A program reads back as it was written.

use afl_lang::program::{Emit, JsonLayout, LoadError, Locations, Provenance, load};
use afl_lang::source::Sources;
use afl_lang::{Validation, compile};
use proptest::prelude::*;

use crate::random;

#[test]
#[expect(clippy::disallowed_methods, reason = "the cases are files")]
fn every_program_of_the_conformance_cases_reads_back_the_same() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance");
    let mut programs = 0;
    for entry in std::fs::read_dir(cases).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "afl") {
            let text = std::fs::read_to_string(&path).unwrap();
            let compiled = compile(&Sources::one("main.afl", text), Validation::Require);
            if let Some(program) = compiled.program {
                let loaded = load(&program.emit(Emit::WHOLE).to_vec());
                assert_eq!(loaded.unwrap(), program, "{}", path.display());
                programs += 1;
            }
        }
    }
    assert!(programs > 50, "only {programs} programs");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_written_program_reads_back_the_same(program in random::program()) {
        for layout in [JsonLayout::Pretty, JsonLayout::Compact] {
            let json = program.emit(Emit { layout, ..Emit::WHOLE }).to_vec();
            prop_assert_eq!(&load(&json).map_err(|error| fail(&error))?, &program);
        }
    }

    #[test]
    fn a_program_loses_only_the_omitted_parts(program in random::program()) {
        let bare = Emit { layout: JsonLayout::Compact, locations: Locations::Strip, provenance: Provenance::Omit };
        let json = program.emit(bare).to_vec();
        let loaded = load(&json).map_err(|error| fail(&error))?;
        prop_assert_eq!(loaded.hash(), program.hash());
        prop_assert_eq!(loaded.emit(Emit::WHOLE).to_vec(), json);
    }

    #[test]
    fn the_order_of_keys_does_not_matter(program in random::program()) {
        let sorted = serde_json::to_value(&program).expect("JSON").to_string();
        prop_assert_eq!(&load(sorted.as_bytes()).map_err(|error| fail(&error))?, &program);
    }

    #[test]
    fn damage_is_refused_or_harmless(program in random::program(), at: prop::sample::Index, byte: u8) {
        let mut json = program.emit(Emit::WHOLE).to_vec();
        let at = at.index(json.len());
        json[at] = byte;
        if let Ok(loaded) = load(&json) {
            prop_assert_eq!(loaded.hash(), program.hash());
        }
    }
}

fn fail(error: &LoadError) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

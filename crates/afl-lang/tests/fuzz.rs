//! The fuzz targets without a fuzzer: the checked-in corpus, and damage to it from fixed seeds (F17).
//!
//! `cargo xtask fuzz` goes on for a given time, and in release. Its findings belong into
//! `tests/regressions`.
#![expect(clippy::disallowed_methods, reason = "the corpus is in files; the time is asked for by a chore")]

mod generate;
mod laws;

use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs};

use generate::dice::Dice;
use generate::{mutate, random};

/// Seconds of each target; unset, each target runs a fixed number of times, so that a run can be repeated.
const SECONDS: &str = "AFL_FUZZ_SECONDS";

#[test]
fn any_text_is_parsed_and_checked() {
    run("parse", 5000, mutate_text, |bytes| laws::of_text(&String::from_utf8_lossy(bytes)));
}

#[test]
fn any_text_that_parses_is_formatted() {
    run("format", 8000, mutate_layout, |bytes| laws::of_layout(&String::from_utf8_lossy(bytes)));
}

#[test]
fn any_bytes_are_loaded_or_refused() {
    let corpus = read("../../fuzz/corpus/load");
    let loaded = corpus.iter().filter(|(_, bytes)| afl_lang::program::load(bytes).is_ok()).count();
    assert!(loaded >= 10, "only {loaded} documents load: add some that `afl compile --compact` gives now");
    run("load", 8000, mutate_bytes, laws::of_document);
}

#[test]
fn any_choices_give_a_program_that_keeps_every_promise() {
    let law = |bytes: &[u8]| laws::of_program(&random::program(&mut Dice::from_bytes(bytes)));
    run("program", 600, mutate_bytes, law);
}

#[test]
fn inputs_that_fuzzing_found_stay_fixed() {
    for (name, bytes) in read("tests/regressions/any") {
        naming(&name, &bytes, || {
            laws::of_text(&String::from_utf8_lossy(&bytes));
            laws::of_layout(&String::from_utf8_lossy(&bytes));
            laws::of_document(&bytes);
        });
    }
    for (name, bytes) in read("tests/regressions/legal") {
        naming(&name, &bytes, || laws::of_program(&[String::from_utf8_lossy(&bytes).into_owned()]));
    }
}

/// Holds a law against the corpus of a target, and then against `rounds` mutations of it.
fn run(target: &str, rounds: u64, mutate: fn(&[u8], &mut Dice<'_>) -> Vec<u8>, law: impl Fn(&[u8])) {
    let corpus = read(&format!("../../fuzz/corpus/{target}"));
    assert!(!corpus.is_empty(), "the corpus of {target} is gone");
    for (name, bytes) in &corpus {
        naming(name, bytes, || law(bytes));
    }
    let until = env::var(SECONDS).ok().map(|seconds| {
        Instant::now() + Duration::from_secs(seconds.parse().expect("a whole number of seconds"))
    });
    let goes_on = |round: &u64| until.map_or(*round < rounds, |until| Instant::now() < until);
    for seed in (0..).take_while(goes_on) {
        let mut dice = Dice::seeded(seed);
        let (name, bytes) = &corpus[dice.below(corpus.len())];
        let mutated = if dice.chance(20) {
            splice(bytes, &corpus[dice.below(corpus.len())].1, &mut dice)
        } else {
            mutate(bytes, &mut dice)
        };
        naming(&format!("{target} {name}, seed {seed}"), &mutated, || law(&mutated));
    }
}

fn mutate_text(bytes: &[u8], dice: &mut Dice<'_>) -> Vec<u8> {
    mutate::damaged(&String::from_utf8_lossy(bytes), dice).into_bytes()
}

fn mutate_layout(bytes: &[u8], dice: &mut Dice<'_>) -> Vec<u8> {
    if dice.chance(30) {
        return mutate_text(bytes, dice);
    }
    mutate::relaid(&String::from_utf8_lossy(bytes), dice).into_bytes()
}

fn mutate_bytes(bytes: &[u8], dice: &mut Dice<'_>) -> Vec<u8> {
    (0..=dice.below(3)).fold(bytes.to_vec(), |bytes, _| mutate::bytes(&bytes, dice))
}

/// The start of one and the end of another.
fn splice(start: &[u8], end: &[u8], dice: &mut Dice<'_>) -> Vec<u8> {
    let (start, end) = (&start[..dice.below(start.len() + 1)], &end[dice.below(end.len() + 1)..]);
    [start, end].concat()
}

/// The files of a folder of the crate, by name.
fn read(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    paths.iter().map(|path| (name(path).unwrap_or_default(), fs::read(path).expect("a file"))).collect()
}

/// Runs a check; if it fails, says of what.
fn naming(name: &str, bytes: &[u8], check: impl FnOnce()) {
    if let Err(failure) = panic::catch_unwind(AssertUnwindSafe(check)) {
        eprintln!("{name}:\n{}", String::from_utf8_lossy(bytes));
        panic::resume_unwind(failure);
    }
}

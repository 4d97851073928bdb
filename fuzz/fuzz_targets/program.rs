//! Bytes choose a program without mistakes, which keeps every promise.
#![no_main]

#[path = "../../crates/afl-lang/tests/generate/mod.rs"]
#[expect(dead_code, reason = "each target needs a part of the generators")]
mod generate;
#[path = "../../crates/afl-lang/tests/laws/mod.rs"]
#[expect(dead_code, reason = "each target needs a part of the laws")]
mod laws;

use generate::dice::Dice;
use generate::random;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|choices: &[u8]| laws::of_program(&random::program(&mut Dice::from_bytes(choices))));

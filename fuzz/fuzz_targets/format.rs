//! Any text that parses is formatted without a change to the program.
#![no_main]

#[path = "../../crates/afl-lang/tests/laws/mod.rs"]
#[expect(dead_code, reason = "each target needs a part of the laws")]
mod laws;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| laws::of_layout(text));

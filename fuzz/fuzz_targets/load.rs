//! Any bytes are loaded as a compiled program, or refused.
#![no_main]

#[path = "../../crates/afl-lang/tests/laws/mod.rs"]
#[expect(dead_code, reason = "each target needs a part of the laws")]
mod laws;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &[u8]| laws::of_document(json));

//! The binary `afl`.

fn main() {}

//! Programs of a given length: many namespaces, deep blocks, many references, no mistake and no warning.

/// One namespace; `@N` is its number, `@P` that of the one whose declarations it uses.
const REGION: &str = include_str!("region.afl");

/// A program of `lines` lines, or of up to one namespace more.
pub(crate) fn program(lines: usize) -> String {
    // Two at least, because each uses another.
    let count = lines.div_ceil(REGION.lines().count()).max(2);
    let region = |at: usize| {
        let used = if at == 0 { 1 } else { at - 1 };
        REGION.replace("@N", &at.to_string()).replace("@P", &used.to_string())
    };
    (0..count).map(region).collect()
}

//! The length of files and functions.

use std::collections::BTreeMap;

use super::ratchet::RatchetCount;
use crate::source::RustFile;

const MAX_FILE_LINES: usize = 600;
const MAX_FUNCTION_LINES: usize = 70;

pub(super) fn measure(sources: &[RustFile]) -> Vec<RatchetCount> {
    sources.iter().flat_map(measure_source).collect()
}

/// Functions of one name count as the longest of them, since names survive edits and lines do not.
fn measure_source(source: &RustFile) -> Vec<RatchetCount> {
    let path = &source.path;
    let mut longest: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for function in source.functions() {
        let known = longest.entry(function.name).or_default();
        if function.length > known.0 {
            *known = (function.length, function.line);
        }
    }
    let functions = longest.into_iter().map(|(name, (length, line))| {
        lines(
            format!("fn {path} {name}"),
            path,
            line,
            &format!("function `{name}`"),
            length,
            MAX_FUNCTION_LINES,
        )
    });
    let length = source.text.lines().count();
    let file = lines(format!("file {path}"), path, 1, "the file", length, MAX_FILE_LINES);
    functions.chain([file]).collect()
}

fn lines(key: String, path: &str, line: usize, what: &str, count: usize, limit: usize) -> RatchetCount {
    RatchetCount {
        key,
        path: path.to_owned(),
        line: Some(line),
        subject: format!("{what} has"),
        count,
        unit: "lines",
        limit,
        advice: "split it",
        cases: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    const PATH: &str = "crates/afl-lang/src/a.rs";

    fn function(name: &str, lines: usize) -> String {
        format!("fn {name}() {{\n{}}}\n", "    x();\n".repeat(lines - 2))
    }

    #[test]
    fn files_and_the_longest_function_of_a_name_are_measured() {
        let text = function("a", 2) + &function("b", 71) + &function("a", 5);
        let measures = measure(&[RustFile::new(PATH, text)]);
        let shown = measures.iter().map(|measure| {
            format!("{} at {:?}: {} of {}", measure.key, measure.line, measure.count, measure.limit)
        });
        assert_snapshot!(shown.collect::<Vec<_>>().join("\n"), @"
        fn crates/afl-lang/src/a.rs a at Some(74): 5 of 70
        fn crates/afl-lang/src/a.rs b at Some(3): 71 of 70
        file crates/afl-lang/src/a.rs at Some(1): 78 of 600
        ");
    }
}

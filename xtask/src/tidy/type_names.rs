//! A type's name is unique in the workspace, so that a search finds one thing.

use std::collections::BTreeMap;

use super::ratchet::RatchetCount;
use super::{Breach, TidyReport};
use crate::source::{CodePart, RustFile};

/// Names that many modules have, and why.
const SHARED: &[(&str, &str)] = &[
    ("Config", "callers write the module before it: `worker::Config`"),
    ("Error", "each module has the failures of its own callers"),
    ("Options", "each command has its own"),
];

pub(super) fn measure(sources: &[RustFile]) -> (RatchetCount, TidyReport) {
    let mut places: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for source in sources {
        for item in source.types().into_iter().filter(|item| source.part(item.line) == CodePart::Source) {
            places.entry(item.name).or_default().push((&source.path, item.line));
        }
    }
    let all: usize = places.values().map(Vec::len).sum();
    let mut cases = Vec::new();
    for (name, places) in &places {
        // Twice in one file: the variants of a type for different systems.
        let is_in_one_file = places.iter().all(|(path, _)| *path == places[0].0);
        if is_in_one_file || SHARED.iter().any(|(shared, _)| shared == name) {
            continue;
        }
        let named = |(path, line): &(&str, usize)| {
            Breach::at(path, *line, format!("{} types are called `{name}`", places.len()))
        };
        cases.extend(places.iter().map(named));
    }
    let unit = "types that share their name";
    let advice = "put the concept that each belongs to into its name";
    let measure = RatchetCount::of_breaches("types", unit, advice, cases);
    let note = format!("{} of {all} types share their name with another", measure.count);
    (measure, TidyReport { notes: vec![note], ..TidyReport::default() })
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::tidy::shown;

    #[test]
    fn a_name_that_two_types_have_is_found() {
        let one = "pub struct Found;\nenum Error {}\n#[cfg(test)]\nmod tests {\n    struct World;\n}\n";
        let two = "type Found = u8;\nstruct Error;\nstruct World;\n#[cfg(unix)]\nstruct Signals;\n#[cfg(not(unix))]\nstruct Signals;\n";
        let sources = [
            RustFile::new("crates/a/src/lib.rs", one.to_owned()),
            RustFile::new("crates/b/src/c.rs", two.to_owned()),
        ];
        let (measure, report) = measure(&sources);
        assert_eq!(measure.count, 2);
        assert_snapshot!(shown(&measure.cases), @"
        crates/a/src/lib.rs:1: 2 types are called `Found`
        crates/b/src/c.rs:1: 2 types are called `Found`
        ");
        assert_snapshot!(report.notes[0], @"2 of 7 types share their name with another");
    }
}

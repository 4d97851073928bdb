//! A type's name is unique in the workspace, so that a search finds one thing, and no bare participle: `Told`, `Writing`.

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

/// Participles without the ending of most.
const IRREGULAR: &[&str] = &[
    "Begun", "Built", "Done", "Found", "Given", "Heard", "Held", "Hidden", "Kept", "Known", "Left", "Lost",
    "Made", "Met", "Seen", "Sent", "Shown", "Sought", "Taken", "Told", "Written",
];

/// Words with the ending of a participle that are nouns.
const NOUNS: &[&str] =
    &["Ending", "Feed", "Finding", "Need", "Opening", "Seed", "Setting", "Speed", "Tracing"];

/// Types whose whole name is a participle.
pub(super) fn participles(sources: &[RustFile]) -> RatchetCount {
    let mut cases = Vec::new();
    for source in sources {
        for item in source.types().into_iter().filter(|item| source.part(item.line) == CodePart::Source) {
            if is_participle(&item.name) {
                let message = format!("the type `{}` is called by a participle", item.name);
                cases.push(Breach::at(&source.path, item.line, message));
            }
        }
    }
    RatchetCount::of_breaches(
        "participles",
        "types called by a participle",
        "name the thing by a noun",
        cases,
    )
}

fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().skip(1).all(char::is_lowercase);
    let is_regular = (name.ends_with("ed") || name.ends_with("ing")) && !NOUNS.contains(&name);
    is_one_word && is_regular || IRREGULAR.contains(&name)
}

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
    fn a_participle_alone_is_no_name() {
        let code = "struct Told;\nenum Writing {}\ntype Checked = u8;\nstruct Finding;\nstruct FoundRun;\nstruct Speed;\n";
        let measure = participles(&[RustFile::new("crates/a/src/lib.rs", code.to_owned())]);
        assert_snapshot!(shown(&measure.cases), @"
        crates/a/src/lib.rs:1: the type `Told` is called by a participle
        crates/a/src/lib.rs:2: the type `Writing` is called by a participle
        crates/a/src/lib.rs:3: the type `Checked` is called by a participle
        ");
    }

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

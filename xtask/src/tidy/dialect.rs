//! Words that only this project used for things that the field has words for, counted in comments, messages, documents
//! and names of tests.
//!
//! CONVENTIONS.md has the rule: subject, verb, object, with the terms of the field. A single word of this list may be
//! right, so the limit is a rate and not zero: with less than one in two thousand words a reader no longer stumbles.

use std::collections::BTreeMap;

use anyhow::Result;

use super::ratchet::RatchetCount;
use super::{Breach, MARKDOWN, TidyReport, has_extension};
use crate::prose::{self, Passage};
use crate::source::{CodePart, RustFile};
use crate::workspace::Workspace;

/// One word of the dialect in this many words of prose is allowed.
const WORDS_PER_HIT: usize = 2000;

/// People and processes without a name: say caller, worker, process, operator, reader.
const NAMELESS: &[&str] = &["whoever", "whomever", "whom", "somebody", "nobody", "anybody", "everybody"];

/// Vague verbs: say returns, reports, publishes, receives, continues, resumes.
const VAGUE_VERBS: &[&[&str]] = &[
    &["tell"],
    &["tells"],
    &["telling"],
    &["told"],
    &["hears", "of"],
    &["hear", "of"],
    &["heard", "of"],
    &["goes", "on", "with"],
    &["go", "on", "with"],
    &["comes", "to", "nothing"],
    &["came", "to", "nothing"],
    &["in", "the", "midst"],
];

/// A clause in the place of a noun: name the thing. It counts as the opening of a sentence, and before [`CLAUSE_VERBS`].
/// An object such as "says what a step needs" is plain English.
const CLAUSE: &str = "what";
const OPENINGS: &[&str] = &[CLAUSE, "who"];
const CLAUSE_VERBS: &[&str] = &[
    "is", "was", "are", "were", "has", "had", "came", "comes", "goes", "becomes", "became", "stands",
    "belongs", "can", "cannot", "must", "may", "would", "could", "fits", "lacks", "arrived", "ends", "holds",
    "waits", "runs", "failed", "fails",
];

/// A person or process as a clause.
const NAMELESS_CLAUSES: &[&[&str]] =
    &[&["who", "is"], &["who", "was"], &["who", "has"], &["who", "comes"], &["who", "came"]];

/// Copies: their text is not ours to change.
const FOREIGN: &[&str] = &["conformance/", "docs/requirements.md"];

#[derive(Default)]
struct ProseGroup {
    words: usize,
    cases: Vec<Breach>,
}

pub(super) fn measure(
    workspace: &Workspace,
    files: &[String],
    sources: &[RustFile],
) -> Result<(Vec<RatchetCount>, TidyReport)> {
    let mut groups: BTreeMap<String, ProseGroup> = BTreeMap::new();
    for source in sources {
        let passages = prose::of_rust(source, |line| source.part(line) != CodePart::Test);
        groups.entry(group_of(&source.path)).or_default().add(&source.path, &passages);
    }
    let documents = files.iter().filter(|path| has_extension(path, MARKDOWN) && !path.contains("/tests/"));
    for path in documents.filter(|path| !FOREIGN.iter().any(|foreign| path.starts_with(foreign))) {
        let text = workspace.text(path)?.unwrap_or_default();
        groups.entry(group_of(path)).or_default().add(path, &prose::of_markdown(&text));
    }
    Ok(judge(groups))
}

/// Names of tests are short and few: the limit is zero.
pub(super) fn measure_test_names(sources: &[RustFile]) -> RatchetCount {
    let cases = sources.iter().flat_map(test_name_cases).collect();
    let advice = "name the fact with subject, verb, object";
    RatchetCount::of_breaches(
        "dialect test names",
        "words of the private dialect in names of tests",
        advice,
        cases,
    )
}

fn test_name_cases(source: &RustFile) -> Vec<Breach> {
    let names = prose::of_test_names(source);
    names.iter().flat_map(|name| cases(&source.path, name)).collect()
}

/// A crate's folder, and `docs` for the documents of the repository.
fn group_of(path: &str) -> String {
    let mut parts = path.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("crates"), Some(name), _) => format!("crates/{name}"),
        (Some(folder), Some(_), _) => folder.to_owned(),
        _ => "docs".to_owned(),
    }
}

fn judge(groups: BTreeMap<String, ProseGroup>) -> (Vec<RatchetCount>, TidyReport) {
    let mut report = TidyReport::default();
    let mut measures = Vec::new();
    let mut all = (0, 0);
    for (name, ProseGroup { words, cases }) in groups {
        report.notes.push(format!("{name}: {}", rate(cases.len(), words)));
        all = (all.0 + cases.len(), all.1 + words);
        measures.push(RatchetCount {
            key: format!("dialect {name}"),
            path: name,
            line: None,
            subject: "the prose has".to_owned(),
            count: cases.len(),
            unit: "words of the private dialect",
            limit: words / WORDS_PER_HIT,
            advice: "write subject, verb, object with the terms of the field",
            cases,
        });
    }
    report.notes.push(format!("all prose: {}", rate(all.0, all.1)));
    (measures, report)
}

/// Hundredths in whole numbers: a rate is compared by people only.
fn rate(hits: usize, words: usize) -> String {
    let hundredths = hits * 100_000 / words.max(1);
    format!(
        "{hits} words of the private dialect in {words} words, {}.{:02} per 1,000",
        hundredths / 100,
        hundredths % 100
    )
}

impl ProseGroup {
    fn add(&mut self, path: &str, passages: &[Passage]) {
        for passage in passages {
            self.words += passage.words.len();
            self.cases.extend(cases(path, passage));
        }
    }
}

fn cases(path: &str, passage: &Passage) -> Vec<Breach> {
    let mut cases = Vec::new();
    let words = NAMELESS.iter().map(std::slice::from_ref);
    for phrase in words.chain(VAGUE_VERBS.iter().chain(NAMELESS_CLAUSES).copied()) {
        cases.extend(passage.find(phrase).map(|word| case(path, word.line, phrase)));
    }
    let followed = passage.words.iter().zip(passage.words.iter().skip(1));
    let clauses = followed.filter(|(word, next)| {
        let opens = word.starts_sentence && OPENINGS.contains(&word.text.as_str());
        let is_clause = word.text == CLAUSE && CLAUSE_VERBS.contains(&next.text.as_str());
        !next.starts_sentence && (opens || is_clause)
    });
    cases.extend(clauses.map(|(word, next)| case(path, word.line, &[&word.text, &next.text])));
    cases
}

fn case(path: &str, line: usize, phrase: &[&str]) -> Breach {
    Breach::at(path, line, format!("`{}` is private dialect: name the thing that acts", phrase.join(" ")))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::tidy::shown;

    fn check(text: &str) -> (Vec<RatchetCount>, TidyReport) {
        let source = RustFile::new("crates/afl-store/src/queue.rs", text.to_owned());
        let mut groups = BTreeMap::new();
        let mut group = ProseGroup::default();
        group.add(&source.path, &prose::of_rust(&source, |_| true));
        groups.insert(group_of(&source.path), group);
        judge(groups)
    }

    #[test]
    fn the_dialect_is_found_in_comments_and_messages() {
        let text = "// What is late waits, and nobody\n// is told. He asks what is late.\nlet a = \"whoever comes is `whom`\";\nlet b = \"whom\";\n";
        let (measures, report) = check(text);
        assert_snapshot!(shown(&measures[0].cases), @"
        crates/afl-store/src/queue.rs:1: `nobody` is private dialect: name the thing that acts
        crates/afl-store/src/queue.rs:2: `told` is private dialect: name the thing that acts
        crates/afl-store/src/queue.rs:1: `what is` is private dialect: name the thing that acts
        crates/afl-store/src/queue.rs:2: `what is` is private dialect: name the thing that acts
        crates/afl-store/src/queue.rs:3: `whoever` is private dialect: name the thing that acts
        ");
        assert_snapshot!(report.notes[0], @"crates/afl-store: 5 words of the private dialect in 17 words, 294.11 per 1,000");
    }

    #[test]
    fn a_clause_is_no_subject_but_may_be_an_object() {
        let text = "// What a step needs, the plan says.\n// Who asks waits.\n// The plan says what a step needs.\nlet a = \"{what} is {size} too large\";\n";
        assert_snapshot!(shown(&check(text).0[0].cases), @"
        crates/afl-store/src/queue.rs:1: `what a` is private dialect: name the thing that acts
        crates/afl-store/src/queue.rs:2: `who asks` is private dialect: name the thing that acts
        ");
    }

    #[test]
    fn the_dialect_is_found_in_names_of_tests() {
        let text = "fn f4_what_waits_is_told() {}\nfn a_plan_says_what_a_step_needs() {}\nfn tell_it() {}\n";
        let source = RustFile::new("crates/afl-store/tests/queue.rs", text.to_owned());
        assert_snapshot!(shown(&test_name_cases(&source)), @"
        crates/afl-store/tests/queue.rs:1: `told` is private dialect: name the thing that acts
        crates/afl-store/tests/queue.rs:1: `what waits` is private dialect: name the thing that acts
        ");
    }

    #[test]
    fn one_in_two_thousand_words_is_allowed() {
        let text = "// nobody\n".to_owned() + &"// one two three four\n".repeat(500);
        let (measures, _) = check(&text);
        assert_eq!((measures[0].count, measures[0].limit), (1, 1));
    }

    #[test]
    fn documents_of_the_repository_are_one_group() {
        assert_eq!(
            [group_of("README.md"), group_of("docs/a.md"), group_of("crates/a/b.md")],
            ["docs", "docs", "crates/a"]
        );
    }
}

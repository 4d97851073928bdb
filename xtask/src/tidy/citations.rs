//! Every id that code or a document cites is explained in `docs/`.
//!
//! Promises, faults and traps (`G6`, `F8`, `T5`) stand in promises.md, moves of a task (`M4`) in task-moves.md,
//! decisions (`C19`) and the sections of the documents in documents.md, requirements in requirements.md.
//! In the other direction, each test that promises.md links names the id.

use std::collections::BTreeSet;

use anyhow::Result;

use super::ratchet::RatchetCount;
use super::{Breach, documents, links};
use crate::requirements;
use crate::source::{CodePart, RustFile};
use crate::workspace::Workspace;

const PROMISES: &str = "docs/promises.md";
const EXPLAINED_IN: &[&str] = &[PROMISES, "docs/task-moves.md", DOCUMENTS];
const DOCUMENTS: &str = "docs/documents.md";

const KINDS: &[char] = &['G', 'F', 'T', 'M', 'C'];
const REQUIREMENTS: &[&str] = &["SDK-", "AGT-", "EVT-", "RT-", "WP-", "XR-"];

/// Pages that are no part of the repository.
const OUTSIDE: &[&str] = &["of the design", "design page", "reliability page"];

pub(super) fn measure(workspace: &Workspace, files: &[String], sources: &[RustFile]) -> Result<RatchetCount> {
    let mut known = ExplainedIds::default();
    for path in EXPLAINED_IN.iter().filter(|path| files.iter().any(|file| file == **path)) {
        known.learn(&workspace.text(path)?.unwrap_or_default());
    }
    known.requirements = requirements::ids(workspace)?;

    let mut findings = Vec::new();
    for source in sources {
        findings.extend(check_source(source, &known));
    }
    for path in documents::by_hand(files) {
        findings.extend(check_text(path, &workspace.text(path)?.unwrap_or_default(), &known));
    }
    findings.extend(check_promises(&workspace.text(PROMISES)?.unwrap_or_default(), sources));
    let advice = "correct each or explain it";
    Ok(RatchetCount::of_breaches("citations", "citations that docs/ does not explain", advice, findings))
}

/// The ids that the documents explain.
#[derive(Default)]
struct ExplainedIds {
    ids: BTreeSet<String>,
    /// `003` and `003 §9`.
    sections: BTreeSet<String>,
    requirements: Vec<String>,
}

impl ExplainedIds {
    /// An item or a row explains the ids that it opens with: `- **G1 Atomic step.** …`, `| C7, C8 | … |`.
    /// A heading `## Document 003: …` opens the list of its sections.
    fn learn(&mut self, text: &str) {
        let mut document = None;
        for line in text.lines() {
            if line.starts_with('#') {
                document = cited_documents(line).pop().map(|(number, _)| number);
                self.sections.extend(document.clone());
            } else if let Some(document) = &document {
                let sections = line.match_indices('§').flat_map(|(at, _)| sections(&line[at..]));
                self.sections.extend(sections.map(|section| format!("{document} §{section}")));
            }
            let item = line.trim_start_matches(['-', '|', '*', ' ']);
            let opening = tokens(item).filter(|token| !token.is_empty());
            if item.len() < line.len() {
                self.ids.extend(opening.take_while(|token| is_id(token)).map(str::to_owned));
            }
        }
    }

    /// `RT-17` is explained by `RT-17-a`.
    fn has_requirement(&self, id: &str) -> bool {
        self.requirements
            .iter()
            .any(|known| known.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')))
    }
}

fn check_source(source: &RustFile, known: &ExplainedIds) -> Vec<Breach> {
    let mut findings = check_text(&source.path, &source.comments, known);
    for function in source.functions().iter().filter(|function| source.part(function.line) == CodePart::Test)
    {
        let ids = function.name.split('_').map(str::to_uppercase).take_while(|part| is_id(part));
        findings.extend(ids.filter_map(|id| unknown_id(&id, known, &source.path, function.line)));
    }
    findings
}

/// The links of each item whose file has its id neither in a comment nor at the start of a test's name.
fn check_promises(text: &str, sources: &[RustFile]) -> Vec<Breach> {
    let mut findings = Vec::new();
    let mut id = None;
    for (index, line) in text.lines().enumerate() {
        if let Some(item) = line.strip_prefix("- **") {
            id = tokens(item).next().filter(|token| is_id(token));
        } else if line.starts_with('#') {
            id = None;
        }
        let Some(id) = id else { continue };
        for link in links::links(line) {
            let target = links::resolve(PROMISES, link.target);
            let linked = sources.iter().find(|source| source.path == target);
            if linked.is_some_and(|source| !cites(source, id)) {
                let message =
                    format!("`{target}` does not name `{id}`: cite it at the test or take out the link");
                findings.push(Breach::at(PROMISES, index + 1, message));
            }
        }
    }
    findings
}

fn cites(source: &RustFile, id: &str) -> bool {
    let mut names = source.functions().into_iter().map(|function| function.name.to_uppercase());
    let in_name = names.any(|name| name.split('_').take_while(|part| is_id(part)).any(|part| part == id));
    in_name || tokens(&source.comments).any(|token| token == id)
}

fn check_text(path: &str, text: &str, known: &ExplainedIds) -> Vec<Breach> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (line_number, line) = (index + 1, without_code(line));
        let ids = tokens(&line).filter(|token| is_id(token));
        findings.extend(ids.filter_map(|id| unknown_id(id, known, path, line_number)));
        for id in requirement_ids(&line).filter(|id| !known.has_requirement(id)) {
            let message = format!("`{id}` is no requirement of docs/requirements.md: correct the id");
            findings.push(Breach::at(path, line_number, message));
        }
        for (document, sections) in cited_documents(&line) {
            let cited =
                sections.iter().map(|section| format!("{document} §{section}")).chain([document.clone()]);
            for place in cited.filter(|place| !known.sections.contains(place)) {
                let message =
                    format!("`document {place}` is not listed in {DOCUMENTS}: correct it or list it");
                findings.push(Breach::at(path, line_number, message));
            }
        }
        for phrase in OUTSIDE.iter().filter(|phrase| line.contains(**phrase)) {
            let message = format!("`{phrase}` is no part of the repository: cite an id that docs/ explains");
            findings.push(Breach::at(path, line_number, message));
        }
    }
    findings
}

fn unknown_id(id: &str, known: &ExplainedIds, path: &str, line: usize) -> Option<Breach> {
    let message = || format!("`{id}` is not explained in {}: correct or explain it", EXPLAINED_IN.join(", "));
    (!known.ids.contains(id)).then(|| Breach::at(path, line, message()))
}

fn is_id(token: &str) -> bool {
    let digits = token.strip_prefix(KINDS).unwrap_or_default();
    (1..=2).contains(&digits.len()) && digits.chars().all(|digit| digit.is_ascii_digit())
}

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
}

fn requirement_ids(line: &str) -> impl Iterator<Item = &str> {
    let pieces = line.split(|letter: char| !letter.is_alphanumeric() && !"-.".contains(letter));
    let ids = pieces.map(|piece| piece.trim_end_matches(['.', '-']));
    ids.filter(|id| REQUIREMENTS.iter().any(|prefix| id.strip_prefix(prefix).is_some_and(starts_section)))
}

fn starts_section(rest: &str) -> bool {
    rest.trim_start_matches('W').starts_with(|letter: char| letter.is_ascii_digit())
}

/// The numbers of the documents that a line cites, each with its sections: `document 003 §9-10`, `003 §12.1`.
fn cited_documents(line: &str) -> Vec<(String, Vec<String>)> {
    let mut cited = Vec::new();
    for (at, _) in line.match_indices("00") {
        let (before, rest) = line.split_at(at);
        let is_number = rest.len() >= 3
            && rest.is_char_boundary(3)
            && rest[2..3].starts_with(|digit: char| digit.is_ascii_digit())
            && !rest[3..].starts_with(char::is_alphanumeric)
            && !before.ends_with(|letter: char| letter.is_alphanumeric());
        let sections = rest.get(3..).map(sections).unwrap_or_default();
        let word = before.trim_end().rsplit(' ').next().unwrap_or_default().to_lowercase();
        let is_named =
            word.trim_start_matches(|letter: char| !letter.is_alphanumeric()).starts_with("document");
        if is_number && (is_named || !sections.is_empty()) {
            cited.push((rest[..3].to_owned(), sections));
        }
    }
    cited
}

/// The sections at the start of `rest`: ` §9-10` has 9 and 10.
fn sections(rest: &str) -> Vec<String> {
    let Some(numbers) = rest.trim_start().strip_prefix('§') else { return Vec::new() };
    let end = numbers.find(|letter: char| !letter.is_ascii_digit() && !".-–".contains(letter));
    let numbers = &numbers[..end.unwrap_or(numbers.len())];
    let numbers = numbers.split(['-', '–']).map(|number| number.trim_end_matches('.'));
    numbers.filter(|number| !number.is_empty()).map(str::to_owned).collect()
}

/// Blanks the text between backticks on this line.
fn without_code(line: &str) -> String {
    let pieces = line.split('`').enumerate();
    pieces.map(|(index, piece)| if index % 2 == 0 { piece } else { " " }).collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::tidy::shown;

    const EXPLAINED: &str = "# Page\n\n- **G1 Atomic.** As C9 says.\n| C7, C8 | states |\n\n## Document 003: Runtime\n\n- §9 Iterations, §12.1 Continue\n\n## Other\n";

    fn known() -> ExplainedIds {
        let mut known = ExplainedIds { requirements: vec!["RT-17-a".to_owned()], ..ExplainedIds::default() };
        known.learn(EXPLAINED);
        known
    }

    #[test]
    fn a_test_that_a_promise_links_names_it() {
        let files = [
            ("crates/a/tests/b.rs", "fn f2_g1_a() {}\n"),
            ("crates/a/src/c.rs", "// G12, G2: why\nlet a = \"G1\";\n"),
        ];
        let sources = files.map(|(path, text)| RustFile::new(path, text.to_owned()));
        let text = "- **G1 One.** [b](../crates/a/tests/b.rs),\n  [c](../crates/a/src/c.rs), [d](x.md).\n\
            - **G2 Two.** [c](../crates/a/src/c.rs).\n\n# Rest\n\n[c](../crates/a/src/c.rs)\n";
        assert_snapshot!(shown(&check_promises(text, &sources)), @"docs/promises.md:2: `crates/a/src/c.rs` does not name `G1`: cite it at the test or take out the link");
    }

    #[test]
    fn an_item_or_a_row_explains_the_ids_it_opens_with() {
        assert_eq!(Vec::from_iter(known().ids), ["C7", "C8", "G1"]);
        assert_eq!(Vec::from_iter(known().sections), ["003", "003 §12.1", "003 §9"]);
    }

    #[test]
    fn an_id_that_is_explained_nowhere_is_found_in_comments_and_names_of_tests() {
        let text = "// G1, C7-C9 and `n.F0`; T5.\nlet a = \"F8\";\n#[cfg(test)]\nmod tests {\n    fn g1_g2_a_fact() {}\n}\n";
        assert_snapshot!(shown(&check_source(&RustFile::new("crates/a/src/b.rs", text.to_owned()), &known())), @"
        crates/a/src/b.rs:1: `C9` is not explained in docs/promises.md, docs/task-moves.md, docs/documents.md: correct or explain it
        crates/a/src/b.rs:1: `T5` is not explained in docs/promises.md, docs/task-moves.md, docs/documents.md: correct or explain it
        crates/a/src/b.rs:5: `G2` is not explained in docs/promises.md, docs/task-moves.md, docs/documents.md: correct or explain it
        ");
    }

    #[test]
    fn sections_requirements_and_pages_are_checked() {
        let text = "See document 003 §9-10, (003 §12.1.) and documents 002.\nRT-17, RT-17-a, RT-1, RT-x.\nA trap of the design: 1003 of 7.\n";
        assert_snapshot!(shown(&check_text("README.md", text, &known())), @"
        README.md:1: `document 003 §10` is not listed in docs/documents.md: correct it or list it
        README.md:1: `document 002` is not listed in docs/documents.md: correct it or list it
        README.md:2: `RT-1` is no requirement of docs/requirements.md: correct the id
        README.md:3: `of the design` is no part of the repository: cite an id that docs/ explains
        ");
    }
}

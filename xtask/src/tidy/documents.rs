//! Documents that people write stay readable: short lines, sentences and paragraphs, and a short map.

use anyhow::Result;

use super::ratchet::RatchetCount;
use super::{Breach, MARKDOWN, has_extension};
use crate::prose;
use crate::workspace::Workspace;

const MAX_LINE: usize = 120;
const MAX_SENTENCE_WORDS: usize = 25;
const MAX_PARAGRAPH_WORDS: usize = 80;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const MAX_ARCHITECTURE_LINES: usize = 300;

/// Generated from the help texts, and copied from the requirements.
const NOT_BY_HAND: &[&str] = &["docs/cli.md", "docs/requirements.md"];

/// The documents of the repository that people write.
pub(super) fn by_hand(files: &[String]) -> impl Iterator<Item = &String> {
    let markdown = files.iter().filter(|path| has_extension(path, MARKDOWN));
    let documents = markdown.filter(|path| !path.contains('/') || path.starts_with("docs/"));
    documents.filter(|path| !NOT_BY_HAND.contains(&path.as_str()))
}

pub(super) fn measure(workspace: &Workspace, files: &[String]) -> Result<Vec<RatchetCount>> {
    let mut measures = Vec::new();
    for path in by_hand(files) {
        let cases = check_text(path, &workspace.text(path)?.unwrap_or_default());
        measures.push(RatchetCount {
            key: format!("document {path}"),
            path: path.clone(),
            line: None,
            subject: "the document has".to_owned(),
            count: cases.len(),
            unit: "parts that are too long",
            limit: 0,
            advice: "shorten each",
            cases,
        });
    }
    Ok(measures)
}

fn check_text(path: &str, text: &str) -> Vec<Breach> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if path == ARCHITECTURE && lines > MAX_ARCHITECTURE_LINES {
        let message =
            format!("{lines} lines, {MAX_ARCHITECTURE_LINES} at most: keep the map, move the rest to docs");
        findings.push(Breach::on(path, message));
    }
    for (index, line) in text.lines().enumerate() {
        let length = line.chars().count();
        if length > MAX_LINE {
            let message = format!("a line of {length} characters, {MAX_LINE} at most");
            findings.push(Breach::at(path, index + 1, message));
        }
    }
    for passage in prose::of_markdown(text) {
        let words = passage.words.len();
        if words > MAX_PARAGRAPH_WORDS {
            let message = format!("a paragraph of {words} words, {MAX_PARAGRAPH_WORDS} at most");
            findings.push(Breach::at(path, passage.words[0].line, message));
        }
        for (line, words) in passage.sentences().into_iter().filter(|(_, words)| *words > MAX_SENTENCE_WORDS)
        {
            let message = format!("a sentence of {words} words, {MAX_SENTENCE_WORDS} at most");
            findings.push(Breach::at(path, line, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::tidy::shown;

    #[test]
    fn long_lines_sentences_and_paragraphs_are_found() {
        let sentence = |words: usize| format!("{}.", vec!["at"; words].join(" "));
        let fine = format!("{}\n\n{}\n\n- {}\n", "x".repeat(120), sentence(25), "A word. ".repeat(40).trim());
        assert_eq!(shown(&check_text("README.md", &fine.replace(" A", "\n  A"))), "");
        let long = format!("{}\n\n{}\n\n{}\n", "x".repeat(121), sentence(26), "A word.\n".repeat(41));
        assert_snapshot!(shown(&check_text("README.md", &long)), @"
        README.md:1: a line of 121 characters, 120 at most
        README.md:3: a sentence of 26 words, 25 at most
        README.md:5: a paragraph of 82 words, 80 at most
        ");
    }

    #[test]
    fn the_map_stays_short() {
        assert_eq!(shown(&check_text(ARCHITECTURE, &"line\n\n".repeat(150))), "");
        assert_snapshot!(shown(&check_text(ARCHITECTURE, &"\n".repeat(301))), @"ARCHITECTURE.md: 301 lines, 300 at most: keep the map, move the rest to docs");
    }

    #[test]
    fn generated_documents_and_fixtures_are_not_judged() {
        let files = ["README.md", "docs/cli.md", "docs/design/outbox.md", "crates/a/tests/cmd/b.md"];
        let files: Vec<String> = files.iter().map(ToString::to_string).collect();
        assert_eq!(by_hand(&files).collect::<Vec<_>>(), ["README.md", "docs/design/outbox.md"]);
    }
}

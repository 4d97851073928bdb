//! Every relative link of a document leads to a file, and a name that is a link stands in that file.

use anyhow::Result;

use super::{Breach, documents};
use crate::source::is_word;
use crate::workspace::Workspace;

pub(super) fn check(workspace: &Workspace, files: &[String]) -> Result<Vec<Breach>> {
    let mut findings = Vec::new();
    for path in documents::by_hand(files) {
        let text = workspace.text(path)?.unwrap_or_default();
        for link in links(&text) {
            let problem = judge(&link, path, files, |target| workspace.text(target))?;
            findings.extend(problem.map(|message| Breach::at(path, link.line, message)));
        }
    }
    Ok(findings)
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct DocumentLink<'a> {
    pub(super) line: usize,
    label: &'a str,
    pub(super) target: &'a str,
}

/// The links `[label](target)` outside blocks of code, those to other sites and to the same document left out.
pub(super) fn links(text: &str) -> Vec<DocumentLink<'_>> {
    let mut links = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        let mut rest = if fenced { "" } else { line };
        while let Some((before, after)) = rest.split_once("](") {
            let Some((target, behind)) = after.split_once(')') else { break };
            let label = before.rsplit('[').next().unwrap_or_default();
            if !target.contains(':') && !target.starts_with('#') {
                links.push(DocumentLink { line: index + 1, label, target });
            }
            rest = behind;
        }
    }
    links
}

/// The fault of a link in the document at `path`.
fn judge(
    link: &DocumentLink<'_>,
    path: &str,
    files: &[String],
    text: impl Fn(&str) -> Result<Option<String>>,
) -> Result<Option<String>> {
    let target = resolve(path, link.target.split('#').next().unwrap_or_default());
    let folder = format!("{target}/");
    let targets: Vec<&String> =
        files.iter().filter(|file| **file == target || file.starts_with(&folder)).collect();
    if targets.is_empty() {
        return Ok(Some(format!("there is no `{target}`: correct the link")));
    }
    let Some(name) = name_of(link.label) else { return Ok(None) };
    // A module is named by its file or folder.
    if target.trim_end_matches(".rs").split('/').any(|part| part == name) {
        return Ok(None);
    }
    for file in targets {
        if text(file)?.is_some_and(|text| text.split(|letter| !is_word(letter)).any(|word| word == name)) {
            return Ok(None);
        }
    }
    Ok(Some(format!("`{name}` does not stand in `{target}`: correct the name or the link")))
}

/// The path from the root of what a document links to.
pub(super) fn resolve(document: &str, target: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The last part of a label such as `` `Queue::claim` ``; nothing for a label in words or a path.
fn name_of(label: &str) -> Option<&str> {
    let code = label.strip_prefix('`')?.strip_suffix('`')?;
    let name = code.rsplit("::").next()?.trim_end_matches("()").trim_end_matches('!');
    (!name.is_empty() && name.chars().all(is_word)).then_some(name)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn check(path: &str, text: &str) -> String {
        let files = ["docs/glossary.md", "crates/a/src/queue/claim.rs", "crates/a/src/lease.rs"];
        let files: Vec<String> = files.iter().map(ToString::to_string).collect();
        let texts = |_: &str| Ok(Some("impl Lease { fn extend(&self) {} }".to_owned()));
        let problems = links(text).into_iter().filter_map(|link| {
            let problem = judge(&link, path, &files, texts).expect("the texts are at hand");
            problem.map(|problem| format!("{}: {problem}", link.line))
        });
        problems.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_link_leads_somewhere() {
        let fine = "[glossary](docs/glossary.md#lease) [queue](crates/a/src/queue) [x](https://example.org) [y](#z)\n```\n[a](b)\n```\n";
        assert_eq!(check("README.md", fine), "");
        assert_eq!(check("docs/design/outbox.md", "[glossary](../glossary.md)"), "");
        assert_snapshot!(check("docs/promises.md", "One\n[a](glossary.md) and [b](crates/a)\n"), @"2: there is no `docs/crates/a`: correct the link");
    }

    #[test]
    fn a_name_that_is_a_link_stands_in_its_file() {
        let fine = "[`Lease::extend()`](crates/a/src/lease.rs), [`claim`](crates/a/src/queue/claim.rs)";
        assert_eq!(check("README.md", fine), "");
        assert_snapshot!(check("README.md", "[`Lease::renew`](crates/a/src/lease.rs)"), @"1: `renew` does not stand in `crates/a/src/lease.rs`: correct the name or the link");
    }
}

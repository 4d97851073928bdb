//! `cargo xtask requirements`: which requirements of `docs/requirements.md` no test names.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::source::RustFile;
use crate::tidy::Breach;
use crate::workspace::Workspace;

const LIST: &str = "docs/requirements.md";
const TESTED_FOLDERS: &[&str] = &["crates/", "xtask/", "fuzz/", "python/"];

#[derive(Clone, Copy)]
pub(crate) enum Detail {
    Ids,
    TestCounts,
}

/// The requirements that one of the specification's documents makes.
#[derive(Debug)]
struct DocumentRequirements {
    title: String,
    ids: Vec<String>,
}

/// A test's word that it checks a requirement.
struct CoverageClaim {
    id: String,
    path: String,
    line: usize,
}

pub(crate) fn run(workspace: &Workspace, detail: Detail) -> Result<ExitCode> {
    let documents = documents(workspace)?;
    let claims = claims(workspace, &workspace.files()?)?;
    print!("{}", report(&documents, &claims, detail));
    let unknown = unknown_claims(&documents, &claims);
    for finding in &unknown {
        eprintln!("{finding}");
    }
    Ok(if unknown.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The claims of tests whose requirement does not exist.
pub(crate) fn check(workspace: &Workspace, files: &[String]) -> Result<Vec<Breach>> {
    Ok(unknown_claims(&documents(workspace)?, &claims(workspace, files)?))
}

/// The ids of all requirements.
pub(crate) fn ids(workspace: &Workspace) -> Result<Vec<String>> {
    Ok(documents(workspace)?.into_iter().flat_map(|document| document.ids).collect())
}

fn documents(workspace: &Workspace) -> Result<Vec<DocumentRequirements>> {
    let list = workspace.text(LIST)?.with_context(|| format!("{LIST} is not text"))?;
    Ok(parse(&list))
}

fn claims(workspace: &Workspace, files: &[String]) -> Result<Vec<CoverageClaim>> {
    let mut claims = Vec::new();
    for path in files.iter().filter(|path| TESTED_FOLDERS.iter().any(|folder| path.starts_with(folder))) {
        claims.extend(claims_of(path, || workspace.text(path))?);
    }
    Ok(claims)
}

/// A document is a heading `## 003 — Runtime (RT)`, a requirement a line `268. RT-2-a D — text`.
fn parse(list: &str) -> Vec<DocumentRequirements> {
    let mut documents: Vec<DocumentRequirements> = Vec::new();
    for line in list.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            documents.push(DocumentRequirements { title: title.to_owned(), ids: Vec::new() });
        } else if let (Some(id), Some(document)) = (requirement_id(line), documents.last_mut()) {
            document.ids.push(id.to_owned());
        }
    }
    documents
}

fn requirement_id(line: &str) -> Option<&str> {
    let (number, rest) = line.split_once(". ")?;
    number.parse::<u32>().ok()?;
    let (id, text) = rest.split_once(' ')?;
    (id.contains('-') && text.contains("— ")).then_some(id)
}

/// The ids of the `covers:` comments in a Rust or Python file.
fn claims_of(path: &str, text: impl Fn() -> Result<Option<String>>) -> Result<Vec<CoverageClaim>> {
    let (opening, text) = match path.rsplit_once('.') {
        // The comment layer, so that a program quoted in a test claims nothing.
        Some((_, "rs")) => ("// covers:", text()?.map(|text| RustFile::new(path, text).comments)),
        Some((_, "py")) => ("# covers:", text()?),
        _ => return Ok(Vec::new()),
    };
    let mut claims = Vec::new();
    for (index, line) in text.unwrap_or_default().lines().enumerate() {
        let ids = line.trim().strip_prefix(opening).into_iter().flat_map(|ids| ids.split(','));
        claims.extend(ids.map(|id| CoverageClaim {
            id: id.trim().to_owned(),
            path: path.to_owned(),
            line: index + 1,
        }));
    }
    Ok(claims)
}

fn report(documents: &[DocumentRequirements], claims: &[CoverageClaim], detail: Detail) -> String {
    let covered: BTreeSet<&String> = claims.iter().map(|claim| &claim.id).collect();
    let mut lines = Vec::new();
    let (mut all_covered, mut all) = (0, 0);
    for document in documents.iter().filter(|document| !document.ids.is_empty()) {
        let (named, open): (Vec<&String>, Vec<&String>) =
            document.ids.iter().partition(|id| covered.contains(id));
        all_covered += named.len();
        all += document.ids.len();
        lines.push(format!("{}: {} of {} covered", document.title, named.len(), document.ids.len()));
        match detail {
            Detail::TestCounts => {}
            Detail::Ids => lines.extend(open.chunks(IDS_PER_LINE).map(id_line)),
        }
    }
    lines.push(format!("{all_covered} of {all} requirements covered, {} uncovered\n", all - all_covered));
    lines.join("\n")
}

const IDS_PER_LINE: usize = 8;

fn id_line(ids: &[&String]) -> String {
    let ids: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
    format!("  {}", ids.join(", "))
}

fn unknown_claims(documents: &[DocumentRequirements], claims: &[CoverageClaim]) -> Vec<Breach> {
    let known: BTreeSet<&String> = documents.iter().flat_map(|document| &document.ids).collect();
    claims
        .iter()
        .filter(|claim| !known.contains(&claim.id))
        .map(|CoverageClaim { id, path, line }| {
            Breach::at(
                path,
                *line,
                format!("`{id}` is no requirement of {LIST}: correct the id or take it out"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    const LIST: &str = "# Checklist\n\nIds: 000.\n\n## 003 — Runtime (RT)\n\n### §2 Steps\n\
        1. RT-2-a D — A step.\n2. RT-2-b M — Another step.\n3. RT-W1-a N — A note.\n\n\
        ## Cross-document (XR)\n4. XR-1 — Six profiles.\n";

    fn check(files: &[(&str, &str)], detail: Detail) -> String {
        let documents = parse(LIST);
        let claims = files.iter().flat_map(|(path, text)| {
            claims_of(path, || Ok(Some((*text).to_owned()))).expect("the text is at hand")
        });
        let claims: Vec<CoverageClaim> = claims.collect();
        let unknown = unknown_claims(&documents, &claims);
        format!("{}{}", report(&documents, &claims, detail), crate::tidy::shown(&unknown))
    }

    #[test]
    fn uncovered_requirements_are_listed_by_document() {
        let rust = ("crates/a/tests/b.rs", "    // covers: RT-2-b, XR-1\nfn a() {}\n");
        assert_snapshot!(check(&[rust], Detail::Ids), @"
        003 — Runtime (RT): 1 of 3 covered
          RT-2-a, RT-W1-a
        Cross-document (XR): 1 of 1 covered
        2 of 4 requirements covered, 2 uncovered
        ");
        let python = ("python/tests/test_a.py", "# covers: RT-2-a\n");
        assert_snapshot!(check(&[rust, python], Detail::TestCounts), @"
        003 — Runtime (RT): 2 of 3 covered
        Cross-document (XR): 1 of 1 covered
        3 of 4 requirements covered, 1 uncovered
        ");
    }

    #[test]
    fn a_claim_of_an_unknown_requirement_is_an_error() {
        let rust = ("crates/a/src/b.rs", "fn a() {}\n// covers: RT-9-z\n");
        assert_snapshot!(check(&[rust], Detail::TestCounts), @"
        003 — Runtime (RT): 0 of 3 covered
        Cross-document (XR): 0 of 1 covered
        0 of 4 requirements covered, 4 uncovered
        crates/a/src/b.rs:2: `RT-9-z` is no requirement of docs/requirements.md: correct the id or take it out
        ");
    }

    #[test]
    fn a_literal_and_a_text_file_claim_nothing() {
        let rust = ("xtask/src/b.rs", "let a = \"\n// covers: RT-9-z\n\";");
        let text = ("crates/a/README.md", "// covers: RT-9-z");
        assert_snapshot!(check(&[rust, text], Detail::TestCounts), @"
        003 — Runtime (RT): 0 of 3 covered
        Cross-document (XR): 0 of 1 covered
        0 of 4 requirements covered, 4 uncovered
        ");
    }
}

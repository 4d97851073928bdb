//! The copies that the project keeps of the shared conformance cases and requirements stay true.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::tidy::{Breach, TidyReport};
use crate::workspace::Workspace;

/// The original, beside the checkout, and our copy of it; both a file or both a folder.
const COPIES: &[(&str, &str)] =
    &[("../shared/conformance", "conformance"), ("../shared/requirements.md", "docs/requirements.md")];

/// Contents by path below the copied file or folder.
type Files = BTreeMap<String, Vec<u8>>;

pub(crate) fn check(workspace: &Workspace) -> Result<TidyReport> {
    let mut report = TidyReport::default();
    for (original, copy) in COPIES {
        let original_path = workspace.root.join(original);
        if !original_path.exists() {
            report.notes.push(format!("{copy} is compared with nothing: there is no {original}"));
            continue;
        }
        let originals = files(&original_path)?;
        let copies = files(&workspace.root.join(copy))?;
        report.notes.push(format!("{copy} is compared with {} files of {original}", originals.len()));
        report.findings.extend(compare((original, &originals), (copy, &copies)));
    }
    Ok(report)
}

fn compare((original, originals): (&str, &Files), (copy, copies): (&str, &Files)) -> Vec<Breach> {
    let mut findings = Vec::new();
    for (name, contents) in originals {
        let fault = match copies.get(name) {
            None => "is missing",
            Some(ours) if ours != contents => "differs",
            Some(_) => continue,
        };
        findings.push(Breach::on(&format!("{copy}{name}"), format!("{fault}: copy {original}{name}")));
    }
    findings
}

/// All files at `path`: a file by the empty name, those of a folder by `/name`; none when nothing is there.
fn files(path: &Path) -> Result<Files> {
    let mut found = Files::new();
    let mut open = vec![(path.to_path_buf(), String::new())];
    while let Some((path, name)) = open.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))? {
                let entry = entry.with_context(|| format!("cannot list {}", path.display()))?;
                open.push((entry.path(), format!("{name}/{}", entry.file_name().to_string_lossy())));
            }
        } else if path.exists() {
            let contents = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            found.insert(name, contents);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(originals: &[(&str, &str)], copies: &[(&str, &str)]) -> Vec<String> {
        let files = |pairs: &[(&str, &str)]| -> Files {
            pairs.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
        };
        let findings = compare(("../shared/cases", &files(originals)), ("cases", &files(copies)));
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_case_is_here_and_the_same() {
        let originals = [("/a.afl", "one"), ("/deep/b.json", "two"), ("/c.afl", "three")];
        assert_eq!(
            check(&originals, &[("/a.afl", "one"), ("/c.afl", "3")]),
            [
                "cases/c.afl: differs: copy ../shared/cases/c.afl",
                "cases/deep/b.json: is missing: copy ../shared/cases/deep/b.json",
            ]
        );
    }

    #[test]
    fn a_case_of_our_own_is_fine() {
        assert_eq!(check(&[("/a.afl", "one")], &[("/a.afl", "one"), ("/b.afl", "two")]), [""; 0]);
    }
}

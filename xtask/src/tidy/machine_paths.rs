//! No text of the repository names a path of one machine.

use anyhow::Result;

use super::Breach;
use crate::workspace::Workspace;

/// Top folders that differ from machine to machine.
const MACHINE_FOLDERS: &[&str] = &["home", "root", "Users", "work", "workspace"];

/// Copies and generated files: their text is not ours to change.
const FOREIGN: &[&str] = &["conformance/", "docs/requirements.md", "Cargo.lock"];

pub(super) fn check(workspace: &Workspace, files: &[String]) -> Result<Vec<Breach>> {
    let mut findings = Vec::new();
    for path in files.iter().filter(|path| !FOREIGN.iter().any(|foreign| path.starts_with(foreign))) {
        if let Some(text) = workspace.text(path)? {
            findings.extend(check_text(path, &text));
        }
    }
    Ok(findings)
}

fn check_text(path: &str, text: &str) -> Vec<Breach> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(folder) = machine_folder(line) {
            let message =
                format!("a path under `/{folder}` is of one machine: write it relative to the root");
            findings.push(Breach::at(path, index + 1, message));
        }
    }
    findings
}

/// The machine's folder that an absolute path in this line starts with.
fn machine_folder(line: &str) -> Option<&'static str> {
    let within_path = |before: char| before.is_alphanumeric() || "_-.~$)}]>*".contains(before);
    line.match_indices('/').filter(|(at, _)| !line[..*at].ends_with(within_path)).find_map(|(at, _)| {
        let (top, _) = line[at + 1..].split_once('/')?;
        MACHINE_FOLDERS.iter().copied().find(|folder| *folder == top)
    })
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::tidy::shown;

    #[test]
    fn a_machines_path_is_found() {
        // Written with `~` so that this file passes its own rule.
        let text = "see ~home/ann/x\nsee (~Users/ann/x)\nfile://~root/x\n".replace('~', "/");
        assert_snapshot!(shown(&check_text("docs/guide.md", &text)), @"
        docs/guide.md:1: a path under `/home` is of one machine: write it relative to the root
        docs/guide.md:2: a path under `/Users` is of one machine: write it relative to the root
        docs/guide.md:3: a path under `/root` is of one machine: write it relative to the root
        ");
    }

    #[test]
    fn a_relative_path_and_an_address_are_fine() {
        let text = "docs/home/x and ../root/x and https://example.org/work/x and $DIR/home/x\n";
        assert_eq!(shown(&check_text("docs/guide.md", text)), "");
    }
}

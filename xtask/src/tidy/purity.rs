//! The pure crates stay pure: nothing in their dependency tree does I/O, reads a clock or draws a number.

use anyhow::Result;

use super::Breach;
use crate::workspace::{Package, Workspace, output};

const PURE: &[&str] = &["afl-lang", "afl-engine"];

const IMPURE: &[&str] = &[
    "async-io",
    "async-std",
    "chrono",
    "fastrand",
    "fs-err",
    "getrandom",
    "hyper",
    "jiff",
    "memmap2",
    "mio",
    "notify",
    "rand",
    "rayon",
    "reqwest",
    "rusqlite",
    "smol",
    "socket2",
    "tempfile",
    "time",
    "tokio",
    "ureq",
    "uuid",
    "walkdir",
    "web-time",
];

pub(super) fn check(workspace: &Workspace, packages: &[Package]) -> Result<Vec<Breach>> {
    let mut findings = Vec::new();
    for name in PURE.iter().filter(|name| packages.iter().any(|package| package.name == **name)) {
        let mut tree = workspace.cargo();
        tree.args(["tree", "--package", name, "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
        findings.extend(check_tree(name, &output(&mut tree)?));
    }
    Ok(findings)
}

/// `tree` has a line `name v1.2.3 …` for each crate.
fn check_tree(pure: &str, tree: &str) -> Vec<Breach> {
    let used = |impure: &&str| tree.lines().any(|line| line.split(' ').next() == Some(*impure));
    let finding = |impure: &str| {
        let message = format!(
            "`{impure}` is in the tree of `{pure}`, which is pure: take time, randomness and files as \
             arguments; see `cargo tree -p {pure} -e normal -i {impure}`"
        );
        Breach::on(&format!("crates/{pure}/Cargo.toml"), message)
    };
    IMPURE.iter().copied().filter(|impure| used(impure)).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::tidy::shown;

    #[test]
    fn an_impure_crate_is_found_at_any_depth() {
        let tree = "afl-lang v0.1.0 (crates/afl-lang)\nserde v1.0.0\nsha2 v0.11.0\ntokio v1.0.0\n";
        assert_snapshot!(shown(&check_tree("afl-lang", tree)), @"crates/afl-lang/Cargo.toml: `tokio` is in the tree of `afl-lang`, which is pure: take time, randomness and files as arguments; see `cargo tree -p afl-lang -e normal -i tokio`");
    }

    #[test]
    fn a_crate_of_a_similar_name_is_none_of_them() {
        assert_eq!(shown(&check_tree("afl-lang", "timeless v1.0.0\ntime-format v1.0.0 (*)\n")), "");
    }
}

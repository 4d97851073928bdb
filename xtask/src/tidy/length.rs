//! The ratchet on the length of files and functions.
//!
//! `xtask/ratchet.txt` holds what is longer than the limits. Entries only shrink: blessing lowers and
//! removes them, so a new one is a line written by hand that a reviewer sees.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;

use anyhow::{Context, Result};

use super::{Finding, Mode};
use crate::source::Source;
use crate::workspace::Workspace;

const MAX_FILE_LINES: usize = 600;
const MAX_FUNCTION_LINES: usize = 70;

const RATCHET: &str = "xtask/ratchet.txt";
const RATCHET_OPENING: &str =
    "# What is longer than the limits of `cargo xtask tidy`; lowered by `--bless`, never raised.\n";

/// What is measured; a function by the longest of its name in the file, since names survive edits and lines do not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    File { path: String },
    Function { path: String, name: String },
}

struct Length {
    line: usize,
    lines: usize,
}

pub(super) fn check(workspace: &Workspace, sources: &[Source], mode: Mode) -> Result<Vec<Finding>> {
    let text = workspace.text(RATCHET)?.unwrap_or_default();
    let recorded = parse(&text)?;
    let measured = measure(sources);
    match mode {
        Mode::Check => Ok(compare(&measured, &recorded)),
        Mode::Bless => {
            let lowered = lower(&measured, &recorded);
            fs::write(workspace.root.join(RATCHET), render(&lowered))
                .with_context(|| format!("cannot write {RATCHET}"))?;
            Ok(compare(&measured, &lowered))
        }
    }
}

fn measure(sources: &[Source]) -> BTreeMap<Item, Length> {
    let mut measured = BTreeMap::new();
    for source in sources {
        let path = &source.path;
        measured.insert(
            Item::File { path: path.clone() },
            Length { line: 1, lines: source.text.lines().count() },
        );
        for function in source.functions() {
            let item = Item::Function { path: path.clone(), name: function.name };
            let longest = measured.entry(item).or_insert(Length { line: function.line, lines: 0 });
            if function.length > longest.lines {
                *longest = Length { line: function.line, lines: function.length };
            }
        }
    }
    measured
}

fn compare(measured: &BTreeMap<Item, Length>, recorded: &BTreeMap<Item, usize>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (item, length) in measured {
        let (lines, limit) = (length.lines, item.limit());
        let message = match recorded.get(item) {
            Some(known) if lines > *known => {
                format!("{item} has grown from {known} to {lines} lines, {limit} at most: split it")
            }
            Some(known) if lines < *known => {
                format!("{item} has shrunk from {known} to {lines} lines: run `cargo xtask tidy --bless`")
            }
            None if lines > limit => format!("{item} has {lines} lines, {limit} at most: split it"),
            Some(_) | None => continue,
        };
        findings.push(Finding::at(item.path(), length.line, message));
    }
    for item in recorded.keys().filter(|item| !measured.contains_key(item)) {
        let message = format!("{item} of {} is gone: run `cargo xtask tidy --bless`", item.path());
        findings.push(Finding::on(RATCHET, message));
    }
    findings
}

fn lower(measured: &BTreeMap<Item, Length>, recorded: &BTreeMap<Item, usize>) -> BTreeMap<Item, usize> {
    let mut lowered = BTreeMap::new();
    for (item, known) in recorded {
        if let Some(length) = measured.get(item).filter(|length| length.lines > item.limit()) {
            lowered.insert(item.clone(), length.lines.min(*known));
        }
    }
    lowered
}

/// Lines `file PATH LINES` and `fn PATH NAME LINES`; `#` opens a comment.
fn parse(text: &str) -> Result<BTreeMap<Item, usize>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| parse_line(line).with_context(|| format!("{RATCHET}: cannot read `{line}`"))).collect()
}

fn parse_line(line: &str) -> Option<(Item, usize)> {
    let words: Vec<&str> = line.split(' ').collect();
    let (item, lines) = match words[..] {
        ["file", path, lines] => (Item::File { path: path.to_owned() }, lines),
        ["fn", path, name, lines] => (Item::Function { path: path.to_owned(), name: name.to_owned() }, lines),
        _ => return None,
    };
    Some((item, lines.parse().ok()?))
}

fn render(recorded: &BTreeMap<Item, usize>) -> String {
    let mut text = RATCHET_OPENING.to_owned();
    for (item, lines) in recorded {
        let written = match item {
            Item::File { path } => writeln!(text, "file {path} {lines}"),
            Item::Function { path, name } => writeln!(text, "fn {path} {name} {lines}"),
        };
        written.expect("a string takes everything");
    }
    text
}

impl Item {
    fn path(&self) -> &str {
        match self {
            Self::File { path } | Self::Function { path, .. } => path,
        }
    }

    fn limit(&self) -> usize {
        match self {
            Self::File { .. } => MAX_FILE_LINES,
            Self::Function { .. } => MAX_FUNCTION_LINES,
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { .. } => write!(f, "the file"),
            Self::Function { name, .. } => write!(f, "function `{name}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::tidy::shown;

    const PATH: &str = "crates/afl-lang/src/a.rs";

    fn function(name: &str, lines: usize) -> String {
        format!("fn {name}() {{\n{}}}\n", "    x();\n".repeat(lines - 2))
    }

    fn measured(text: String) -> BTreeMap<Item, Length> {
        measure(&[Source::new(PATH, text)])
    }

    fn check(text: String, ratchet: &str) -> String {
        shown(&compare(&measured(text), &parse(ratchet).expect("a ratchet")))
    }

    #[test]
    fn what_is_new_stays_within_the_limits() {
        assert_eq!(check(function("a", 70), ""), "");
        assert_snapshot!(check(function("a", 2) + &function("b", 71), ""), @"crates/afl-lang/src/a.rs:3: function `b` has 71 lines, 70 at most: split it");
        assert_eq!(check("\n".repeat(600), ""), "");
        assert_snapshot!(check("\n".repeat(601), ""), @"crates/afl-lang/src/a.rs:1: the file has 601 lines, 600 at most: split it");
    }

    #[test]
    fn what_is_recorded_only_shrinks() {
        let ratchet = format!("# comment\nfn {PATH} a 80\n");
        assert_eq!(check(function("a", 80), &ratchet), "");
        assert_snapshot!(check(function("a", 81), &ratchet), @"crates/afl-lang/src/a.rs:1: function `a` has grown from 80 to 81 lines, 70 at most: split it");
        assert_snapshot!(check(function("a", 79), &ratchet), @"crates/afl-lang/src/a.rs:1: function `a` has shrunk from 80 to 79 lines: run `cargo xtask tidy --bless`");
        assert_snapshot!(check(function("b", 2), &ratchet), @"xtask/ratchet.txt: function `a` of crates/afl-lang/src/a.rs is gone: run `cargo xtask tidy --bless`");
    }

    #[test]
    fn blessing_lowers_and_removes_but_never_adds_or_raises() {
        let recorded = parse(&format!("fn {PATH} a 80\nfn {PATH} b 80\nfn {PATH} c 80\nfile {PATH} 700"))
            .expect("a ratchet");
        let text = function("a", 75) + &function("b", 70) + &function("c", 90) + &function("d", 90);
        assert_snapshot!(render(&lower(&measured(text), &recorded)), @"
        # What is longer than the limits of `cargo xtask tidy`; lowered by `--bless`, never raised.
        fn crates/afl-lang/src/a.rs a 75
        fn crates/afl-lang/src/a.rs c 80
        ");
    }
}

//! The ratchet: counts above a limit that may shrink and never grow.
//!
//! A rule that comes after the code finds many breaches at once. `xtask/ratchet.txt` records how many each place has.
//! `tidy` refuses a higher count, and asks for a blessing when a count is lower. Blessing lowers and removes entries
//! only, so a new entry is a line that an author writes by hand and a reviewer sees.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

use super::{Breach, TidyMode};
use crate::workspace::Workspace;

const RATCHET: &str = "xtask/ratchet.txt";
const OPENING: &str =
    "# Counts above the limits of `cargo xtask tidy`; `--bless` lowers them, nothing raises them.\n";
const BLESS: &str = "run `cargo xtask tidy --bless`";

/// One count of one rule.
#[derive(Debug)]
pub(super) struct RatchetCount {
    /// Its name in the ratchet, such as `fn crates/afl-lang/src/lib.rs check`.
    pub(super) key: String,
    pub(super) path: String,
    pub(super) line: Option<usize>,
    /// The first words of the message, such as ``function `check` has``.
    pub(super) subject: String,
    pub(super) count: usize,
    pub(super) unit: &'static str,
    pub(super) limit: usize,
    pub(super) advice: &'static str,
    /// Each thing that was counted; shown when the count is too high.
    pub(super) cases: Vec<Breach>,
}

impl RatchetCount {
    /// A rule of the whole workspace that allows no breach.
    pub(super) fn of_breaches(
        key: &str,
        unit: &'static str,
        advice: &'static str,
        cases: Vec<Breach>,
    ) -> Self {
        Self {
            key: key.to_owned(),
            path: "crates".to_owned(),
            line: None,
            subject: "the workspace has".to_owned(),
            count: cases.len(),
            unit,
            limit: 0,
            advice,
            cases,
        }
    }
}

/// Allowed counts by [`RatchetCount::key`].
type AllowedCounts = BTreeMap<String, usize>;

pub(super) fn check(
    workspace: &Workspace,
    measures: Vec<RatchetCount>,
    mode: TidyMode,
) -> Result<Vec<Breach>> {
    let text = workspace.text(RATCHET)?.unwrap_or_default();
    let recorded = parse(&text)?;
    match mode {
        TidyMode::Check => Ok(compare(measures, &recorded)),
        TidyMode::List => Ok(measures.into_iter().flat_map(|measure| measure.cases).collect()),
        TidyMode::Bless => {
            let lowered = lower(&measures, &recorded);
            fs::write(workspace.root.join(RATCHET), render(&lowered))
                .with_context(|| format!("cannot write {RATCHET}"))?;
            Ok(compare(measures, &lowered))
        }
    }
}

fn compare(measures: Vec<RatchetCount>, recorded: &AllowedCounts) -> Vec<Breach> {
    let gone = recorded.keys().filter(|key| !measures.iter().any(|measure| measure.key == **key));
    let mut findings: Vec<Breach> =
        gone.map(|key| Breach::on(RATCHET, format!("`{key}` is gone: {BLESS}"))).collect();
    for measure in measures {
        let RatchetCount { subject, count, unit, limit, advice, .. } = &measure;
        let message = match recorded.get(&measure.key) {
            Some(known) if count < known => format!("{subject} {count} {unit}, fewer than {known}: {BLESS}"),
            Some(known) if count > known => {
                format!("{subject} {count} {unit}, more than {known}; {limit} at most: {advice}")
            }
            None if count > limit => format!("{subject} {count} {unit}, {limit} at most: {advice}"),
            Some(_) | None => continue,
        };
        if recorded.get(&measure.key).is_none_or(|known| count > known) {
            findings.extend(measure.cases);
        }
        findings.push(Breach { path: measure.path, line: measure.line, message });
    }
    findings
}

fn lower(measures: &[RatchetCount], recorded: &AllowedCounts) -> AllowedCounts {
    let above = measures.iter().filter(|measure| measure.count > measure.limit);
    let known = above.filter_map(|measure| Some((measure, recorded.get(&measure.key)?)));
    known.map(|(measure, known)| (measure.key.clone(), measure.count.min(*known))).collect()
}

/// Each line is a key and a count; `#` opens a comment.
fn parse(text: &str) -> Result<AllowedCounts> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let entry =
                line.rsplit_once(' ').and_then(|(key, count)| Some((key.to_owned(), count.parse().ok()?)));
            entry.with_context(|| format!("{RATCHET}: cannot read `{line}`"))
        })
        .collect()
}

fn render(recorded: &AllowedCounts) -> String {
    recorded.iter().fold(OPENING.to_owned(), |text, (key, count)| text + &format!("{key} {count}\n"))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::tidy::shown;

    fn measure(name: &str, count: usize) -> RatchetCount {
        RatchetCount {
            key: format!("fn a.rs {name}"),
            path: "a.rs".to_owned(),
            line: Some(3),
            subject: format!("function `{name}` has"),
            count,
            unit: "lines",
            limit: 70,
            advice: "split it",
            cases: vec![Breach::at("a.rs", 9, "one of them")],
        }
    }

    fn check(count: usize, ratchet: &str) -> String {
        shown(&compare(vec![measure("a", count)], &parse(ratchet).expect("a ratchet")))
    }

    #[test]
    fn a_count_without_an_entry_stays_within_the_limit() {
        assert_eq!(check(70, ""), "");
        assert_snapshot!(check(71, ""), @"
        a.rs:9: one of them
        a.rs:3: function `a` has 71 lines, 70 at most: split it
        ");
    }

    #[test]
    fn a_recorded_count_only_shrinks() {
        let ratchet = "# comment\nfn a.rs a 80\n";
        assert_eq!(check(80, ratchet), "");
        assert_snapshot!(check(81, ratchet), @"
        a.rs:9: one of them
        a.rs:3: function `a` has 81 lines, more than 80; 70 at most: split it
        ");
        assert_snapshot!(check(79, ratchet), @"a.rs:3: function `a` has 79 lines, fewer than 80: run `cargo xtask tidy --bless`");
        assert_snapshot!(check(2, "fn a.rs b 80\n"), @"xtask/ratchet.txt: `fn a.rs b` is gone: run `cargo xtask tidy --bless`");
    }

    #[test]
    fn blessing_lowers_and_removes_but_never_adds_or_raises() {
        let recorded = parse("fn a.rs a 80\nfn a.rs b 80\nfn a.rs c 80\nfile a.rs 700").expect("a ratchet");
        let measures = [measure("a", 75), measure("b", 70), measure("c", 90), measure("d", 90)];
        assert_snapshot!(render(&lower(&measures, &recorded)), @"
        # Counts above the limits of `cargo xtask tidy`; `--bless` lowers them, nothing raises them.
        fn a.rs a 75
        fn a.rs c 80
        ");
    }

    #[test]
    fn a_line_that_cannot_be_read_is_an_error() {
        assert_snapshot!(parse("fn a many").expect_err("no count"), @"xtask/ratchet.txt: cannot read `fn a many`");
    }
}

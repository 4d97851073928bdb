//! The share of docs and comments in each crate.

use std::collections::BTreeMap;

use super::{Breach, TidyReport};
use crate::source::{CodePart, RustFile};

/// Beyond a quarter, comments repeat the code.
const MAX_PERCENT: usize = 25;

/// In a crate smaller than this, its opening sentences alone would be too much.
const MIN_LINES: usize = 200;

#[derive(Clone, Copy, Default)]
struct LineCounts {
    comments: usize,
    all: usize,
}

/// Counts the lines that are not blank; tests are left out, since their size would hide the rest.
pub(super) fn check(sources: &[RustFile]) -> TidyReport {
    let mut crates: BTreeMap<&str, LineCounts> = BTreeMap::new();
    for source in sources {
        let Some(folder) = crate_folder(&source.path) else { continue };
        let lines = crates.entry(folder).or_default();
        let counted = source.lines().zip(source.text.lines());
        for ((line, code, comments), text) in counted {
            if text.trim().is_empty() || source.part(line) != CodePart::Source {
                continue;
            }
            lines.all += 1;
            lines.comments += usize::from(code.trim().is_empty() && !comments.trim().is_empty());
        }
    }

    let mut report = TidyReport::default();
    for (folder, lines) in crates {
        let percent = (lines.comments * 100).div_ceil(lines.all.max(1));
        report.notes.push(format!("{folder}: {percent}% of {} lines are docs and comments", lines.all));
        if lines.all >= MIN_LINES && lines.comments * 100 > lines.all * MAX_PERCENT {
            let message = format!(
                "{percent}% of the lines are docs and comments, {MAX_PERCENT}% at most: delete what repeats the code"
            );
            report.findings.push(Breach::on(folder, message));
        }
    }
    report
}

fn crate_folder(path: &str) -> Option<&str> {
    path.split_once("/src/").map(|(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::tidy::shown;

    fn check(text: &str) -> String {
        let report = super::check(&[RustFile::new("crates/afl-lang/src/lib.rs", text.to_owned())]);
        format!("{}\n{}", report.notes.join("\n"), shown(&report.findings))
    }

    #[test]
    fn more_than_a_quarter_is_too_much() {
        let quarter = "// why\nlet a = \"\n  // text\";\nlet b = 1; // trailing\n\n".repeat(100);
        assert_snapshot!(check(&quarter), @"crates/afl-lang: 25% of 400 lines are docs and comments");
        assert_snapshot!(check(&format!("{quarter}/* and\none more */\n")), @"
        crates/afl-lang: 26% of 402 lines are docs and comments
        crates/afl-lang: 26% of the lines are docs and comments, 25% at most: delete what repeats the code
        ");
    }

    #[test]
    fn a_small_crate_and_tests_are_not_judged() {
        assert_snapshot!(check("//! A thing.\n"), @"crates/afl-lang: 100% of 1 lines are docs and comments");
        let tests = format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{}}}\n", "// why\n".repeat(300));
        assert_snapshot!(check(&tests), @"crates/afl-lang: 0% of 1 lines are docs and comments");
    }
}

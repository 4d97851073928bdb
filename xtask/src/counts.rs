//! How many tests passed, failed and were skipped, read from what test runners print.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestCounts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl TestCounts {
    /// The last `Summary [ 0.1s] 3 tests run: 2 passed (1 slow), 1 failed, 4 skipped` of nextest.
    pub(crate) fn of_nextest(output: &str) -> Self {
        let output = without_colour(output);
        let summaries = output.lines().rev().filter(|line| line.trim_start().starts_with("Summary ["));
        let counted = summaries.filter_map(|line| line.split_once(" run: "));
        counted.map(|(_, counts)| Self::parse(&without_remarks(counts), ',')).next().unwrap_or_default()
    }

    /// All lines `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; …` of libtest.
    pub(crate) fn of_libtest(output: &str) -> Self {
        let mut total = Self::default();
        for line in without_colour(output).lines() {
            let result = line.strip_prefix("test result: ").and_then(|result| result.split_once(". "));
            // A failing test shows what it printed, which may look like a result.
            if let Some((_, counts)) = result.filter(|(_, counts)| counts.contains("; finished in ")) {
                total += Self::parse(counts, ';');
            }
        }
        total
    }

    pub(crate) fn ran(self) -> u64 {
        self.passed + self.failed
    }

    /// Words such as `measured` or `finished in 0.1s` count nothing.
    fn parse(counts: &str, separator: char) -> Self {
        let mut total = Self::default();
        for (number, what) in counts.split(separator).filter_map(|count| count.trim().split_once(' ')) {
            let Ok(number) = number.parse::<u64>() else { continue };
            match what.trim() {
                "passed" => total.passed += number,
                "failed" | "exec failed" | "timed out" => total.failed += number,
                "skipped" | "ignored" | "filtered out" => total.skipped += number,
                _ => {}
            }
        }
        total
    }
}

/// The tests that nextest lists behind its summary: `FAIL [   0.004s] (3/9) crate::binary module::test`.
pub(crate) fn failed_of_nextest(output: &str) -> BTreeSet<String> {
    let output = without_colour(output);
    let behind_summary = output.rsplit_once("Summary [").map_or("", |(_, rest)| rest);
    let name = |line: &str| {
        let (status, rest) = line.trim().split_once(" [")?;
        let is_status = status.chars().all(|c| c.is_ascii_uppercase() || " 0123456789/".contains(c));
        let test = rest.split_once("] ").filter(|_| is_status && !status.contains("SLOW"))?.1.trim();
        let test =
            test.strip_prefix('(').and_then(|rest| rest.split_once(") ")).map_or(test, |(_, test)| test);
        Some(test.trim().to_owned())
    };
    behind_summary.lines().skip(1).filter_map(name).collect()
}

/// The tests that libtest reports as `test module::test ... FAILED`.
pub(crate) fn failed_of_libtest(output: &str) -> BTreeSet<String> {
    let output = without_colour(output);
    let name = |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
    output.lines().filter_map(name).collect()
}

impl AddAssign for TestCounts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for TestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// Drops the text in parentheses: `5 passed (1 slow, 1 flaky)`.
fn without_remarks(line: &str) -> String {
    let outside = |part: &str| part.rsplit(')').next().unwrap_or_default().to_owned();
    line.split('(').map(outside).collect()
}

/// Drops the escape sequences `ESC [ … letter`.
fn without_colour(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest =
        parts.map(|part| part.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).get(1..).unwrap_or(""));
    rest.fold(first, |text, part| text + part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_of_nextest_is_read() {
        let check = |output: &str, expected: &str| {
            assert_eq!(TestCounts::of_nextest(output).to_string(), expected);
        };
        let quiet = "────────────\n     Summary [   0.004s] 3 tests run: 3 passed, 1 skipped\n";
        check(quiet, "3 passed, 0 failed, 1 skipped");
        let rough = "     Summary [  60.1s] 9/12 tests run: 5 passed (1 slow, 1 flaky), 1 failed, 2 timed out, 1 exec failed, 0 skipped\n        FAIL [   0.004s] a b\n";
        check(rough, "5 passed, 4 failed, 0 skipped");
        let coloured = "\u{1b}[32;1m     Summary\u{1b}[0m [   0.004s] \u{1b}[1m2\u{1b}[0m tests run: \u{1b}[1m2\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m \u{1b}[33;1mskipped\u{1b}[0m\n";
        check(coloured, "2 passed, 0 failed, 0 skipped");
        check("error: could not compile `a`\n", "0 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn the_names_of_failed_tests_are_read() {
        let nextest = "        FAIL [   0.1s] (1/4) a::b early\n     Summary [   0.004s] 4 tests run: 1 passed, 3 failed\n        FAIL [   0.004s] (2/4) afl-cli::agents f5_late\n  TRY 2 FAIL [   1.0s] (3/4) afl-cli::trials holding::f4\n     SIGKILL [   1.0s] afl-store tests::x\nerror: test run failed\n";
        let failed: Vec<String> = failed_of_nextest(nextest).into_iter().collect();
        assert_eq!(failed, ["afl-cli::agents f5_late", "afl-cli::trials holding::f4", "afl-store tests::x"]);
        let libtest = "test a::b ... ok\ntest a::c ... FAILED\n";
        assert_eq!(failed_of_libtest(libtest).into_iter().collect::<Vec<_>>(), ["a::c"]);
    }

    #[test]
    fn the_results_of_libtest_are_added_up() {
        let output = "running 3 tests\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 4 filtered out; finished in 1.00s\n\
            test result: ok. 9 passed; 9 failed;\n";
        assert_eq!(TestCounts::of_libtest(output).to_string(), "3 passed, 2 failed, 5 skipped");
    }
}

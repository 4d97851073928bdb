//! Patterns that must not appear in the code, where each is fine, and what to write instead.

use super::Breach;
use crate::source::{CodePart, RustFile};

struct Ban {
    pattern: &'static str,
    layer: Layer,
    fine_in: &'static [AllowedPlace],
    instead: &'static str,
}

/// The part of a file that is searched; the contents of string literals never are.
enum Layer {
    Code,
    CodeAndComments,
}

enum AllowedPlace {
    Part(CodePart),
    Under(&'static str),
    /// A file or folder of `afl-lang` with the name [`LEXER`]: it is where text becomes tokens.
    Lexer,
}

const LEXER: &str = "lexer";

const COMPARE_TYPES: &str = "make the fixed set an enum, parse the text once and compare the values";
const EXPECT_WITH_REASON: &str = "write `#[expect(…, reason = \"…\")]`, which ends when it is no longer true";
const FINISH_IT: &str = "finish it, or leave the feature out; open work belongs to an issue";
const RETURN_IT: &str = "return the data; only the command line, the servers and chores talk to people";

const TALKERS: &[AllowedPlace] = &[
    AllowedPlace::Under("crates/afl-cli/"),
    AllowedPlace::Under("crates/afl-server/"),
    AllowedPlace::Under("crates/afl-lsp/"),
    AllowedPlace::Under("xtask/"),
    AllowedPlace::Under("fuzz/"),
    AllowedPlace::Part(CodePart::Test),
    AllowedPlace::Part(CodePart::Bench),
    AllowedPlace::Part(CodePart::Example),
];
const LEXER_AND_TESTS: &[AllowedPlace] = &[AllowedPlace::Lexer, AllowedPlace::Part(CodePart::Test)];
const ALL_BUT_TESTS: &[AllowedPlace] = &[
    AllowedPlace::Part(CodePart::Source),
    AllowedPlace::Part(CodePart::Bench),
    AllowedPlace::Part(CodePart::Example),
];
const NOWHERE: &[AllowedPlace] = &[];

const BANS: &[Ban] = &[
    ban("== \"", Layer::Code, LEXER_AND_TESTS, COMPARE_TYPES),
    ban("!= \"", Layer::Code, LEXER_AND_TESTS, COMPARE_TYPES),
    ban("[allow(", Layer::Code, NOWHERE, EXPECT_WITH_REASON),
    ban("#[ignore", Layer::Code, NOWHERE, "make the test run everywhere or delete it"),
    ban("let _ =", Layer::Code, NOWHERE, "handle the result, or name the dropped value and say why"),
    ban("todo!(", Layer::Code, NOWHERE, FINISH_IT),
    ban("unimplemented!(", Layer::Code, NOWHERE, FINISH_IT),
    ban("TODO", Layer::CodeAndComments, NOWHERE, FINISH_IT),
    ban("FIXME", Layer::CodeAndComments, NOWHERE, FINISH_IT),
    ban("thread::sleep", Layer::Code, ALL_BUT_TESTS, "wait for the event itself, or use the simulated clock"),
    ban("println!(", Layer::Code, TALKERS, RETURN_IT),
    ban("print!(", Layer::Code, TALKERS, RETURN_IT),
];

const fn ban(
    pattern: &'static str,
    layer: Layer,
    fine_in: &'static [AllowedPlace],
    instead: &'static str,
) -> Ban {
    Ban { pattern, layer, fine_in, instead }
}

pub(super) fn check(source: &RustFile) -> Vec<Breach> {
    let mut findings = Vec::new();
    for (line, code, comments) in source.lines() {
        for ban in BANS {
            let found = match ban.layer {
                Layer::Code => code.contains(ban.pattern),
                Layer::CodeAndComments => code.contains(ban.pattern) || comments.contains(ban.pattern),
            };
            if found && !ban.fine_in.iter().any(|place| place.holds(source, line)) {
                let message = format!("`{}` is not used here: {}", ban.pattern, ban.instead);
                findings.push(Breach::at(&source.path, line, message));
            }
        }
    }
    findings
}

pub(super) fn count_expectations(sources: &[RustFile]) -> String {
    let count: usize = sources.iter().map(|source| source.code.matches("[expect(").count()).sum();
    format!("{count} lints expected with #[expect]")
}

impl AllowedPlace {
    fn holds(&self, source: &RustFile, line: usize) -> bool {
        match self {
            Self::Part(part) => source.part(line) == *part,
            Self::Under(folder) => source.path.starts_with(folder),
            Self::Lexer => source.path.strip_prefix("crates/afl-lang/src/").is_some_and(|path| {
                path.split('/').any(|component| component.trim_end_matches(".rs") == LEXER)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::tidy::shown;

    fn check(path: &str, text: &str) -> String {
        shown(&super::check(&RustFile::new(path, text.to_owned())))
    }

    #[test]
    fn a_string_is_compared_in_the_lexer_and_in_tests_only() {
        let text =
            "fn f() {\n    a == \"x\" || a != \"y\"\n}\n#[cfg(test)]\nmod tests {\n    a == \"x\"\n}\n";
        assert_snapshot!(check("crates/afl-lang/src/check/names.rs", text), @r#"
        crates/afl-lang/src/check/names.rs:2: `== "` is not used here: make the fixed set an enum, parse the text once and compare the values
        crates/afl-lang/src/check/names.rs:2: `!= "` is not used here: make the fixed set an enum, parse the text once and compare the values
        "#);
        assert_eq!(check("crates/afl-lang/src/syntax/lexer.rs", text), "");
        assert_eq!(check("crates/afl-lang/src/lexer/words.rs", text), "");
        assert_eq!(check("crates/afl-cli/tests/cli.rs", text), "");
    }

    #[test]
    fn lints_are_expected_with_a_reason() {
        let text = "#![allow(dead_code)]\n#[allow(dead_code)]\n#[expect(dead_code, reason = \"x\")]\n";
        assert_snapshot!(check("crates/afl-lang/src/lib.rs", text), @r#"
        crates/afl-lang/src/lib.rs:1: `[allow(` is not used here: write `#[expect(…, reason = "…")]`, which ends when it is no longer true
        crates/afl-lang/src/lib.rs:2: `[allow(` is not used here: write `#[expect(…, reason = "…")]`, which ends when it is no longer true
        "#);
    }

    #[test]
    fn unfinished_work_is_found_in_code_and_comments_but_not_in_literals() {
        let text =
            "// TODO later\nfn f() { todo!() } // FIXME\nlet s = \"TODO todo!(\";\nlet _ = s;\n#[ignore]\n";
        assert_snapshot!(check("crates/afl-lang/tests/a.rs", text), @"
        crates/afl-lang/tests/a.rs:1: `TODO` is not used here: finish it, or leave the feature out; open work belongs to an issue
        crates/afl-lang/tests/a.rs:2: `todo!(` is not used here: finish it, or leave the feature out; open work belongs to an issue
        crates/afl-lang/tests/a.rs:2: `FIXME` is not used here: finish it, or leave the feature out; open work belongs to an issue
        crates/afl-lang/tests/a.rs:4: `let _ =` is not used here: handle the result, or name the dropped value and say why
        crates/afl-lang/tests/a.rs:5: `#[ignore` is not used here: make the test run everywhere or delete it
        ");
    }

    #[test]
    fn tests_do_not_sleep() {
        let text = "std::thread::sleep(ONE_SECOND);\n";
        assert_snapshot!(check("crates/afl-runtime/tests/lease.rs", text), @"crates/afl-runtime/tests/lease.rs:1: `thread::sleep` is not used here: wait for the event itself, or use the simulated clock");
        assert_eq!(check("crates/afl-runtime/src/janitor.rs", text), "");
    }

    #[test]
    fn libraries_do_not_print() {
        let text = "fn f() {\n    eprintln!(\"a\");\n    print!(\"b\");\n}\n";
        assert_snapshot!(check("crates/afl-lang/src/lib.rs", text), @"
        crates/afl-lang/src/lib.rs:2: `println!(` is not used here: return the data; only the command line, the servers and chores talk to people
        crates/afl-lang/src/lib.rs:3: `print!(` is not used here: return the data; only the command line, the servers and chores talk to people
        ");
        assert_eq!(check("crates/afl-cli/src/main.rs", text), "");
        assert_eq!(check("crates/afl-lang/benches/compile.rs", text), "");
    }
}

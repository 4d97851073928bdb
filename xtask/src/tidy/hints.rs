//! Messages of libraries that advise a command of `afl`: only the command line knows its commands.
//!
//! Every surface shows the messages of the libraries. A person who reads one in a browser cannot follow `afl retry`, so
//! the hint belongs to `crates/afl-cli/src/failure/hint.rs`, which maps an error to a command.

use super::Breach;
use crate::source::{CodePart, RustFile};

const LIBRARIES: &[&str] = &[
    "crates/afl-agents/src/",
    "crates/afl-backends/src/",
    "crates/afl-engine/src/",
    "crates/afl-lang/src/",
    "crates/afl-runtime/src/",
    "crates/afl-store/src/",
];
const PROGRAM: &str = "afl ";
const OPTION: &str = "`--";
const INSTEAD: &str =
    "name the mistake, and give the command in `crates/afl-cli/src/failure/hint.rs` or beside it";

pub(super) fn check(source: &RustFile) -> Vec<Breach> {
    if !LIBRARIES.iter().any(|library| source.path.starts_with(library)) {
        return Vec::new();
    }
    let messages = source.strings().filter(|(line, _)| source.part(*line) == CodePart::Source);
    let hints = messages.filter(|(_, text)| names_command(text) || text.contains(OPTION));
    hints
        .map(|(line, _)| Breach::at(&source.path, line, format!("a library advises no command: {INSTEAD}")))
        .collect()
}

/// Whether the text has `afl` as a word before another one; `.afl files` and `afl:execute` are no commands.
fn names_command(text: &str) -> bool {
    text.match_indices(PROGRAM).any(|(at, program)| {
        let before = text[..at].chars().next_back();
        let after = text[at + program.len()..].chars().next();
        before.is_none_or(|letter| !letter.is_alphanumeric() && !"._-".contains(letter))
            && after.is_some_and(|letter| letter.is_ascii_lowercase())
    })
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
    fn a_library_advises_no_command_and_no_option() {
        let text = "// as `afl run` does\nlet a = \"try\n`afl retry` it\";\nlet b = \"with `--mock`\";\n";
        assert_snapshot!(check("crates/afl-runtime/src/why.rs", text), @"
        crates/afl-runtime/src/why.rs:2: a library advises no command: name the mistake, and give the command in `crates/afl-cli/src/failure/hint.rs` or beside it
        crates/afl-runtime/src/why.rs:4: a library advises no command: name the mistake, and give the command in `crates/afl-cli/src/failure/hint.rs` or beside it
        ");
        assert_eq!(check("crates/afl-cli/src/failure/hint.rs", text), "");
        assert_eq!(check("crates/afl-runtime/tests/service/runs.rs", text), "");
    }

    #[test]
    fn files_tasks_and_other_programs_are_no_commands() {
        let text = "let a = \"no .afl file, afl:execute, `createdb --encoding=UTF8`, afl\";\n";
        assert_eq!(check("crates/afl-lang/src/source.rs", text), "");
    }
}

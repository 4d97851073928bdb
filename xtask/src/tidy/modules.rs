//! The name of a module and the first line of its file.

use super::Breach;
use crate::source::RustFile;

/// Names that say nothing about the job, so that everything ends up there.
const VAGUE: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "manager", "managers", "processor", "processors"];

pub(super) fn check(source: &RustFile) -> Vec<Breach> {
    let mut findings = Vec::new();
    let path = &source.path;
    if let Some(name) = path.trim_end_matches(".rs").split('/').find(|name| VAGUE.contains(name)) {
        findings.push(Breach::on(path, format!("`{name}` names no job: name it after what it does")));
    }
    for (line, code, _) in source.lines() {
        if let Some(name) = inline_module(code).filter(|name| VAGUE.contains(name)) {
            let message = format!("module `{name}` names no job: name it after what it does");
            findings.push(Breach::at(path, line, message));
        }
    }
    if path.contains("/src/") && !source.text.starts_with("//! ") {
        findings.push(Breach::at(path, 1, "open the file with one `//!` sentence saying what it is for"));
    }
    findings
}

/// The name of a module whose body stands here; a file is judged by its path.
fn inline_module(code: &str) -> Option<&str> {
    let declaration = code.trim().strip_suffix('{')?;
    let (_, name) = declaration.rsplit_once("mod ")?;
    Some(name.trim())
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
    fn a_module_is_named_after_its_job() {
        let text = "//! A thing.\n\npub mod helpers {\n}\nmod claim;\nmod claims {\n}\n";
        assert_snapshot!(check("crates/afl-runtime/src/utils.rs", text), @"
        crates/afl-runtime/src/utils.rs: `utils` names no job: name it after what it does
        crates/afl-runtime/src/utils.rs:3: module `helpers` names no job: name it after what it does
        ");
        assert_snapshot!(check("crates/afl-runtime/tests/common/mod.rs", ""), @"crates/afl-runtime/tests/common/mod.rs: `common` names no job: name it after what it does");
    }

    #[test]
    fn a_source_file_opens_with_what_it_is_for() {
        assert_snapshot!(check("crates/afl-lang/src/lib.rs", "// A thing.\n"), @"crates/afl-lang/src/lib.rs:1: open the file with one `//!` sentence saying what it is for");
        assert_eq!(check("crates/afl-lang/src/lib.rs", "//! A thing.\n"), "");
        assert_eq!(check("crates/afl-lang/tests/fixtures.rs", "use a;\n"), "");
    }
}

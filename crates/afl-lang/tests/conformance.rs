//! The conformance cases of the compiler: which programs compile, and the diagnostics of the others.

#![expect(clippy::disallowed_methods, reason = "the crate reads no file, its tests read fixtures")]

mod fixture;

use afl_lang::Validation;
use afl_lang::diagnostic::Diagnostic;
use afl_lang::render::{self, Color};
use afl_lang::source::{LineIndex, Sources};
use fixture::Fixture;
use serde_json::Value;

#[test]
fn every_case_is_judged_as_it_expects() {
    let cases = cases();
    assert!(cases.len() >= 100, "only {} cases are left", cases.len());
    let failures: Vec<String> = cases.iter().filter_map(|case| judge(case).err()).collect();
    assert!(failures.is_empty(), "{} cases fail:\n\n{}", failures.len(), failures.join("\n"));
}

struct Case {
    name: String,
    sources: Sources,
    expect: Value,
}

/// A case without `diagnostics` has a program that compiles, whatever becomes of it when it runs.
fn judge(case: &Case) -> Result<(), String> {
    let compiled = afl_lang::compile(&case.sources, Validation::Require);
    let errors: Vec<&Diagnostic> = compiled.diagnostics.iter().filter(|one| one.is_error()).collect();
    let shown = || render::human(&case.sources, &compiled.diagnostics, Color::Plain);
    let Some(wanted) = case.expect.get("diagnostics") else {
        let silent = errors.is_empty() && compiled.program.is_some();
        return silent.then_some(()).ok_or_else(|| format!("{} should compile:\n{}", case.name, shown()));
    };
    let wanted = wanted.as_array().expect("`diagnostics` is a list");
    assert!(!wanted.is_empty(), "{} expects no diagnostic in particular", case.name);
    for one in wanted {
        if !errors.iter().any(|error| is_meant(error, one, &case.sources)) {
            return Err(format!("{} lacks the error {one}:\n{}", case.name, shown()));
        }
    }
    if compiled.program.is_some() {
        return Err(format!("{} gives out a program in spite of its errors", case.name));
    }
    Ok(())
}

/// `{"line": n|null, "mentions": […]}`: the line, and every text in the message, a label or the help.
fn is_meant(error: &Diagnostic, wanted: &Value, sources: &Sources) -> bool {
    let text = &sources.get(error.place.file).text;
    let line = LineIndex::new(text).position(error.place.span.start).line;
    let on_line = wanted["line"].as_u64().is_none_or(|wanted| wanted == u64::from(line));
    let labels = error.related.iter().map(|label| label.message.as_str());
    let said: Vec<&str> =
        [error.message.as_str()].into_iter().chain(error.help.as_deref()).chain(labels).collect();
    let mentions = wanted["mentions"].as_array().expect("`mentions` is a list");
    let mentioned = |text: &Value| {
        let text = text.as_str().expect("what is mentioned is text");
        said.iter().any(|part| part.contains(text))
    };
    on_line && mentions.iter().all(mentioned)
}

fn cases() -> Vec<Case> {
    let programs = fixture::read("../../conformance", "afl");
    let expectations = fixture::read("../../conformance", "json");
    let named = |case: (Fixture, Fixture)| {
        let (program, expectation) = case;
        assert_eq!(program.name, expectation.name, "a case is an .afl and a .json file");
        let json: Value = serde_json::from_str(&expectation.text).expect("a case is JSON");
        let sources = Sources::one(format!("{}.afl", program.name), program.text);
        Case { name: program.name, sources, expect: json["expect"].clone() }
    };
    assert_eq!(programs.len(), expectations.len());
    programs.into_iter().zip(expectations).map(named).collect()
}

//! The output of `afl explain`: every code has its explanation, and its examples are true.

mod large;

use std::collections::BTreeSet;

use afl_lang::Validation;
use afl_lang::code::Code;
use afl_lang::diagnostic::Diagnostic;
use afl_lang::render::{self, Color};
use afl_lang::source::Sources;

/// An explanation fits on a screen.
const MAX_LINES: usize = 38;
const MAX_COLUMNS: usize = 100;

/// A text beyond a limit is too large for an example; [`large`] makes it.
const WITHOUT_EXAMPLE: [Code; 4] =
    [Code::SourceTooLarge, Code::TooDeep, Code::TooManyDiagnostics, Code::TooManyStatements];

#[test]
fn every_explanation_has_its_title_and_fits_on_a_screen() {
    for code in Code::ALL {
        let text = code.explanation();
        let title = format!("# {}: {}\n\n", code.text(), code.title());
        assert!(text.starts_with(&title), "{} begins with another title", code.text());
        assert!(!text.contains("foo"), "{} has an example that means nothing", code.text());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() <= MAX_LINES, "{} has {} lines", code.text(), lines.len());
        let widest = lines.iter().map(|line| line.chars().count()).max();
        assert!(widest <= Some(MAX_COLUMNS), "{} has lines of {widest:?} characters", code.text());
    }
}

#[test]
fn the_wrong_example_has_this_mistake_and_no_other() {
    for code in explained_by_example() {
        let sources = example(code, "Wrong");
        let diagnostics = diagnostics(&sources);
        let codes: BTreeSet<Code> = diagnostics.iter().map(|one| one.code).collect();
        assert_eq!(codes, BTreeSet::from([code]), "{}", render::human(&sources, &diagnostics, Color::Plain));
    }
}

#[test]
fn the_right_example_has_nothing_to_say_about() {
    for code in explained_by_example() {
        let sources = example(code, "Right");
        let diagnostics = diagnostics(&sources);
        assert!(diagnostics.is_empty(), "{}", render::human(&sources, &diagnostics, Color::Plain));
    }
}

#[test]
fn the_right_example_is_in_the_canonical_style() {
    for code in explained_by_example() {
        let text = &example(code, "Right").0[0].text;
        let formatted = afl_lang::format::format(text).expect("the right example has no mistakes");
        assert_eq!(*text, formatted, "{}", code.text());
    }
}

#[test]
fn an_error_too_large_for_an_example_gives_its_code() {
    let large = large::programs();
    let codes: Vec<Code> = large.iter().map(|large| large.code).collect();
    assert_eq!(codes, WITHOUT_EXAMPLE);
    for large in large {
        let found = diagnostics(&Sources::one(large.name, large.text));
        assert!(
            found.iter().any(|one| one.code == large.code),
            "{} does not give {:?}",
            large.what,
            large.code
        );
        assert!(!large.code.explanation().contains("```"), "{:?} has an example after all", large.code);
    }
}

fn explained_by_example() -> impl Iterator<Item = Code> {
    Code::ALL.iter().copied().filter(|code| !WITHOUT_EXAMPLE.contains(code))
}

/// The one AFL block below the heading.
fn example(code: Code, heading: &str) -> Sources {
    let text = code.explanation();
    let mut sections = text.split("\n## ").filter_map(|section| section.strip_prefix(heading));
    let (Some(section), None) = (sections.next(), sections.next()) else {
        panic!("{} has no section `{heading}`, or several", code.text())
    };
    let mut blocks = section.trim().split("```");
    let (Some(""), Some(block), Some(""), None) =
        (blocks.next(), blocks.next(), blocks.next(), blocks.next())
    else {
        panic!("{} has something else than one block under `{heading}`", code.text())
    };
    let Some(program) = block.strip_prefix("afl\n") else {
        panic!("{} has a block under `{heading}` that is not marked as afl", code.text())
    };
    Sources::one(format!("{}_{}.afl", code.text(), heading.to_lowercase()), program)
}

fn diagnostics(sources: &Sources) -> Vec<Diagnostic> {
    afl_lang::compile(sources, Validation::Require).diagnostics
}

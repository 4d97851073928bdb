//! The formatter: what it prints, and that it changes nothing else.
#![expect(clippy::disallowed_methods, reason = "the crate reads no file, its tests read fixtures")]

mod fixture;

use afl_lang::format::format;
use afl_lang::limits::MAX_NESTING;
use afl_lang::program::ProgramHash;
use afl_lang::source::{FileId, Sources};
use afl_lang::syntax::lexer::Lexer;
use afl_lang::syntax::parse;
use afl_lang::syntax::token::TokenKind;
use afl_lang::{Validation, compile};
use fixture::Fixture;
use proptest::prelude::*;

#[test]
fn fixtures_look_as_they_should() {
    for Fixture { name, text } in fixture::read("tests/format", "afl") {
        insta::with_settings!({
            snapshot_path => "format",
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!(name, format(&text).unwrap());
        });
    }
}

#[test]
fn formatting_changes_only_the_layout() {
    for Fixture { text, .. } in programs() {
        check_filled(&text, &[]);
        if let Ok(formatted) = format(&text) {
            assert_eq!(hash(&text), hash(&formatted), "another hash\n{text}\n=>\n{formatted}");
        }
        check_filled(&text.replace('\n', " "), &[]);
        let line_ends: Vec<_> = gaps(&text).into_iter().map(|gap| (gap, "\n")).collect();
        check_filled(&text, &line_ends);
    }
}

#[test]
fn a_comment_may_stand_in_any_gap() {
    let mut fillers = FILLERS.iter().cycle();
    for Fixture { text, .. } in fixture::read("../../conformance", "afl") {
        for gap in gaps(&text) {
            check_filled(&text, &[(gap, fillers.next().unwrap())]);
        }
    }
}

#[test]
fn broken_text_is_not_formatted() {
    let errors = format("facet A(\nfacet B()").unwrap_err();
    assert!(errors.iter().all(afl_lang::diagnostic::Diagnostic::is_error));
    assert!(!errors.is_empty());
}

#[test]
fn nesting_up_to_the_limit_is_formatted() {
    let depth = MAX_NESTING as usize - 4;
    let deep = |open: &str, inner: &str, close: &str| {
        let value = open.repeat(depth) + inner + &close.repeat(depth);
        check(&format!("facet F() andThen {{\n  a = F(v = {value})\n}}"));
    };
    deep("[", "1", "]");
    deep("(", &vec!["a"; 120].join(" + "), ")");
    deep("#{k: ", "-1", "}");
}

#[test]
fn an_empty_text_stays_empty() {
    assert_eq!(format(" \n\n ").unwrap(), "");
}

proptest! {
    // A failing text becomes a fixture.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn comments_and_blanks_may_stand_in_many_gaps(
        program in any::<prop::sample::Index>(),
        fillings in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(&FILLERS)), 1..12),
    ) {
        let programs = programs();
        let text = &program.get(&programs).text;
        let gaps = gaps(text);
        let mut fillings: Vec<_> = fillings.iter().map(|(gap, filler)| (*gap.get(&gaps), *filler)).collect();
        fillings.sort_by_key(|(gap, _)| *gap);
        check_filled(text, &fillings);
    }
}

/// The texts that the tests put between tokens.
const FILLERS: [&str; 12] = [
    " ",
    "\n",
    "\n\n\n",
    "// line\n",
    "\n// own line\n",
    "\n\n// own paragraph\n\n",
    "/* block */",
    "\n/* own block */\n",
    "\n/* leading */",
    "/* trailing */\n",
    "/* over\n   lines */",
    "/**\n   * doc\n   */",
];

/// Checks the text with something in its gaps, if it is a program.
fn check_filled(text: &str, fillings: &[(usize, &str)]) {
    let mut filled = String::new();
    let mut at = 0;
    for (gap, filler) in fillings {
        filled.push_str(&text[at..*gap]);
        filled.push_str(filler);
        at = *gap;
    }
    filled.push_str(&text[at..]);
    if is_valid(&filled) {
        check(&filled);
    }
}

fn check(text: &str) {
    let once = format(text).expect("the text is valid");
    assert!(is_valid(&once), "the result does not parse\n{text}\n=>\n{once}");
    assert_eq!(shape(text), shape(&once), "another program\n{text}\n=>\n{once}");
    assert_eq!(comments(text), comments(&once), "other comments\n{text}\n=>\n{once}");
    let twice = format(&once).expect("the result is valid");
    let change = once.lines().zip(twice.lines()).find(|(before, after)| before != after);
    assert_eq!(once, twice, "no fixpoint, {change:?}\n{text}\n=>\n{once}\n=>\n{twice}");
}

fn is_valid(text: &str) -> bool {
    !parse(FileId::default(), text).diagnostics.iter().any(afl_lang::diagnostic::Diagnostic::is_error)
}

/// The tree without positions.
fn shape(text: &str) -> String {
    let tree = format!("{:?}", parse(FileId::default(), text).tree.items);
    let mut parts = tree.split("Span { start: ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shape, part| shape + part.split_once('}').map_or(part, |(_, rest)| rest))
}

fn hash(text: &str) -> ProgramHash {
    let compiled = compile(&Sources::one("program.afl", text), Validation::Skip);
    compiled.program.expect("the text is valid").hash()
}

/// The comments without the blanks around their lines.
fn comments(text: &str) -> Vec<Vec<&str>> {
    let tree = parse(FileId::default(), text).tree;
    tree.comments.iter().map(|comment| text[comment.span.range()].lines().map(str::trim).collect()).collect()
}

/// Where tokens begin; scripts are taken for tokens, too.
fn gaps(text: &str) -> Vec<usize> {
    let mut lexer = Lexer::new(text, None);
    let mut gaps = Vec::new();
    loop {
        let token = lexer.next_token();
        gaps.push(token.span.start as usize);
        if token.kind == TokenKind::Eof {
            return gaps;
        }
    }
}

fn programs() -> Vec<Fixture> {
    let folders = ["tests/format", "tests/documents", "tests/compile", "../../conformance"];
    folders.iter().flat_map(|folder| fixture::read(folder, "afl")).collect()
}

//! Laws of every text and every compiled document, however odd. Tests and fuzzers call them.

use afl_lang::diagnostic::Diagnostic;
use afl_lang::format::format;
use afl_lang::graph::{self, GraphFormat};
use afl_lang::limits::MAX_DIAGNOSTICS;
use afl_lang::program::{Emit, FacetKind, LoadError, Program, load};
use afl_lang::render::{self, Color};
use afl_lang::source::{FileId, FileSpan, Source, Sources};
use afl_lang::syntax::parse;
use afl_lang::{Compilation, Validation, compile};

/// Rendering is the same for each, and there may be a thousand.
const RENDERED: usize = 10;

/// Parsing and checking any text ends, and every diagnostic has its place.
pub(crate) fn of_text(text: &str) {
    let sources = Sources::one("a.afl", text);
    let Compilation { program, diagnostics } = compile(&sources, Validation::Skip);
    of_diagnostics(&sources, &diagnostics);
    let broken = parse(FileId(0), text).diagnostics.iter().any(Diagnostic::is_error);
    assert_eq!(program.is_none(), broken, "a text that parses gives a program");
}

fn of_diagnostics(sources: &Sources, diagnostics: &[Diagnostic]) {
    assert!(diagnostics.len() <= MAX_DIAGNOSTICS + 1, "{} are too many", diagnostics.len());
    assert!(diagnostics.is_sorted_by_key(|one| (one.place.file, one.place.span.start)), "not in order");
    for one in diagnostics {
        check_place(sources, one.place, &one.message);
        one.related.iter().for_each(|label| check_place(sources, label.place, &label.message));
        assert!(!one.message.is_empty(), "{} says nothing", one.code.text());
    }
    let some = &diagnostics[..diagnostics.len().min(RENDERED)];
    for rendered in [
        render::human(sources, some, Color::Plain),
        render::github(sources, some),
        render::json(sources, some),
    ] {
        assert!(some.is_empty() || !rendered.is_empty(), "a diagnostic renders as something");
    }
}

fn check_place(sources: &Sources, place: FileSpan, message: &str) {
    let text = &sources.get(place.file).text;
    assert!(text.get(place.span.range()).is_some(), "{:?} is no part of the text: {message}", place.span);
}

/// Formatting changes only the layout, and not twice.
pub(crate) fn of_layout(text: &str) {
    let parsed = parse(FileId(0), text);
    let once = match format(text) {
        Ok(once) => once,
        Err(errors) => {
            assert!(errors.iter().any(Diagnostic::is_error), "refused without an error");
            return;
        }
    };
    assert!(!parsed.diagnostics.iter().any(Diagnostic::is_error), "formatted in spite of errors");
    let again = parse(FileId(0), &once);
    assert!(!again.diagnostics.iter().any(Diagnostic::is_error), "does not parse:\n{once}");
    assert_eq!(shape(text), shape(&once), "another program:\n{once}");
    assert_eq!(comments(text), comments(&once), "other comments:\n{once}");
    let twice = format(&once).expect("what was formatted parses");
    let change = once.lines().zip(twice.lines()).find(|(before, after)| before != after);
    assert!(once == twice, "formatting twice gives something else: {change:?}");
    assert_eq!(hash(text), hash(&once), "another hash:\n{once}");
}

/// The tree without positions.
fn shape(text: &str) -> String {
    let tree = format!("{:?}", parse(FileId(0), text).tree.items);
    let mut parts = tree.split("Span { start: ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shape, part| shape + part.split_once('}').map_or(part, |(_, rest)| rest))
}

/// The comments without the blanks around their lines.
fn comments(text: &str) -> Vec<Vec<&str>> {
    let comments = parse(FileId(0), text).tree.comments;
    comments.iter().map(|comment| text[comment.span.range()].lines().map(str::trim).collect()).collect()
}

fn hash(text: &str) -> String {
    let program = compile(&Sources::one("a.afl", text), Validation::Skip).program;
    program.map_or_else(|| "none".to_owned(), |program| program.hash().to_string())
}

/// Loading any bytes ends; a loaded program is written and loaded again without a change.
pub(crate) fn of_document(json: &[u8]) {
    match load(json) {
        Ok(program) => of_loaded(&program),
        Err(LoadError::HashMismatch { recorded, computed }) => {
            // Behind the hash there is more to get wrong.
            let text = String::from_utf8_lossy(json).replace(&recorded.to_string(), &computed.to_string());
            match load(text.as_bytes()) {
                Ok(program) => of_loaded(&program),
                Err(error) => assert!(!error.to_string().is_empty(), "the error says nothing"),
            }
        }
        Err(error) => assert!(!error.to_string().is_empty(), "the error says nothing"),
    }
}

fn of_loaded(program: &Program) {
    let written = program.emit(Emit::WHOLE).to_vec();
    let again = load(&written).expect("what was written can be loaded");
    assert_eq!(*program, again, "loaded as another program");
    assert_eq!(program.hash(), again.hash(), "loaded with another hash");
    of_graphs(program);
}

/// Every workflow can be drawn.
fn of_graphs(program: &Program) {
    for workflow in program.facets_of(FacetKind::Workflow) {
        let graph = graph::of(program, Some(&workflow.id)).expect("the workflow is there");
        for format in [GraphFormat::Mermaid, GraphFormat::Dot, GraphFormat::Json, GraphFormat::Svg] {
            assert!(!graph.render(format).is_empty(), "a graph is written as something");
        }
    }
}

/// A program that should have no mistake has none, and all else that is promised holds of it.
pub(crate) fn of_program(texts: &[String]) {
    let named = texts.iter().enumerate().map(|(at, text)| Source::new(format!("{at}.afl"), text.as_str()));
    let sources = Sources(named.collect());
    let Compilation { program, diagnostics } = compile(&sources, Validation::Require);
    of_diagnostics(&sources, &diagnostics);
    let errors: Vec<Diagnostic> = diagnostics.into_iter().filter(Diagnostic::is_error).collect();
    assert!(errors.is_empty(), "{}", render::human(&sources, &errors, Color::Plain));
    let program = program.expect("there are no errors");
    of_loaded(&program);
    let again = compile(&sources, Validation::Require).program.expect("there are no errors");
    let bytes = |program: &Program| program.emit(Emit::WHOLE).to_vec();
    assert_eq!(bytes(&program), bytes(&again), "compiled to other bytes");
    for text in texts {
        of_layout(text);
    }
}

//! The AFL of the documents, as they print it, compiles and has the structure that they describe.

#![expect(clippy::disallowed_methods, reason = "the crate reads no file, its tests read fixtures")]

mod fixture;

use afl_lang::Validation;
use afl_lang::code::Code;
use afl_lang::program::{BlockContent, Decl, FacetDecl, Program, Statement, StepStmt};
use afl_lang::render::{self, Color};
use afl_lang::source::Sources;

#[test]
fn every_program_of_the_documents_compiles() {
    let documents = fixture::read("tests/documents", "afl");
    assert_eq!(documents.len(), 4);
    for document in documents {
        program(&document.text);
    }
}

// covers: RT-21.3-b
#[test]
fn step_names_are_unique_in_a_block_and_reusable_across_blocks() {
    let text = document("003_21_3_test_three");
    let program = program(&text);
    let workflow = facet(&program, "test.three.TestThree");
    let names: Vec<Vec<&str>> =
        (0..3).map(|block| steps(workflow, block).iter().map(|step| step.name.as_str()).collect()).collect();
    assert_eq!(names, [["a", "b", "c"], ["a", "b", "c"], ["a", "b", "c"]]);

    let twice = text.replacen("b = Value", "a = Value", 1);
    let compiled = afl_lang::compile(&Sources::one("twice.afl", twice), Validation::Require);
    assert!(compiled.diagnostics.iter().any(|one| one.code == Code::DuplicateStep));
    assert!(compiled.program.is_none());
}

#[test]
fn steps_depend_on_the_steps_that_they_read() {
    let one = program(&document("003_21_1_test_one"));
    assert_eq!(dependencies(facet(&one, "test.one.TestOne")), [("s1", vec![]), ("s2", vec!["s1"])]);
    let two = program(&document("003_21_2_test_two"));
    let expected = [("a", vec![]), ("b", vec![]), ("c", vec!["a", "b"])];
    assert_eq!(dependencies(facet(&two, "test.two.TestTwo")), expected);
}

fn document(name: &str) -> String {
    let documents = fixture::read("tests/documents", "afl");
    documents.into_iter().find(|document| document.name == name).expect("the document is there").text
}

/// Compiles without errors.
fn program(text: &str) -> Program {
    let sources = Sources::one("document.afl", text);
    let compiled = afl_lang::compile(&sources, Validation::Require);
    compiled
        .program
        .unwrap_or_else(|| panic!("{}", render::human(&sources, &compiled.diagnostics, Color::Plain)))
}

fn facet<'p>(program: &'p Program, id: &str) -> &'p FacetDecl {
    let Decl::Namespace(namespace) = &program.declarations[0] else { panic!("it begins with a namespace") };
    let found = namespace.declarations.iter().find_map(|decl| match decl {
        Decl::Facet(facet) if *facet.id == *id => Some(facet),
        Decl::Facet(_) | Decl::Namespace(_) | Decl::Schema(_) | Decl::Implicit(_) => None,
    });
    found.unwrap_or_else(|| panic!("{id} is declared"))
}

fn steps(facet: &FacetDecl, block: usize) -> Vec<&StepStmt> {
    let BlockContent::Steps(block) = &facet.body[block].content else { panic!("it is a plain block") };
    let steps = block.steps.iter().filter_map(|statement| match statement {
        Statement::Step(step) => Some(step),
        Statement::Log(_) | Statement::Assert(_) => None,
    });
    steps.collect()
}

fn dependencies(facet: &FacetDecl) -> Vec<(&str, Vec<&str>)> {
    let steps = steps(facet, 0);
    steps
        .into_iter()
        .map(|step| (step.name.as_str(), step.depends_on.iter().map(String::as_str).collect()))
        .collect()
}

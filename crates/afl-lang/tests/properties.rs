//! Random programs have no errors and keep every promise; damaged ones are answered with diagnostics.
//!
//! Seeds are fixed, so a run can be repeated; a failure names its seed.
#![expect(clippy::disallowed_methods, reason = "the crate reads no file, its tests read fixtures")]

mod fixture;
mod generate;
mod laws;
#[path = "generate/pathological.rs"]
mod pathological;
#[path = "generate/sized.rs"]
mod sized;

use std::panic::{self, AssertUnwindSafe};

use afl_lang::operator::{BinaryOp, BinaryOperands, CONCAT, UnaryOp, UnaryOperand};
use afl_lang::program::{BlockContent, Emit, ExprKind};
use afl_lang::source::{FileId, Sources};
use afl_lang::syntax::parse;
use afl_lang::{Validation, compile};
use fixture::Fixture;
use generate::dice::Dice;
use generate::{mutate, random};

/// How many random programs are tried.
const PROGRAMS: u64 = 256;

/// How often each program is damaged.
const DAMAGES: u64 = 10;

#[test]
fn random_programs_keep_every_promise() {
    for seed in 0..PROGRAMS {
        let texts = random::program(&mut Dice::seeded(seed));
        naming(&format!("program {seed}"), &texts, || laws::of_program(&texts));
    }
}

#[test]
fn every_construct_is_generated() {
    let texts = (0..PROGRAMS).flat_map(|seed| random::program(&mut Dice::seeded(seed)));
    let trees: Vec<String> = texts.map(|text| format!("{:?}", parse(FileId(0), &text).tree)).collect();
    for construct in CONSTRUCTS {
        assert!(trees.iter().any(|tree| tree.contains(construct)), "no random program has `{construct}`");
    }
}

#[test]
fn every_binary_operator_is_read_checked_written_and_loaded() {
    for &op in BinaryOp::ALL {
        let (left, right) = match op.operands() {
            BinaryOperands::Booleans => ("Boolean", "Boolean"),
            BinaryOperands::Numbers | BinaryOperands::Ordered => ("Long", "Double"),
            BinaryOperands::Strings | BinaryOperands::OneKind => ("String", "String"),
            BinaryOperands::Summands => ("[Long]", "[Double]"),
            BinaryOperands::ElementIn => ("Long", "[Long]"),
            BinaryOperands::ContainerOf => ("[Long]", "Long"),
        };
        let kind = compiled([left, right], &format!("$.a {} $.b", op.text()));
        assert!(matches!(kind, ExprKind::Binary(found, _) if found == op), "{op:?} is read as {kind:?}");
    }
}

#[test]
fn every_unary_operator_is_read_checked_written_and_loaded() {
    for &op in UnaryOp::ALL {
        let operand = match op.operand() {
            UnaryOperand::Boolean => "Boolean",
            UnaryOperand::Number => "Long",
        };
        let kind = compiled([operand, "Long"], &format!("{}$.a", op.text()));
        let is_it = match kind {
            ExprKind::Unary(found, _) => found == op,
            _ => !op.is_compiled(),
        };
        assert!(is_it, "{op:?} is read as {kind:?}");
    }
}

#[test]
fn concatenation_is_read_checked_written_and_loaded() {
    let kind = compiled(["Long", "String"], &format!("$.a {CONCAT} $.b {CONCAT} $.a"));
    assert!(matches!(&kind, ExprKind::Concat(operands) if operands.len() == 3), "{kind:?}");
}

/// The expression as a program with inputs of these types has it. All that is promised of programs holds
/// of this one, and the expression is printed as it was written.
fn compiled(types: [&str; 2], expression: &str) -> ExprKind {
    let [a, b] = types;
    let text =
        format!("workflow W(a: {a}, b: {b}) => (o: Json) andThen {{\n  yield W(o = {expression})\n}}\n");
    laws::of_program(std::slice::from_ref(&text));
    let program = compile(&Sources::one("a.afl", text), Validation::Require).program.expect("no errors");
    let facet = program.facet("W").expect("it is declared");
    let BlockContent::Steps(statements) = &facet.body[0].content else { unreachable!("a plain block") };
    let expr = &statements.yields[0].args[0].value;
    assert_eq!(expr.to_string(), expression.trim_start_matches('+'));
    expr.kind.clone()
}

#[test]
fn damaged_programs_are_answered_and_relaid_ones_formatted() {
    let random = (0..PROGRAMS).step_by(8).flat_map(|seed| random::program(&mut Dice::seeded(seed)));
    let folders = ["../../conformance", "tests/format", "tests/compile"];
    let fixtures = folders.iter().flat_map(|folder| fixture::read(folder, "afl"));
    let texts = fixtures.map(|Fixture { text, .. }| text).chain(random);
    for (number, text) in texts.enumerate() {
        for seed in 0..DAMAGES {
            let damaged = mutate::damaged(&text, &mut Dice::seeded(seed ^ (number as u64) << 32));
            naming(&format!("damage {seed} of text {number}"), std::slice::from_ref(&damaged), || {
                laws::of_text(&damaged);
                laws::of_layout(&damaged);
            });
            let relaid = mutate::relaid(&text, &mut Dice::seeded(seed));
            naming(&format!("layout {seed} of text {number}"), std::slice::from_ref(&relaid), || {
                laws::of_layout(&relaid);
            });
        }
    }
}

#[test]
fn damaged_documents_are_refused_or_loaded() {
    for seed in (0..PROGRAMS).step_by(8) {
        let sources = Sources::one("a.afl", random::program(&mut Dice::seeded(seed)).join("\n"));
        let compiled = compile(&sources, Validation::Skip).program;
        let Some(document) = compiled.map(|program| program.emit(Emit::WHOLE).to_vec()) else { continue };
        for damage in 0..DAMAGES {
            let damaged = mutate::bytes(&document, &mut Dice::seeded(seed << 32 | damage));
            let text = String::from_utf8_lossy(&damaged).into_owned();
            naming(&format!("damage {damage} of document {seed}"), &[text], || laws::of_document(&damaged));
        }
    }
}

#[test]
fn choices_that_run_out_give_a_program() {
    for bytes in [&[][..], &[255; 40], &[7; 400]] {
        laws::of_program(&random::program(&mut Dice::from_bytes(bytes)));
    }
}

/// Large ones are for the bench; here they are small.
#[test]
fn programs_of_the_bench_are_what_they_say() {
    let plain = sized::program(500);
    let found = compile(&Sources::one("a.afl", plain.as_str()), Validation::Require).diagnostics;
    assert_eq!(found, [], "not even a warning is expected");
    laws::of_program(&[plain]);
    for shape in pathological::LEGAL {
        let text = (shape.text)(shape.elements.min(20));
        naming(shape.name, std::slice::from_ref(&text), || laws::of_program(std::slice::from_ref(&text)));
    }
    for shape in pathological::BROKEN {
        let text = (shape.text)(shape.elements.min(200));
        naming(shape.name, std::slice::from_ref(&text), || {
            laws::of_text(&text);
            let compiled = compile(&Sources::one("a.afl", text.as_str()), Validation::Require);
            assert!(compiled.program.is_none(), "it has no mistake");
        });
    }
}

/// Runs a check; if it fails, says of what.
fn naming(name: &str, texts: &[String], check: impl FnOnce()) {
    if let Err(failure) = panic::catch_unwind(AssertUnwindSafe(check)) {
        eprintln!("{name}:\n{}", texts.join("\n----\n"));
        panic::resume_unwind(failure);
    }
}

/// How the parts of the grammar show in a printed tree, one each.
const CONSTRUCTS: &[&str] = &[
    "Namespace(",
    "extent: Braces(",
    "extent: RestOfFile",
    "Use(",
    "doc: Some(",
    "kind: Plain",
    "kind: Event",
    "kind: Workflow",
    "Schema(",
    "Implicit(",
    "returns: Some(",
    "default: Some(",
    "alias: Some(",
    "nullable: true",
    "kind: List(",
    "script: Some(",
    "prompt: Some(",
    "language: Some(",
    "Text(",
    "Braces(\"",
    "kind: Block(",
    "kind: Foreach(",
    "kind: When(",
    "kind: Script(",
    "catch: Some(",
    "Step(",
    "Log(",
    "Assert(",
    "Yield(",
    "If(",
    "Otherwise(",
    "String(",
    "Int(",
    "Double(",
    "Boolean(",
    "Null",
    "Array(",
    "Map(",
    "Name(Ident",
    "String(StringLit",
    "Input([]",
    "Input([",
    "Name([",
    "Concat(",
    "Unary(Negate",
    "Unary(Plus",
    "Unary(Not",
    "Index(",
    "Field(",
    "Paren(",
    "kind: Line",
    "kind: Block,",
    "kind: Doc",
    "Binary(Or,",
    "Binary(And,",
    "Binary(Equal,",
    "Binary(NotEqual,",
    "Binary(Less,",
    "Binary(GreaterEqual,",
    "Binary(In,",
    "Binary(NotIn,",
    "Binary(Contains,",
    "Binary(StartsWith,",
    "Binary(EndsWith,",
    "Binary(Add,",
    "Binary(Subtract,",
    "Binary(Multiply,",
    "Binary(Divide,",
    "Binary(Modulo,",
];

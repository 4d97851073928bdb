//! The meaning of expressions: a table of facts, each through the real compiler.

use std::fmt::Write as _;

use afl_engine::eval::{Root, Scope, eval, holds};
use afl_engine::value::MAX_VALUES_BYTES;
use afl_engine::{EvalError, Value};
use afl_lang::limits::MAX_EXPRESSION_HEIGHT;
use afl_lang::program::{
    BinaryOp, BlockContent, CatchContent, Decl, Expr, ExprKind, InputSource, Statement, Statements, UnaryOp,
};
use afl_lang::source::Sources;
use afl_lang::{Validation, compile};

const FACTS: &str = include_str!("fixtures/expressions.txt");

#[test]
fn every_expression_has_the_value_or_the_error_of_the_table() {
    // covers: RT-7-c
    let mut wrong = String::new();
    for fact in facts() {
        let found = outcome(&compiled(fact.expression), &fact.readable);
        if found != fact.expected {
            let Fact { line, expression, expected, .. } = fact;
            writeln!(wrong, "{line}: {expression}\n  expected {expected}\n  found    {found}")
                .expect("a string");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn an_expression_written_back_means_the_same() {
    for fact in facts() {
        let expr = compiled(fact.expression);
        let again = compiled(&expr.to_string());
        assert_eq!(outcome(&again, &fact.readable), fact.expected, "{expr}");
        assert_eq!(again.to_string(), expr.to_string());
    }
}

#[test]
fn every_operator_stands_in_the_table() {
    let mut binary = Vec::new();
    let mut unary = Vec::new();
    for expr in facts().map(|fact| compiled(fact.expression)) {
        expr.walk(&mut |part| match part.kind {
            ExprKind::Binary(op, _) => binary.push(op),
            ExprKind::Unary(op, _) => unary.push(op),
            _ => {}
        });
    }
    let missing = BinaryOp::ALL.iter().find(|op| !binary.contains(op)).map(|op| op.text());
    assert_eq!(missing, None, "no fact has this binary operator");
    let missing = UnaryOp::ALL.iter().find(|op| op.is_compiled() && !unary.contains(op)).map(|op| op.text());
    assert_eq!(missing, None, "no fact has this unary operator");
}

#[test]
fn a_catch_reads_its_error() {
    let text = "facet Cell(v: Json)\nworkflow W() => (o: Json) andThen { yield W(o = 1) } \
                catch { x = Cell(v = $.error ++ \"/\" ++ $.error_type) }";
    let readable = serde_json::json!({"error": "down", "error_type": "Timeout"});
    assert_eq!(outcome(&argument(text), &readable), "\"down/Timeout\"");
}

#[test]
fn a_condition_is_a_boolean() {
    let readable = Readable(serde_json::json!({"n": 1}));
    assert_eq!(holds(&compiled("$.n > 0"), &readable), Ok(true));
    let error = holds(&compiled("$.n"), &readable).expect_err("a number is no condition");
    assert_eq!(error.to_string(), "a condition must be Boolean, but `$.n` is Long");
}

#[test]
fn a_value_may_not_nest_deeper_than_the_reader_allows() {
    let deep = |levels: usize| (0..levels).fold(Value::from(1), |value, _| Value::from(vec![value]));
    let wrap = compiled("[$.a]");
    let fine = eval(&wrap, &Readable(serde_json::json!({"a": deep(99)}))).expect("a hundred levels");
    assert_eq!(serde_json::from_str::<Value>(&fine.to_string()).expect("it is read back"), fine);
    let error = eval(&wrap, &Readable(serde_json::json!({"a": deep(100)})));
    assert_eq!(error, Err(EvalError::TooDeep { expr: "[$.a]".to_owned() }));
}

#[test]
fn a_text_that_grows_beyond_all_bounds_is_refused_before_it_is_made() {
    let readable = Readable(serde_json::json!({"a": "x".repeat(MAX_VALUES_BYTES / 2)}));
    for doubling in [
        "$.a ++ $.a",
        "$.a + $.a",
        "[$.a] + [$.a]",
        "[$.a, $.a]",
        "#{\"b\": $.a, \"c\": [$.a]}",
        "[$.a] ++ [$.a]",
        "[$, 1, $.a]",
    ] {
        let error = eval(&compiled(doubling), &readable).expect_err("twice the half and more");
        assert!(error.to_string().contains("is the limit"), "{error}");
    }
}

#[test]
fn the_highest_expression_is_evaluated() {
    let height = MAX_EXPRESSION_HEIGHT as usize;
    let sum = compiled(&vec!["1"; height].join(" + "));
    assert_eq!(outcome(&sum, &Value::Null), height.to_string());
}

#[test]
fn a_long_expression_is_cut_in_messages() {
    let long = format!("(\"{}\" ++ $.a)[1000]", "x".repeat(200));
    let found = outcome(&compiled(&long), &serde_json::json!({"a": 1}));
    let part = "x".repeat(59);
    assert_eq!(found, format!("error: index 1000 is outside `\"{part}…`, whose length is 201"));
}

struct Fact {
    line: usize,
    expression: &'static str,
    readable: Value,
    expected: &'static str,
}

fn facts() -> impl Iterator<Item = Fact> {
    let is_chapter = |line: &str| line.starts_with('[') && !line.contains(" | ");
    let lines = FACTS.lines().enumerate();
    lines.filter(move |(_, line)| !line.is_empty() && !line.starts_with('#') && !is_chapter(line)).map(
        |(at, text)| {
            let mut parts = text.splitn(3, " | ");
            let mut part = || parts.next().expect("three parts");
            let (expression, readable, expected) = (part(), part(), part());
            let readable = serde_json::from_str(readable).expect("what can be read is JSON");
            Fact { line: at + 1, expression, readable, expected }
        },
    )
}

fn outcome(expr: &Expr, readable: &Value) -> String {
    match eval(expr, &Readable(readable.clone())) {
        Ok(value) => value.to_string(),
        Err(error) => format!("error: {error}"),
    }
}

/// The keys of one object: `up` is a step, `item` a variable, all others are attributes of `$`.
struct Readable(Value);

impl Scope for Readable {
    fn attribute(&self, root: Root<'_>, name: &str) -> Option<&Value> {
        match root {
            Root::Input(InputSource::Owner | InputSource::Foreach | InputSource::Caught) => self.0.get(name),
            Root::Step { name: step, clause: None } => self.0.get(step)?.get(name),
            Root::Step { clause: Some(_), .. } => None,
        }
    }

    fn record(&self, root: Root<'_>) -> Vec<(&str, &Value)> {
        let record = match root {
            Root::Input(_) => self.0.as_object(),
            Root::Step { name, .. } => self.0.get(name).and_then(Value::as_object),
        };
        record.into_iter().flatten().map(|(name, value)| (name.as_str(), value)).collect()
    }
}

/// The expression as the argument of a step that reads inputs, a variable and another step.
fn compiled(expression: &str) -> Expr {
    let params = ["a", "b", "c", "n", "s", "xs", "cfg"].map(|name| format!("{name}: Json")).join(", ");
    argument(&format!(
        "facet Cell(v: Json)\nfacet Pair(v: Json, w: Json)\n\
         workflow W({params}) andThen foreach item in $.xs {{\n\
         up = Pair(v = null, w = null)\nx = Cell(v = {expression})\n}}"
    ))
}

/// The argument of the step `x` of a workflow `W`.
fn argument(text: &str) -> Expr {
    let compiled = compile(&Sources::one("table.afl", text), Validation::Require);
    let program = compiled.program.unwrap_or_else(|| panic!("{text}\n{:#?}", compiled.diagnostics));
    let workflow = program.declarations.into_iter().find_map(|decl| match decl {
        Decl::Facet(facet) if facet.name == "W" => Some(facet),
        _ => None,
    });
    let workflow = workflow.expect("a workflow");
    let body = workflow.body.into_iter().filter_map(|block| match block.content {
        BlockContent::Steps(statements) | BlockContent::Foreach(_, statements) => Some(statements),
        BlockContent::When(_) | BlockContent::Script(_) => None,
    });
    let catch = workflow.catch.into_iter().filter_map(|catch| match catch.content {
        CatchContent::Steps(statements) => Some(statements),
        CatchContent::When(_) => None,
    });
    let steps = body.chain(catch).flat_map(|Statements { steps, .. }| steps);
    let argument = steps.filter_map(|statement| match statement {
        Statement::Step(step) if step.name == "x" => step.call.args.into_iter().next(),
        _ => None,
    });
    argument.last().expect("a step `x` with an argument").value
}

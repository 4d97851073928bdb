//! The data flow of a workflow, in every format.

use afl_lang::graph::{self, Graph, GraphError, GraphFormat};
use afl_lang::program::Program;
use afl_lang::source::Sources;
use afl_lang::{Validation, compile};

fn compiled(text: &str) -> Program {
    let compiled = compile(&Sources::one("main.afl", text), Validation::Require);
    compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

fn graph_of(text: &str, workflow: &str) -> Graph {
    graph::of(&compiled(text), Some(workflow)).expect("the workflow is there")
}

macro_rules! snapshots {
    ($($name:ident($file:literal, $workflow:literal, $format:ident);)*) => {$(
        #[test]
        fn $name() {
            let graph = graph_of(include_str!(concat!("programs/", $file)), $workflow);
            insta::assert_snapshot!(graph.render(GraphFormat::$format));
        }
    )*};
}

snapshots! {
    steps_read_inputs_and_one_another("chain.afl", "Read", Mermaid);
    a_schema_is_a_step("fan.afl", "Checkout", Mermaid);
    a_loop_is_a_cluster_with_its_variable("foreach.afl", "Forecast", Mermaid);
    each_case_is_a_cluster("when.afl", "Triage", Mermaid);
    a_catch_hangs_on_its_step("catch.afl", "Publish", Mermaid);
    a_block_at_a_step_is_a_cluster("nested.afl", "Outer", Mermaid);
    graphviz_gets_the_same("nested.afl", "Outer", Dot);
    json_gets_the_same("catch.afl", "Publish", Json);
    a_picture_needs_no_other_program("when.afl", "Triage", Svg);
}

// F22: a graph is inert.
#[test]
fn texts_are_escaped() {
    let graph = graph_of(
        r##"facet V(s: String)
        workflow W(s: String) andThen when {
            case $.s == "<b>\"#1\" & `two`\\" => { v = V(s = $.s) }
            case _ => {}
        }"##,
        "W",
    );
    let captions = |format| {
        let text = graph.render(format);
        text.lines().filter(|line| line.contains("two")).collect::<Vec<_>>().join("\n")
    };
    let formats = [GraphFormat::Mermaid, GraphFormat::Dot, GraphFormat::Json, GraphFormat::Svg];
    insta::assert_snapshot!(formats.map(captions).join("\n"));
}

#[test]
fn the_workflow_is_found_by_its_short_name_or_when_it_is_the_only_one() {
    let program = compiled("namespace a { workflow Run() }");
    for name in [None, Some("Run"), Some("a.Run")] {
        assert_eq!(&*graph::of(&program, name).unwrap().workflow, "a.Run");
    }
}

#[test]
fn a_workflow_that_is_not_there_is_answered_with_those_that_are() {
    let error = |text: &str, name| -> GraphError { graph::of(&compiled(text), name).expect_err("no graph") };
    let two = "namespace a { workflow Run() }  namespace b { workflow Run()  workflow Stop() }";
    let many = (0..20).map(|at| format!("workflow W{at}()")).collect::<Vec<_>>().join("\n");
    let errors = [
        error("facet F()", None),
        error("facet F()", Some("F")),
        error(two, None),
        error(two, Some("Run")),
        error(two, Some("Stpo")),
        error(two, Some("Elsewhere")),
        error(&many, None),
    ];
    insta::assert_snapshot!(errors.map(|error| error.to_string()).join("\n"));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the cases are files")]
fn every_workflow_of_the_conformance_cases_is_drawn() {
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance");
    for entry in std::fs::read_dir(cases).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "afl") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let compiled = compile(&Sources::one("main.afl", text), Validation::Require);
        let Some(program) = compiled.program else { continue };
        let names = match graph::of(&program, None) {
            Ok(graph) => vec![graph.workflow.to_string()],
            Err(GraphError::SeveralWorkflows { candidates }) => candidates,
            Err(GraphError::NoWorkflow) => vec![],
            Err(error) => panic!("{error}"),
        };
        for name in names {
            let graph = graph::of(&program, Some(&name)).unwrap();
            for format in [GraphFormat::Mermaid, GraphFormat::Dot, GraphFormat::Json, GraphFormat::Svg] {
                assert!(!graph.render(format).contains("NaN"), "{name} of {}", path.display());
            }
        }
    }
}

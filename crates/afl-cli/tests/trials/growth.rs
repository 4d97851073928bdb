//! F15: runs whose values grow without end. They fail by the path of a step, and their process lives on.

use std::fmt::Write as _;
use std::process::Command;

use serde_json::Value;

use crate::world::World;

/// Each step takes the last one's value twice. The source is a few lines, and the value would fill any machine.
fn doubling(expression: &str) -> String {
    let mut source = String::from("facet Cell(v: Json) => (v: Json)\n");
    source += "workflow Grow(v: Json) => (v: Json) andThen {\n    s0 = Cell(v = $.v)\n";
    for step in 1..=40 {
        let value = expression.replace('S', &format!("s{}.v", step - 1));
        writeln!(source, "    s{step} = Cell(v = {value})").unwrap();
    }
    source + "    yield Grow(v = s40.v)\n}\n"
}

/// A `foreach` that yields the list of its owner once for each of its elements, in each of nested facets.
fn joining() -> String {
    let mut source = String::from("facet Grow0(v: [Json]) => (v: [Json]) andThen { yield Grow0(v = $.v) }\n");
    for level in 1..=12 {
        let last = level - 1;
        let kind = if level == 12 { "workflow" } else { "facet" };
        let name = if level == 12 { "Grow".to_owned() } else { format!("Grow{level}") };
        writeln!(
            source,
            "{kind} {name}(v: [Json]) => (v: [Json]) andThen {{
                s = Grow{last}(v = $.v)
            }} andThen foreach x in [1, 2, 3, 4, 5, 6, 7, 8] {{ yield {name}(v = s.v) }}"
        )
        .unwrap();
    }
    source
}

#[test]
fn f15_a_value_that_grows_without_end_fails_its_step_before_it_fills_the_memory() {
    for (source, input, step) in [
        (doubling("[S, S]"), "1", "Grow.s"),
        (doubling("#{\"a\": S, \"b\": S}"), "1", "Grow.s"),
        (doubling("S ++ S"), "\"x\"", "Grow.s"),
        (joining(), "[1]", "Grow"),
    ] {
        let world = World::new(&source);
        let afl = env!("CARGO_BIN_EXE_afl");
        let mut command = Command::new("sh");
        // A process that takes more is stopped, so that a failure here harms no other test.
        command.args(["-c", "ulimit -v 4000000; exec \"$@\"", "sh", afl]);
        command.args(["run", "program.afl", "--store", "memory:", "--json", "-i"]);
        let output = command.arg(format!("v={input}")).current_dir(world.path("")).output().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {source}: {}", String::from_utf8_lossy(&output.stderr)));
        let error = &told["error"];
        assert!(error["message"].as_str().unwrap().contains("268435456 bytes is the limit"), "{told}");
        assert!(error["path"].as_str().unwrap().starts_with(step), "{told}");
    }
}

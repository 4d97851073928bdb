//! Random programs against the oracle, on the bare evaluator.

mod random;
#[expect(dead_code, reason = "each test file uses a part of it")]
mod world;

use std::collections::BTreeMap;

use afl_engine::Value;
use afl_engine::evaluation::Evaluation;
use afl_engine::run::RunStatus;
use afl_engine::time::Millis;
use random::{Expected, INPUT, Program, Rng, answer, expect, is_refused};
use serde_json::{Map, json};
use world::{World, options, plan_of, start};

const SEEDS: u64 = 150;

// G6: same inputs and same outcomes, same final state, whatever the order and the crashes.
#[test]
fn g6_random_programs_come_to_what_the_oracle_says() {
    let mut failed = 0;
    for seed in 0..SEEDS {
        let program = Program::generate(seed);
        let expected = expect(&program, INPUT);
        failed += u64::from(expected.out.is_none());
        let (found, canonical) = run(&program, seed, 1_000);
        assert_eq!(found, expected, "seed {seed}:\n{}", program.text());
        let (again, other) = run(&program, seed + 77, 1);
        assert_eq!(again, expected, "seed {seed}");
        assert_eq!(canonical, other, "seed {seed}");
    }
    assert!((SEEDS / 10..SEEDS * 9 / 10).contains(&failed), "{failed} of {SEEDS} programs fail");
}

/// Runs with a new evaluator for each commit when the budget is one write.
fn run(program: &Program, seed: u64, writes: usize) -> (Expected, String) {
    let text = program.text();
    let plan = plan_of("random.afl", &text);
    let inputs = json!({"n": INPUT}).as_object().expect("a map").clone();
    let mut evaluation = start(&plan, &format!("F{}", program.facets.len() - 1), inputs, options(writes))
        .expect("the input fits");
    let mut world = World::default();
    let mut rng = Rng::new(seed);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    loop {
        let Some(status) = world.drive_to_commit(&mut evaluation) else {
            evaluation = Evaluation::resume(plan.clone(), world.run(), Millis(3), options(writes));
            continue;
        };
        if status != RunStatus::Paused {
            break;
        }
        let pending = world.pending();
        let id = pending[rng.below(pending.len())].clone();
        let payload = world.payload(&id);
        let by = payload["by"].as_i64().expect("a number");
        *counts.entry(payload["key"].as_str().expect("a text").to_owned()).or_default() += 1;
        let refused = &*world.task(&id).name == "Risk" && is_refused(by);
        world.settle(&id, if refused { Err("refused".to_owned()) } else { Ok(out(answer(by))) });
        evaluation.arrive(id);
    }
    let outputs = world.outputs(&plan);
    let is_done = world.run().item.status == RunStatus::Completed;
    let all = outputs.get("all").and_then(Value::as_array);
    let all = all.map(|all| all.iter().filter_map(Value::as_i64).collect());
    let expected = Expected {
        out: outputs.get("out").and_then(Value::as_i64).filter(|_| is_done),
        all: all.filter(|_| is_done),
        work: counts.values().sum(),
        counts,
    };
    (expected, world.canonical())
}

fn out(value: i64) -> Map<String, Value> {
    json!({"out": value}).as_object().expect("a map").clone()
}

//! Random programs against the oracle, on the bare evaluator.

mod random;
#[expect(dead_code, reason = "each test file uses a part of it")]
mod world;

use std::collections::BTreeMap;

use afl_engine::evaluation::Evaluation;
use afl_engine::history::Actor;
use afl_engine::id::StepId;
use afl_engine::run::RunStatus;
use afl_engine::step::StepRest;
use afl_engine::time::Millis;
use afl_engine::{State, Value};
use random::{
    Catches, Expected, INPUT, Program, Rng, answer, expect, expect_retried, expect_unrefused, is_refused,
};
use serde_json::{Map, json};
use world::{World, options, plan_of, start};

const SEEDS: u64 = 150;

// G6: same inputs and same outcomes, same final state, whatever the order and the crashes.
#[test]
fn g6_random_programs_give_the_results_of_the_oracle() {
    let mut failed = 0;
    for seed in 0..SEEDS {
        let program = Program::generate(seed, Catches::Some);
        let expected = expect(&program, INPUT);
        failed += u64::from(expected.out.is_none());
        check(&program, seed, Operator::Absent, &expected);
    }
    assert!((SEEDS / 10..SEEDS * 9 / 10).contains(&failed), "{failed} of {SEEDS} programs fail");
}

#[test]
fn g6_failed_runs_that_are_tried_again_give_the_results_of_the_oracle() {
    for seed in 0..SEEDS {
        let program = Program::generate(seed, Catches::Some);
        check(&program, seed, Operator::Patient, &expect_retried(&program, INPUT));
    }
}

#[test]
fn g6_steps_that_are_tried_again_while_others_work_give_the_results_of_the_oracle() {
    for seed in 0..SEEDS {
        let program = Program::generate(seed, Catches::None);
        let expected = expect_retried(&program, INPUT);
        assert_eq!(expected.out, expect_unrefused(&program, INPUT).out, "seed {seed}: retries mend all");
        check(&program, seed, Operator::Hasty, &expected);
    }
}

/// The operator that tries failed steps again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Absent,
    /// When the run has failed.
    Patient,
    /// Also while other steps work.
    Hasty,
}

fn check(program: &Program, seed: u64, operator: Operator, expected: &Expected) {
    let (found, canonical) = run(program, seed, 1_000, operator);
    assert_eq!(found, *expected, "seed {seed}:\n{}", program.text());
    let (again, other) = run(program, seed + 77, 1, operator);
    assert_eq!(again, *expected, "seed {seed}:\n{}", program.text());
    assert_eq!(canonical, other, "seed {seed}:\n{}", program.text());
}

/// Runs with a new evaluator for each commit when the budget is one write.
fn run(program: &Program, seed: u64, writes: usize, operator: Operator) -> (Expected, String) {
    let text = program.text();
    let plan = plan_of("random.afl", &text);
    let inputs = json!({"n": INPUT}).as_object().expect("a map").clone();
    let mut evaluation = start(&plan, &format!("F{}", program.facets.len() - 1), inputs, options(writes))
        .expect("the input fits");
    let mut world = World::default();
    let mut rng = Rng::new(seed);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    loop {
        let resume =
            |world: &World| Evaluation::resume(plan.clone(), world.suspended(), Millis(3), options(writes));
        let Some(status) = world.drive_to_commit(&mut evaluation) else {
            evaluation = resume(&world);
            continue;
        };
        let retries = match (operator, status) {
            (_, RunStatus::Completed) | (Operator::Absent, RunStatus::Failed) => break,
            (Operator::Patient | Operator::Hasty, RunStatus::Failed) => true,
            (Operator::Hasty, _) => rng.one_in(3),
            (Operator::Absent | Operator::Patient, _) => false,
        };
        let failed = if retries { world.failed() } else { Vec::new() };
        if failed.is_empty() {
            let pending = world.pending();
            let id = pending[rng.below(pending.len())].clone();
            let payload = world.payload(&id);
            *counts.entry(payload["key"].as_str().expect("a text").to_owned()).or_default() += 1;
            let outcome = outcome(&world, &id, payload["by"].as_i64().expect("a number"), operator);
            world.settle(&id, outcome);
            evaluation.arrive(id);
            continue;
        }
        evaluation = resume(&world);
        let one = rng.below(failed.len());
        let again = if rng.one_in(2) { failed } else { vec![failed[one].clone()] };
        for id in again {
            evaluation.reopen(id, Actor::System, None);
        }
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

/// `Risk` refuses some arguments, always or until an operator has tried the step again.
fn outcome(world: &World, id: &StepId, by: i64, operator: Operator) -> Result<Map<String, Value>, String> {
    let is_failure =
        |rests: &[StepRest]| [rests[0].state, rests[1].state] == [State::EventTransmit, State::Error];
    let tried_before = world.step(id.as_str()).rests.windows(2).any(is_failure);
    let is_mended = operator != Operator::Absent && tried_before;
    if &*world.task(id).name == "Risk" && is_refused(by) && !is_mended {
        return Err("refused".to_owned());
    }
    Ok(out(answer(by)))
}

fn out(value: i64) -> Map<String, Value> {
    json!({"out": value}).as_object().expect("a map").clone()
}

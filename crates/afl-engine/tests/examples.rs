//! The worked examples of document 003 §21, as it walks through them.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod world;

use afl_engine::value::Map;
use afl_engine::{State, Value};
use serde_json::json;
use world::life::{created_in, moves, one, when};
use world::{World, options, plan_of, start};

fn parameter(world: &World, step: &str, name: &str) -> Value {
    world.value(&world.step(step).attributes.params[name].held)
}

fn output(world: &World, name: &str) -> Value {
    world.value(&world.step("w").attributes.returns[name].held)
}

/// When the first thing happened to a step.
fn began(world: &World, step: &str) -> usize {
    moves(world)[step][0].0
}

// covers: RT-21.1-a, RT-21.1-b
#[test]
fn each_step_of_a_chain_begins_when_the_one_before_is_complete() {
    let world = one("spec_21_1");
    let [s1, s2] = ["wb0s0", "wb0s1"];
    assert_eq!(parameter(&world, "w", "input"), json!(1));
    assert_eq!(parameter(&world, s1, "input"), json!(2));
    assert_eq!(parameter(&world, s2, "input"), json!(3));
    assert_eq!(output(&world, "output"), json!(4));
    assert!(began(&world, s1) > when(&world, "w", State::InitEnd), "the inputs come first");
    assert!(began(&world, s2) > when(&world, s1, State::Complete));
    assert!(created_in(&world, s2) > created_in(&world, s1));
}

// covers: RT-21.1-c
#[test]
fn yields_of_blocks_are_merged_when_all_blocks_are_complete_and_not_before() {
    let text = "event facet Ping(n: Long) => (pong: Long)
        workflow W() => (quick: Long, slow: Long) andThen {
            yield W(quick = 1)
        } andThen {
            p = Ping(n = 1)
            yield W(slow = p.pong)
        }";
    let plan = plan_of("two.afl", text);
    let mut evaluation = start(&plan, "W", Map::new(), options(1_000)).expect("it starts");
    let mut world = World::default();
    world.drive(&mut evaluation);
    assert_eq!(world.step("wb0").state, State::Complete, "the first block has yielded");
    assert_eq!(parameter(&world, "wb0s0", "quick"), json!(1));
    let container = world.step("w");
    assert_eq!(container.state, State::StatementBlocksContinue);
    assert!(container.attributes.returns.is_empty(), "{:?}", container.attributes.returns);

    let waiting = world.pending().remove(0);
    world.settle(&waiting, Ok(json!({"pong": 2}).as_object().expect("a map").clone()));
    evaluation.arrive(waiting);
    world.drive(&mut evaluation);
    assert_eq!((output(&world, "quick"), output(&world, "slow")), (json!(1), json!(2)));
    let merged = when(&world, "w", State::StatementCaptureBegin);
    assert!(merged > when(&world, "wb0", State::Complete).max(when(&world, "wb1", State::Complete)));
}

// covers: RT-21.2-a, RT-21.2-b
#[test]
fn steps_without_references_run_in_one_iteration_and_what_reads_both_in_a_later_one() {
    let world = one("spec_21_2");
    let [a, b, c] = ["wb0s0", "wb0s1", "wb0s2"];
    let inputs = [a, b, c].map(|step| parameter(&world, step, "input"));
    assert_eq!(inputs, [json!(2), json!(11), json!(13)]);
    assert_eq!(output(&world, "output"), json!(13));
    assert_eq!(created_in(&world, a), created_in(&world, b));
    for read in [a, b] {
        assert!(created_in(&world, c) > created_in(&world, read));
        assert!(began(&world, c) > when(&world, read, State::Complete));
    }
}

// covers: RT-8-b, RT-21.3-a, RT-21.3-b, RT-21.3-c
#[test]
fn blocks_of_one_step_run_side_by_side_each_with_its_own_names_and_all_yields_are_merged() {
    let world = one("spec_21_3");
    let blocks = ["wb0", "wb1", "wb2"];
    let created = blocks.map(|block| created_in(&world, block));
    assert!(created.iter().all(|iteration| *iteration == created[0]), "{created:?}");
    for block in blocks {
        let inputs = ["s0", "s1", "s2"].map(|step| parameter(&world, &format!("{block}{step}"), "input"));
        assert_eq!(inputs, [json!(2), json!(11), json!(13)], "{block}");
        assert!(when(&world, "w", State::StatementCaptureBegin) > when(&world, block, State::Complete));
    }
    for name in ["output1", "output2", "output3"] {
        assert_eq!(output(&world, name), json!(13), "{name}");
    }
}

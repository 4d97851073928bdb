//! The effects of evaluation on the records of a run, beyond its result.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod world;

use std::fmt::Write as _;
use std::sync::Arc;

use afl_engine::attribute::BlobHash;
use afl_engine::evaluation::{Advance, Damage, Evaluation};
use afl_engine::event::{Event, EventState, Reception};
use afl_engine::history::Actor;
use afl_engine::id::StepId;
use afl_engine::plan::Plan;
use afl_engine::run::RunStatus;
use afl_engine::step::Step;
use afl_engine::task::{Task, TaskState};
use afl_engine::time::Millis;
use afl_engine::trace::Trace;
use afl_engine::{ObjectType, State, Value};
use insta::assert_snapshot;
use serde_json::{Map, json};
use world::{World, cases, options, plan_of, start};

/// The program of a case, started.
fn begin(name: &str) -> (World, Evaluation, Arc<Plan>) {
    let case = cases().into_iter().find(|case| case.name == name).expect("the case is there");
    let plan = plan_of(name, &case.text);
    let workflow = plan.workflows().last().expect("a workflow").to_owned();
    let inputs = case.data["inputs"].as_object().cloned().unwrap_or_default();
    let mut evaluation = start(&plan, &workflow, inputs, options(1_000)).expect("the inputs fit");
    let mut world = World::default();
    world.drive(&mut evaluation);
    (world, evaluation, plan)
}

fn resume(world: &World, plan: &Arc<Plan>) -> Evaluation {
    Evaluation::resume(plan.clone(), world.suspended(), Millis(9), options(1_000))
}

fn answer(world: &mut World, evaluation: &mut Evaluation, id: &str, result: &Value) -> RunStatus {
    let id: StepId = id.parse().expect("an id");
    world.settle(&id, Ok(result.as_object().expect("a map").clone()));
    evaluation.arrive(id);
    world.drive(evaluation)
}

fn fail(world: &mut World, evaluation: &mut Evaluation, id: &str, message: &str) -> RunStatus {
    let id: StepId = id.parse().expect("an id");
    world.settle(&id, Err(message.to_owned()));
    evaluation.arrive(id);
    world.drive(evaluation)
}

/// Where each step stopped, iteration by iteration, by readable path.
fn rests(world: &World, plan: &Plan) -> String {
    let run = world.run().item;
    let mut lines = Vec::new();
    for key in world.records.keys().filter_map(|key| key.strip_prefix("s/")) {
        let step = world.step(key);
        let path = plan.readable(&run.workflow, &key.parse().expect("an id"));
        for rest in &step.rests {
            lines.push((rest.iteration, format!("{path} {}: {}", step.object_type, rest.state)));
        }
    }
    lines.sort();
    let mut text = String::new();
    for (iteration, line) in lines {
        writeln!(text, "{iteration:2} {line}").expect("writing to a string does not fail");
    }
    text
}

// covers: RT-5-a, RT-10-a, RT-10-b, RT-11-a, RT-11-b, RT-11-e
// covers: RT-8-a, RT-8-c, RT-8.2-a, RT-8.2-b, RT-8.3-a, RT-8.3-b, RT-W11-a, RT-W7-b, EVT-1-e, EVT-5-f
#[test]
fn dependants_run_in_a_later_iteration_and_yields_merge_at_the_end() {
    let (world, _, plan) = begin("adder_trace");
    assert_snapshot!(rests(&world, &plan));
}

// covers: RT-8.1-a, RT-8.1-b, RT-8.1-c, RT-8.3-c, RT-10.1-a, EVT-6-a, EVT-6-b, EVT-6-c
// covers: EVT-7-c, EVT-8-c, SDK-2.3-a, SDK-2.3-b, SDK-2.2-e
#[test]
fn an_event_facet_pauses_the_run_and_its_result_resumes_it() {
    let (mut world, mut evaluation, plan) = begin("layout_of_the_documents");
    assert_eq!(world.run().item.status, RunStatus::Paused);
    assert_snapshot!("paused", rests(&world, &plan));
    let status = answer(&mut world, &mut evaluation, "wb0s0b0s0b0s0", &json!({"count": 5}));
    assert_eq!(status, RunStatus::Completed);
    assert_snapshot!("resumed", rests(&world, &plan));
}

// covers: EVT-5-a, EVT-5-b, EVT-5-c, EVT-9-a, EVT-9-b, SDK-2.1-c, SDK-2.2-a, SDK-3.1-b, RT-7-a, RT-7-b, EVT-1-a
#[test]
fn step_event_and_task_are_stored_under_the_documents_names() {
    let (world, _, _) = begin("billing_checkout");
    let mut text = String::new();
    for key in ["run", "s/wb0s0", "e/wb0s0", "t/wb0s0"] {
        writeln!(text, "{key} {}", world.records[key].0).expect("writing to a string does not fail");
    }
    assert_snapshot!(text);
}

// covers: RT-18-a, RT-18-b, RT-18-c, RT-18-d
#[test]
fn every_transition_resolution_iteration_and_publication_is_traced() {
    let (mut world, mut evaluation, _) = begin("billing_checkout");
    answer(&mut world, &mut evaluation, "wb0s0", &json!({"transaction_id": "t", "status": "s", "more": 1}));
    let mut text = String::new();
    for trace in &world.traces {
        let line = serde_json::to_string(trace).expect("traces are JSON");
        writeln!(text, "{line}").expect("writing to a string does not fail");
    }
    assert_snapshot!(text);
}

// covers: EVT-7-d, EVT-7-e, RT-12.1-b, RT-13-c, RT-14-a, RT-6-c
#[test]
fn a_second_arrival_changes_nothing_but_what_woke_it() {
    let (mut world, mut evaluation, plan) = begin("billing_checkout");
    let result = json!({"transaction_id": "t", "status": "s"});
    answer(&mut world, &mut evaluation, "wb0s0", &result);
    let before = world.canonical();
    for mut evaluation in [evaluation, resume(&world, &plan)] {
        evaluation.arrive("wb0s0".parse().expect("an id"));
        assert_eq!(world.drive(&mut evaluation), RunStatus::Completed);
        assert_eq!(before, world.canonical());
    }
}

// covers: RT-6-d, RT-W3-a, RT-13-a, SDK-6.2-b, RT-13-d
#[test]
fn a_failed_step_stays_failed_until_it_is_reopened_and_then_keeps_its_finished_work() {
    let (mut world, mut evaluation, plan) = begin("foreach_order_is_element_order_not_arrival");
    let name = |name: &str| json!({"id": 1, "name": name});
    answer(&mut world, &mut evaluation, "wb0e0s0", &name("first"));
    fail(&mut world, &mut evaluation, "wb0e1s0", "lost");
    assert_eq!(answer(&mut world, &mut evaluation, "wb0e2s0", &name("third")), RunStatus::Failed);
    assert_eq!(world.run().item.error.expect("why").to_string(), "All[1].f: lost");
    let lost = world.step("wb0e1s0");
    assert_eq!((lost.state, lost.state.name()), (State::Error, "state.statement.Error"));
    assert!(lost.is_terminal());
    evaluation.arrive("wb0e1s0".parse().expect("an id"));
    assert_eq!(world.drive(&mut evaluation), RunStatus::Failed);
    assert_eq!(world.step("wb0e1s0"), lost, "nothing is tried again by itself");
    let done = world.records["s/wb0e0s0"].clone();

    let mut evaluation = resume(&world, &plan);
    evaluation.reopen("wb0e1s0".parse().expect("an id"), Actor::System, None);
    assert_eq!(world.drive(&mut evaluation), RunStatus::Paused);
    let task: Task = world.task(&"wb0e1s0".parse().expect("an id"));
    assert_eq!((task.state, task.attempts), (TaskState::Pending, 0));
    let event = world.get::<Event>("e/wb0e1s0").expect("stored").item;
    assert_eq!((event.state, event.reception), (EventState::Created, Reception::Open));

    let mut evaluation = resume(&world, &plan);
    assert_eq!(answer(&mut world, &mut evaluation, "wb0e1s0", &name("second")), RunStatus::Completed);
    assert_eq!(world.outputs(&plan)["names"], json!(["first", "second", "third"]));
    assert_eq!(world.records["s/wb0e0s0"], done);
}

#[test]
fn reopening_what_did_not_fail_changes_nothing() {
    let (mut world, _, plan) = begin("billing_checkout");
    let before = world.records.clone();
    for id in ["w", "wb0", "wb0s0", "wb0s1", "wb7"] {
        let mut evaluation = resume(&world, &plan);
        evaluation.reopen(id.parse().expect("an id"), Actor::System, None);
        world.drive(&mut evaluation);
        assert_eq!(before, world.records, "{id}");
    }
}

#[test]
fn a_canceled_run_leaves_nothing_open() {
    let (mut world, _, plan) = begin("foreach_order_is_element_order_not_arrival");
    let mut evaluation = resume(&world, &plan);
    for key in world.records.keys().filter_map(|key| key.strip_prefix("s/")) {
        evaluation.cancel(key.parse().expect("an id"), Actor::System);
    }
    world.drive(&mut evaluation);
    evaluation.finish_canceled();
    world.commit(&mut evaluation);
    assert_eq!(world.run().item.status, RunStatus::Canceled);
    assert!(world.pending().is_empty());
    for key in world.records.keys().filter(|key| key.starts_with("s/")) {
        assert!(world.get::<Step>(key).expect("stored").item.is_terminal(), "{key}");
    }
    let mut evaluation = resume(&world, &plan);
    evaluation.arrive("wb0e0s0".parse().expect("an id"));
    assert_eq!(world.drive(&mut evaluation), RunStatus::Canceled);
}

/// The cost of one result.
#[derive(PartialEq, Eq, Debug)]
struct Cost {
    written: usize,
    read: usize,
    tasks_read: usize,
}

/// The cost, and the length of the block afterwards.
fn cost_of_one_result(text: &str, inputs: &Value, step: &str) -> (Cost, usize) {
    let plan = plan_of("ping.afl", text);
    let inputs = inputs.as_object().expect("a map").clone();
    let mut evaluation = start(&plan, "W", inputs, options(1_000)).expect("the inputs fit");
    let mut world = World::default();
    world.drive(&mut evaluation);
    let before = world.records.clone();
    let mut evaluation = resume(&world, &plan);
    let (read, tasks_read) = (world.read, world.tasks_read);
    answer(&mut world, &mut evaluation, step, &json!({"pong": 1}));
    let written = world.records.iter().filter(|(key, record)| before.get(*key) != Some(*record)).count();
    let cost = Cost { written, read: world.read - read, tasks_read: world.tasks_read - tasks_read };
    (cost, world.records["s/wb0"].0.len())
}

// T5: a result is taken at the same cost whatever the number of its siblings.
#[test]
fn t5_a_result_touches_its_own_and_not_its_siblings() {
    let of_elements = |elements: u32| {
        let text = "event facet Ping(n: Long) => (pong: Long)\n\
                    workflow W(xs: [Long]) => (o: [Long]) andThen foreach x in $.xs {\n\
                    p = Ping(n = x)\n  yield W(o = p.pong)\n}";
        cost_of_one_result(text, &json!({"xs": (0..elements).collect::<Vec<_>>()}), "wb0e1s0")
    };
    let of_statements = |statements: u32| {
        let mut text = "event facet Ping(n: Long) => (pong: Long)\n\
                        workflow W() => (o: Long) andThen {\n"
            .to_owned();
        for number in 0..statements {
            writeln!(text, "p{number} = Ping(n = {number})").expect("writing to a string does not fail");
        }
        text.push_str("after = Ping(n = p1.pong)\nyield W(o = after.pong)\n}");
        cost_of_one_result(&text, &json!({}), "wb0s1")
    };
    let ((few, small), (many, large)) = (of_elements(10), of_elements(3_000));
    assert_eq!(few, many);
    assert!(large < small + 20, "the block of a long `foreach` is as small as that of a short one");
    let ((few, _), (many, _)) = (of_statements(10), of_statements(300));
    assert_eq!(few, many);
    assert_eq!(many.tasks_read, 0, "a result is in the event; the task is the agents' business");
}

#[test]
fn a_foreach_creates_no_faster_than_its_elements_get_their_turn() {
    let text = "facet Value(n: Long)\n\
                workflow W(xs: [Long]) => (o: [Long]) andThen foreach x in $.xs {\n\
                  v = Value(n = x)\n  yield W(o = v.n)\n}";
    let plan = plan_of("wide.afl", text);
    let xs: Vec<u32> = (0..2_000).collect();
    let inputs = json!({"xs": xs}).as_object().expect("a map").clone();
    let mut evaluation = start(&plan, "W", inputs, options(50)).expect("the inputs fit");
    let mut world = World::default();
    assert_eq!(world.drive(&mut evaluation), RunStatus::Completed);
    assert!(world.longest_active < 100, "{} active steps", world.longest_active);
}

#[test]
fn an_iteration_stays_within_the_limits_of_one_commit() {
    let text = "event facet Ping(n: Long) => (pong: Long)\n\
                facet Row(n: Long) => (o: [Long]) andThen foreach x in [1, 2, 3, 4, 5, 6, 7, 8, 9] {\n\
                  p = Ping(n = x)\n  yield Row(o = p.pong)\n}\n\
                workflow W(xs: [Long]) => (o: [Long]) andThen foreach x in $.xs {\n\
                  r = Row(n = x)\n  yield W(o = r.o)\n}";
    let plan = plan_of("rows.afl", text);
    let xs: Vec<u32> = (0..200).collect();
    let inputs = json!({"xs": xs}).as_object().expect("a map").clone();
    let mut evaluation = start(&plan, "W", inputs, options(50)).expect("the inputs fit");
    let mut world = World::default();
    world.drive(&mut evaluation);
    assert!(world.largest_commit < 100, "a commit of {} records", world.largest_commit);
    let pending = world.pending();
    assert_eq!(pending.len(), 1_800);
    for id in &pending {
        world.settle(id, Ok(json!({"pong": 1}).as_object().expect("a map").clone()));
        evaluation.arrive(id.clone());
    }
    assert_eq!(world.drive(&mut evaluation), RunStatus::Completed);
    assert!(world.largest_commit < 100, "a commit of {} records", world.largest_commit);
}

// covers: RT-9-a, RT-9-b, EVT-0-d, EVT-4-c
#[test]
fn nothing_is_written_before_the_end_of_an_iteration_and_each_step_once() {
    let (world, _, _) = begin("adder_trace");
    assert_eq!(world.commits, 1, "a run without events is committed once");
    assert!(world.records.values().all(|(_, version)| *version == 1));
    assert_eq!(world.step("w").state, State::Complete);
    let iterations =
        world.traces.iter().filter(|trace| matches!(trace, Trace::IterationEnded { .. })).count();
    assert_eq!(iterations, 7);
}

// covers: EVT-1-f, RT-9-c, RT-3-a
#[test]
fn an_event_is_held_with_all_that_is_new_until_one_commit_stores_it_for_the_agents() {
    let (_, _, plan) = begin("billing_checkout");
    let inputs = json!({"total": 12.5}).as_object().expect("a map").clone();
    let mut evaluation = start(&plan, "billing.Checkout", inputs, options(1_000)).expect("the inputs fit");
    let mut world = World::default();
    assert_eq!(world.evaluate(&mut evaluation), Some(RunStatus::Paused));
    assert!(
        world.records.is_empty() && world.traces.is_empty(),
        "the iteration has ended, and nothing is out"
    );
    world.commit(&mut evaluation);
    assert_eq!((world.commits, world.pending().len()), (1, 1));
    let keys: Vec<&str> = world.records.keys().map(String::as_str).collect();
    assert_eq!(keys, ["e/wb0s0", "run", "s/w", "s/wb0", "s/wb0s0", "t/wb0s0"]);
    let published = world.traces.iter().filter(|trace| matches!(trace, Trace::Published { .. }));
    assert_eq!(published.count(), 1);

    // Only its driver gives an evaluator stored records.
    let mut evaluation = resume(&world, &plan);
    evaluation.arrive("wb0s0".parse().expect("an id"));
    let needed = evaluation.advance(Millis(2));
    assert!(matches!(&needed, Advance::Need(wants) if wants.steps.len() == 3), "{needed:?}");
    assert_eq!(evaluation.advance(Millis(2)), needed, "it asks until it is told");
}

// covers: EVT-4-b, RT-W7-c
#[test]
fn t4_two_evaluators_of_one_snapshot_create_the_same_steps_once() {
    let result = json!({"transaction_id": "t", "status": "s"});
    let (mut alone, mut evaluation, _) = begin("billing_checkout");
    answer(&mut alone, &mut evaluation, "wb0s0", &result);

    let (mut world, _, plan) = begin("billing_checkout");
    let step: StepId = "wb0s0".parse().expect("an id");
    world.settle(&step, Ok(result.as_object().expect("a map").clone()));
    let mut racers = [resume(&world, &plan), resume(&world, &plan)];
    for racer in &mut racers {
        // Two notices of it still are one step and one outcome.
        racer.arrive(step.clone());
        racer.arrive(step.clone());
        world.evaluate(racer);
    }
    let [mut winner, mut loser] = racers;
    assert_eq!(world.try_commit(&mut winner), <[&str; 0]>::default());
    let won = world.records.clone();
    let conflicts = world.try_commit(&mut loser);
    for key in ["run", "s/wb0s0", "s/wb0s1"] {
        assert!(conflicts.iter().any(|conflict| conflict == key), "{key} is not among {conflicts:?}");
    }
    assert_eq!(world.records, won, "who loses writes nothing");

    let mut again = resume(&world, &plan);
    again.arrive(step);
    assert_eq!(world.drive(&mut again), RunStatus::Completed);
    assert_eq!(world.records.len(), alone.records.len());
    assert_eq!(world.canonical(), alone.canonical());
    assert_eq!(world.records["s/wb0s1"].1, 1, "it was made once and not written again");
    let made = world.step("wb0s1");
    assert_eq!((made.object_type, &*made.facet_name), (ObjectType::YieldAssignment, "billing.Checkout"));
    assert_eq!(&*made.statement_id, "billing.Checkout/0/yield.Checkout");
}

#[test]
fn g13_a_record_that_no_evaluation_of_this_program_wrote_is_damage_and_never_null() {
    let plan = plan_of(
        "w.afl",
        "facet V(v: Long)\nworkflow W() => (o: Long) andThen { a = V(v = 1) yield W(o = a.v) }",
    );
    let mut evaluation = start(&plan, "W", Map::new(), options(1_000)).expect("it starts");
    let blob = |text: &str| BlobHash::of(text);
    assert!(matches!(evaluation.supply_blob(blob("{"), "{"), Err(Damage::NotJson(_))));
    assert!(matches!(evaluation.supply_blob(blob(""), ""), Err(Damage::NotJson(_))));
    assert_eq!(evaluation.supply_blob(blob("null"), "null"), Ok(()));
    let mut world = World::default();
    world.drive(&mut evaluation);
    let step = world.get::<Step>("s/wb0s0");
    let mut evaluation = Evaluation::resume(plan, world.suspended(), Millis(3), options(1_000));
    assert_eq!(
        evaluation.supply_step("wb0s7".parse().expect("an id"), step.clone()),
        Err(Damage::NotInProgram)
    );
    assert_eq!(evaluation.supply_step("wb0s0".parse().expect("an id"), step), Ok(()));
    assert_eq!(evaluation.supply_step("wb0s1".parse().expect("an id"), None), Ok(()));
}

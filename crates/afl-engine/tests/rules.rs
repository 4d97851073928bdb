//! The rules of documents 002 and 003 about states, phases and blocks, checked on all that every case does.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod world;

use std::collections::BTreeSet;

use afl_engine::evaluation::Advance;
use afl_engine::event::{Event, EventState};
use afl_engine::id::StepId;
use afl_engine::run::Active;
use afl_engine::step::Transmission;
use afl_engine::task::{Task, TaskState};
use afl_engine::time::Millis;
use afl_engine::trace::Trace;
use afl_engine::{ObjectType, State, Value};
use serde_json::json;
use world::life::{created_in, live, moves, one, when};
use world::{Case, World, cases, options, plan_of, start};

// covers: RT-W2-a, RT-W4-a, RT-W4-b, RT-W4-c, RT-11-d, RT-4-c, RT-4-d, RT-11-c
#[test]
fn every_step_of_every_case_goes_the_way_of_its_object_type_and_no_other() {
    let mut kinds = BTreeSet::new();
    for case in cases() {
        let Some((world, _)) = live(&case) else { continue };
        for (step, moves) in moves(&world) {
            let stored = world.step(&step);
            let path = stored.object_type.path();
            kinds.insert(stored.object_type);
            let mut at = State::Created;
            for (_, from, to, _) in moves {
                assert_eq!(from, at, "{}: {step}", case.name);
                let is_next = from.next(path) == Some(to);
                // A `catch`, which the documents do not have, runs as a block of the step that failed.
                let is_caught = to == State::StatementBlocksContinue && stored.caught.is_some();
                assert!(
                    is_next || is_caught || to == State::Error,
                    "{}: {step} went from {from} to {to}",
                    case.name
                );
                at = to;
            }
            assert_eq!(stored.state, at, "{}: {step} is stored where it stopped", case.name);
        }
    }
    let expected = [
        ObjectType::VariableAssignment,
        ObjectType::YieldAssignment,
        ObjectType::SchemaInstantiation,
        ObjectType::Workflow,
        ObjectType::AndThen,
        ObjectType::AndMap,
        ObjectType::AndMatch,
        ObjectType::Facet,
    ];
    assert!(expected.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}

// T7: only the blocks of mixins precede the event.
// covers: RT-8-d, RT-W9-a, RT-W9-b, RT-W10-b, XR-7
#[test]
fn mixins_end_before_the_event_is_sent_and_blocks_begin_after_it_was_answered() {
    let world = one("mixin_with_a_block_runs_before_the_event");
    let sent = when(&world, "wb0s0", State::EventTransmit);
    assert!(when(&world, "wb0s0m0", State::Complete) < sent);
    assert!(when(&world, "wb0s0m0b0", State::Complete) < sent);
    assert_eq!(world.step("wb0s0m0").object_type, ObjectType::Facet);
    assert_eq!(world.value(&world.step("w").attributes.returns["twice"].held), json!(42));
    let world = one("unaliased_mixin_gives_its_parameters_and_results");
    assert_eq!(world.value(&world.step("w").attributes.returns["seal"].held), json!("mixed@7"));

    let world = one("event_facet_with_followup_block");
    let (parent, blocks): (Vec<_>, Vec<_>) = moves(&world)
        .into_keys()
        .filter(|step| world.step(step).object_type == ObjectType::AndThen)
        .map(|block| (block.rsplit_once('b').expect("a block's id").0.to_owned(), block))
        .unzip();
    let of_events = parent.iter().zip(&blocks).filter(|(parent, _)| {
        world
            .traces
            .iter()
            .any(|trace| matches!(trace, Trace::Published { step, .. } if step.to_string() == **parent))
    });
    let mut checked = 0;
    for (parent, block) in of_events {
        assert!(moves(&world)[block][0].0 > when(&world, parent, State::StatementBlocksBegin));
        checked += 1;
    }
    assert!(checked > 0, "no event facet of the case has a block");
}

// covers: EVT-4-a
#[test]
fn within_an_iteration_a_step_is_worked_on_in_one_go() {
    for case in cases() {
        let Some((world, _)) = live(&case) else { continue };
        let mut seen: BTreeSet<&StepId> = BTreeSet::new();
        let mut last = None;
        for trace in &world.traces {
            match trace {
                Trace::IterationBegan { .. } => (seen, last) = (BTreeSet::new(), None),
                Trace::Transition { step, .. } if last != Some(step) => {
                    assert!(seen.insert(step), "{}: {step} is taken up again", case.name);
                    last = Some(step);
                }
                _ => {}
            }
        }
    }
}

// covers: RT-5-b
#[test]
fn active_steps_are_stored_have_not_ended_and_wait_for_no_event() {
    let mut looked_at = 0;
    for case in cases() {
        if case.data["expect"]["status"] != "completed" {
            continue;
        }
        let plan = plan_of(&case.name, &case.text);
        let inputs = case.data["inputs"].as_object().cloned().unwrap_or_default();
        let workflow = plan.workflows().last().expect("a workflow").to_owned();
        // A commit for each iteration, so that each is seen.
        let Ok(mut evaluation) = start(&plan, &workflow, inputs, options(1)) else { continue };
        let mut world = World::default();
        while world.drive_to_commit(&mut evaluation).is_none() {
            for step in world.get::<Active>("active").map_or_else(Vec::new, |active| active.item.0) {
                let stored = world.step(step.as_str());
                assert!(!stored.is_terminal(), "{}: {step}", case.name);
                assert_ne!(stored.event, Transmission::Sent, "{}: {step}", case.name);
                looked_at += 1;
            }
        }
        let resting = world.get::<Active>("active");
        assert!(resting.is_none(), "{}: nothing more can be done, so nothing is active", case.name);
    }
    assert!(looked_at > 100, "only {looked_at} active steps were seen");
}

// covers: RT-7-d, RT-7-e, RT-5-c, RT-W8-b, RT-W7-a
#[test]
fn a_step_is_made_when_all_that_it_reads_is_complete_and_not_before() {
    let text = "facet V(v: Long)
        workflow W() => (o: Long) andThen {
            d = V(v = b.v + c.v)
            b = V(v = a.v + 1)
            c = V(v = a.v + 2)
            a = V(v = 1)
            yield W(o = d.v)
        }";
    let case = Case {
        name: "diamond".to_owned(),
        text: text.to_owned(),
        data: json!({"expect": {"status": "completed"}}),
    };
    let (world, plan) = live(&case).expect("it runs");
    assert_eq!(world.outputs(&plan)["o"], json!(5));
    let [d, b, c, a] = ["wb0s0", "wb0s1", "wb0s2", "wb0s3"];
    let begun = |step: &str| moves(&world)[step][0].0;
    for (reader, read) in [(d, b), (d, c), (b, a), (c, a)] {
        assert!(
            begun(reader) > when(&world, read, State::Complete),
            "{reader} began before {read} was complete"
        );
        assert!(created_in(&world, reader) > created_in(&world, read));
    }
    assert_eq!(created_in(&world, b), created_in(&world, c), "steps that wait for no other run together");
    // The block begins with the ready steps, and with those alone.
    let ready = created_in(&world, "wb0");
    let at_once: Vec<_> = [d, b, c, a].into_iter().filter(|step| created_in(&world, step) == ready).collect();
    assert_eq!(at_once, [a]);
    assert!(begun(a) > when(&world, "wb0", State::BlockExecutionBegin));
    // A step whose facet has no body passes where blocks would be.
    assert!(when(&world, a, State::StatementBlocksBegin) < when(&world, a, State::StatementBlocksEnd));
    assert!(moves(&world).keys().all(|step| !step.starts_with(&format!("{a}b"))));
}

// covers: RT-8.2-c, RT-8.2-d
#[test]
fn a_block_at_the_call_takes_the_place_of_the_facets_own() {
    let world = one("inline_block_replaces_facet_block");
    let price: StepId = "wb0s0".parse().expect("an id");
    let ids = moves(&world).into_keys().map(|id| id.parse::<StepId>().expect("an id"));
    let within: Vec<StepId> = ids.filter(|id| id.parent().as_ref() == Some(&price)).collect();
    let [block] = &within[..] else { panic!("one block, not {within:?}") };
    let stored = world.step(block.as_str());
    assert_eq!(stored.object_type, ObjectType::AndThen);
    assert_eq!(&*stored.statement_id, "Order/0/p/0", "that of the statement, and not `Price/0`");
    assert_eq!(world.value(&world.step("wb0s0").attributes.returns["total"].held), json!(42));
}

// covers: RT-W10-a, RT-22.2.1-b
#[test]
fn captured_values_and_fields_of_a_schema_are_typed_returns() {
    let world = one("schema_fields_have_defaults");
    let returns = |step: &str| {
        let returns = world.step(step).attributes.returns;
        let shown = |(name, attribute): (String, afl_engine::attribute::Attribute)| {
            format!("{name}: {} = {}", attribute.type_hint, world.value(&attribute.held))
        };
        returns.into_iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(returns("wb0s0"), ["name: String = \"a\"", "qty: Long = 1"]);
    let captured = returns("w");
    assert!(captured.contains(&"q: Long = 1".to_owned()), "{captured:?}");
    let skipped = [State::EventTransmit, State::StatementBlocksBegin, State::FacetScriptsBegin];
    assert!(moves(&world)["wb0s0"].iter().all(|(_, _, to, _)| !skipped.contains(to)));
}

// covers: EVT-5-g
#[test]
fn an_argument_without_a_value_fails_its_step_where_arguments_are_computed() {
    let world = one("division_by_zero");
    let failed: Vec<_> = moves(&world)
        .into_iter()
        .filter_map(|(step, moves)| Some((step, moves.last().filter(|(_, _, to, _)| *to == State::Error)?.1)))
        .collect();
    assert!(failed.iter().any(|(_, from)| *from == State::InitBegin), "{failed:?}");
    // The root has its inputs already and goes on.
    assert!(when(&world, "w", State::InitEnd) < when(&world, "w", State::Error));
}

// covers: EVT-2-b, EVT-2-c, SDK-3.2-a, SDK-3.1-d, EVT-9-d
#[test]
fn events_and_tasks_have_the_documents_states_and_a_list_does_not_change_an_event() {
    let names: Vec<&str> = EventState::ALL.iter().map(|state| state.name()).collect();
    let documented =
        ["event.Created", "event.Dispatched", "event.Processing", "event.Completed", "event.Error"];
    assert_eq!(names, documented);
    for is_terminal in [EventState::is_terminal, |state: EventState| state.next().is_none()] {
        let terminal = EventState::ALL.iter().filter(|state| is_terminal(**state)).map(|state| state.name());
        assert_eq!(terminal.collect::<Vec<_>>(), ["event.Completed", "event.Error"]);
    }
    // 000 has six; the seventh is that of 001, which counts as running.
    let tasks: Vec<&str> = TaskState::ALL.iter().map(|state| state.name()).collect();
    let sdk = ["pending", "running", "completed", "failed", "ignored", "canceled"];
    assert!(sdk.iter().all(|name| tasks.contains(name)));
    assert_eq!(
        tasks.into_iter().filter(|name| !sdk.contains(name)).collect::<Vec<_>>(),
        ["awaiting_response"]
    );

    let event_of = |policy: &str| {
        let text = format!(
            "event facet Ping(n: Long) => (pong: Long)\nworkflow W() => (o: Long) andThen {{\n  p = Ping(n = 1){policy}\n  yield W(o = p.pong)\n}}"
        );
        let data = json!({"expect": {"status": "completed"}});
        let (world, _) = live(&Case { name: "ping".to_owned(), text, data }).expect("it runs");
        let task = world.get::<Task>("t/wb0s0").expect("stored").item;
        assert_eq!(task.created, world.step("wb0s0").created);
        let event: Value =
            serde_json::to_value(world.get::<Event>("e/wb0s0").expect("stored").item).expect("JSON");
        (event, task.task_list_name.to_string())
    };
    let (plain, list) = event_of("");
    let (routed, other) = event_of(" with TaskList(name = \"gpu\") with Priority(level = 9)");
    assert_eq!((list.as_str(), other.as_str()), ("default", "gpu"));
    assert_eq!(plain, routed);
}

#[test]
fn required_capabilities_are_kept_in_order_and_must_have_a_name() {
    let task_of = |policy: &str| {
        let text = format!("event facet Ping()\nworkflow W() andThen {{ p = Ping() with {policy} }}");
        let plan = plan_of("needs.afl", &text);
        let mut evaluation =
            start(&plan, "W", afl_engine::value::Map::new(), options(1_000)).expect("it starts");
        evaluation.advance(Millis(2));
        let changes = evaluation.take_changes().expect("a new run is a change");
        changes.tasks.first().map(|put| put.item.policy.needs.clone())
    };
    let needs = task_of(r#"Needs(capabilities = ["gpu", "cuda:12", "gpu"])"#);
    assert_eq!(needs.expect("the task goes out"), ["cuda:12", "gpu"]);
    assert_eq!(task_of("Needs(capabilities = [])").expect("the task goes out"), <[&str; 0]>::default());
    assert_eq!(task_of(r#"Needs(capabilities = ["a+b"])"#), None, "the step fails instead");
}

// covers: EVT-4-d, RT-8.3-d, RT-11.1-a, SDK-2.1-a, SDK-2.1-b
#[test]
fn one_change_set_holds_all_that_is_new_and_names_are_found_in_the_whole_program() {
    let text = "namespace a { event facet Ping(n: Long) => (pong: Long) }
        namespace b { facet Twice(n: Long) => (m: Long) andThen { p = a.Ping(n = $.n) yield Twice(m = p.pong * 2) } }
        namespace c { use b
            workflow W() => (o: Long) andThen { t = Twice(n = 4) yield W(o = t.m) } }";
    let plan = plan_of("three.afl", text);
    for (facet, parameters) in [("a.Ping", 1), ("b.Twice", 1), ("c.W", 0)] {
        assert_eq!(plan.parameters(facet).map(<[_]>::len), Some(parameters), "{facet}");
    }
    let mut evaluation =
        start(&plan, "c.W", afl_engine::value::Map::new(), options(1_000)).expect("it starts");
    let advance = evaluation.advance(Millis(2));
    assert!(!matches!(advance, Advance::Need(_)), "a new run needs nothing that is stored: {advance:?}");
    let changes = evaluation.take_changes().expect("a new run is a change");
    assert!(changes.steps.iter().all(|put| put.version.is_none()));
    let ids: BTreeSet<_> = changes.steps.iter().map(|put| put.item.id.clone()).collect();
    assert_eq!(ids.len(), changes.steps.len(), "each step once");
    let events: Vec<_> = changes.events.iter().map(|put| put.item.step_id.to_string()).collect();
    let tasks: Vec<_> = changes.tasks.iter().map(|put| put.item.step_id.to_string()).collect();
    assert_eq!((events, tasks), (vec!["wb0s0b0s0".to_owned()], vec!["wb0s0b0s0".to_owned()]));
    let sent = changes.steps.iter().filter(|put| put.item.state == State::EventTransmit);
    let sent: Vec<_> = sent.map(|put| (put.item.id.to_string(), put.item.event)).collect();
    assert_eq!(sent, [("wb0s0b0s0".to_owned(), Transmission::Sent)], "the step that the task is of");
}

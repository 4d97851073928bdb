//! The states, paths and object types against the tables of the documents.

use std::collections::{BTreeMap, BTreeSet};

use afl_engine::{ObjectType, Path, State};

const TABLES: &str = include_str!("fixtures/transitions.txt");

#[test]
fn the_states_are_those_of_the_documents() {
    // covers: RT-6-a
    let documented: BTreeSet<&str> = pairs("states").map(|(_, name)| name).collect();
    let ours: BTreeSet<&str> = State::ALL.iter().map(|state| state.name()).collect();
    assert_eq!(ours, documented);
    assert_eq!(State::ALL.len(), 24);
}

#[test]
fn every_edge_is_in_the_documents_and_the_other_way_round() {
    // covers: RT-22.1-a, RT-22.2-a, RT-22.2.1-a, RT-22.3-a
    let constants: BTreeMap<&str, State> =
        pairs("states").map(|(constant, name)| (constant, name.parse().expect("a state"))).collect();
    let tables = ["STEP_TRANSITIONS", "YIELD_TRANSITIONS", "SCHEMA_TRANSITIONS", "BLOCK_TRANSITIONS"];
    let mut edges = 0;
    for (path, table) in Path::ALL.into_iter().zip(tables) {
        let documented: BTreeMap<State, State> =
            pairs(table).map(|(from, to)| (constants[from], constants[to])).collect();
        let ours: BTreeMap<State, State> =
            State::ALL.iter().filter_map(|state| Some((*state, state.next(path)?))).collect();
        assert_eq!(ours, documented, "{table}");
        edges += documented.len();
    }
    assert_eq!(edges, 32);
}

#[test]
fn a_path_visits_no_state_twice_and_ends_complete() {
    for path in Path::ALL {
        let states = path.states();
        assert_eq!(states.first(), Some(&State::Created));
        assert_eq!(states.last(), Some(&State::Complete));
        let distinct: BTreeSet<&State> = states.iter().collect();
        assert_eq!(distinct.len(), states.len());
    }
}

#[test]
fn the_object_types_are_those_of_the_documents() {
    // covers: RT-W12-a
    let constants: BTreeMap<&str, ObjectType> =
        pairs("object types").map(|(constant, name)| (constant, name.parse().expect("a type"))).collect();
    let documented: BTreeSet<ObjectType> = constants.values().copied().collect();
    assert_eq!(ObjectType::ALL.iter().copied().collect::<BTreeSet<_>>(), documented);

    let of = |section| lines(section).map(|constant| constants[constant]).collect::<BTreeSet<_>>();
    let ours = |is: fn(ObjectType) -> bool| {
        ObjectType::ALL.iter().copied().filter(|object| is(*object)).collect::<BTreeSet<_>>()
    };
    assert_eq!(ours(ObjectType::is_block), of("is_block"));
    assert_eq!(ours(ObjectType::is_statement), of("is_statement"));
}

#[test]
fn a_state_goes_over_the_wire_by_its_name() {
    for state in State::ALL {
        let json = serde_json::to_string(state).expect("a name");
        assert_eq!(json, format!("\"{state}\""));
        assert_eq!(serde_json::from_str::<State>(&json).expect("a state"), *state);
    }
    let unknown = serde_json::from_str::<State>("\"state.statement.Lost\"").expect_err("no state");
    assert!(unknown.to_string().starts_with("`state.statement.Lost` is no state of a step"), "{unknown}");
}

/// The lines of two words under `[section]`.
fn pairs(section: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    lines(section).map(|line| {
        let (first, second) = line.split_once(' ').expect("two words");
        (first, second.trim_start())
    })
}

fn lines(section: &str) -> impl Iterator<Item = &'static str> {
    let start = TABLES.find(&format!("[{section}]\n")).expect("a section");
    let lines = TABLES[start..].lines().skip(1);
    lines.take_while(|line| !line.is_empty())
}

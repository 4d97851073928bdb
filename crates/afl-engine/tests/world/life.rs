//! The life of a case from its start to its end, and its trace.

use std::collections::BTreeMap;
use std::sync::Arc;

use afl_engine::State;
use afl_engine::plan::Plan;
use afl_engine::run::RunStatus;
use afl_engine::trace::Trace;

use super::{Case, World, answer, cases, options, plan_of, start};

/// A case from its start to its end, or as far as its handlers take it.
pub(crate) fn live(case: &Case) -> Option<(World, Arc<Plan>)> {
    let status = case.data["expect"]["status"].as_str()?;
    if status == "rejected" {
        return None;
    }
    let plan = plan_of(&case.name, &case.text);
    let named = case.data["workflow"].as_str().map(str::to_owned);
    let workflow = named.or_else(|| plan.workflows().last().map(str::to_owned))?;
    let full = plan.workflows().find(|name| name.ends_with(&*workflow))?.to_owned();
    let inputs = case.data["inputs"].as_object().cloned().unwrap_or_default();
    let mut evaluation = start(&plan, &full, inputs, options(1_000)).ok()?;
    let mut world = World::default();
    let mut attempts: BTreeMap<String, usize> = BTreeMap::new();
    while world.drive(&mut evaluation) == RunStatus::Paused {
        let mut answered = 0;
        for id in world.pending() {
            let name = world.task(&id).name.to_string();
            let handlers = &case.data["handlers"];
            let short = name.rsplit('.').next().unwrap_or(&name);
            let handler = handlers.get(&name).or_else(|| handlers.get(short));
            let Some(handler) = handler else { continue };
            let attempt = attempts.entry(id.to_string()).or_default();
            let outcome = answer(handler, &world.payload(&id), *attempt);
            *attempt += 1;
            world.settle(&id, outcome);
            evaluation.arrive(id);
            answered += 1;
        }
        if answered == 0 {
            break;
        }
    }
    Some((world, plan))
}

pub(crate) type Moves = Vec<(usize, State, State, u64)>;

/// By step: when, from where, to where, in which iteration.
pub(crate) fn moves(world: &World) -> BTreeMap<String, Moves> {
    let mut moves: BTreeMap<String, Moves> = BTreeMap::new();
    for (at, trace) in world.traces.iter().enumerate() {
        if let Trace::Transition { step, from, to, iteration, .. } = trace {
            moves.entry(step.to_string()).or_default().push((at, *from, *to, *iteration));
        }
    }
    moves
}

pub(crate) fn one(name: &str) -> World {
    let case = cases().into_iter().find(|case| case.name == name).expect("the case is there");
    live(&case).expect("the case runs").0
}

/// When a step came into a state.
pub(crate) fn when(world: &World, step: &str, state: State) -> usize {
    let moves = moves(world);
    let into = |(_, _, to, _): &&(usize, State, State, u64)| *to == state;
    moves[step].iter().find(into).unwrap_or_else(|| panic!("{step} never was in {state}")).0
}

pub(crate) fn created_in(world: &World, step: &str) -> u64 {
    moves(world)[step][0].3
}

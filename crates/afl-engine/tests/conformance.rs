//! The cases of the conformance suite on the bare evaluator, in every way a driver may take them.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use afl_engine::Value;
use afl_engine::evaluation::{Evaluation, SCRIPT_EVENT};
use afl_engine::id::StepId;
use afl_engine::plan::Plan;
use afl_engine::run::RunStatus;
use afl_engine::time::Millis;
use world::{Case, World, answer, cases, options, plan_of, start};

/// It gives no inputs to a workflow that needs some: that the program compiles is all that is said of it.
const ONLY_COMPILED: &str = "comparison_is_legal";

/// How many cases run. One that is added is counted here, so that none is left out by accident.
const RUN: usize = 121;

/// How a driver takes a run to its end. None of it may show in the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// One evaluator for the whole run.
    Hot,
    /// A new evaluator for each arrival of results.
    Cold,
    /// A commit after each iteration, and a new evaluator after each commit.
    Crashing,
    /// One result at a time, the last task first.
    Backwards,
}

// covers: RT-1-a, RT-1-b, RT-1-c, RT-1-d, RT-1-e, RT-10.2-a, RT-10.2-b, RT-10.2-c, RT-15-a, RT-15-b, RT-15-c, RT-15-d
// covers: EVT-8-a, EVT-8-b, RT-14-b, RT-19-a
#[test]
fn every_case_comes_out_as_expected_whatever_the_driver_does() {
    let mut ran = 0;
    for case in cases() {
        if !case.data["expect"]["status"].is_string() {
            continue;
        }
        let hot = check(&case, Way::Hot);
        for way in [Way::Cold, Way::Crashing, Way::Backwards] {
            assert_eq!(hot, check(&case, way), "{}: {way:?}", case.name);
        }
        ran += 1;
    }
    assert_eq!(ran, RUN);
}

fn check(case: &Case, way: Way) -> String {
    let name = &case.name;
    let expect = &case.data["expect"];
    let plan = plan_of(name, &case.text);
    let workflow = workflow_of(case, &plan);
    let inputs = case.data["inputs"].as_object().cloned().unwrap_or_default();
    let writes = if way == Way::Crashing { 1 } else { 1_000 };
    let mut taken = Taken {
        world: World::default(),
        evaluation: match start(&plan, &workflow, inputs, options(writes)) {
            Ok(evaluation) => evaluation,
            Err(refused) => {
                if name != ONLY_COMPILED {
                    assert_eq!(expect["status"], "rejected", "{name}: {refused}");
                    mentions(name, expect, &refused.to_string());
                }
                return String::new();
            }
        },
        plan,
        way,
    };
    let status = taken.run_to_end(case);
    let Taken { world, plan, .. } = taken;
    let run = world.run().item;
    let error = run.error.as_ref().map(ToString::to_string).unwrap_or_default();
    let is_script = world.pending().iter().any(|id| &*world.task(id).name == SCRIPT_EVENT);
    let expected =
        if is_script { RunStatus::Paused.name() } else { expect["status"].as_str().expect("a status") };
    assert_eq!(expected, status.name(), "{name} {way:?}: {error}");
    mentions(name, expect, &error);
    if expect["outputs"].is_object() && !is_script {
        let outputs = Value::Object(world.outputs(&plan));
        assert!(afl_engine::value::equal(&outputs, &expect["outputs"]), "{name} {way:?}: {outputs}");
    }
    if way != Way::Backwards && expect["iterations_per_run"].is_array() {
        assert_eq!(expect["iterations_per_run"], serde_json::json!(run.iterations_per_run), "{name} {way:?}");
    }
    world.canonical()
}

struct Taken {
    world: World,
    evaluation: Evaluation,
    plan: Arc<Plan>,
    way: Way,
}

impl Taken {
    fn run_to_end(&mut self, case: &Case) -> RunStatus {
        let mut attempts: BTreeMap<StepId, usize> = BTreeMap::new();
        loop {
            let status = self.run_to_fixed_point();
            if status != RunStatus::Paused {
                return status;
            }
            let mut answered = self.answer_some(case, &mut attempts);
            if answered.is_empty() {
                answered = self.fire_first();
            }
            if answered.is_empty() {
                return status;
            }
            if self.way != Way::Hot {
                self.restart();
            }
            for id in answered {
                self.evaluation.arrive(id);
            }
        }
    }

    fn run_to_fixed_point(&mut self) -> RunStatus {
        loop {
            if let Some(status) = self.world.drive_to_commit(&mut self.evaluation) {
                return status;
            }
            if self.way == Way::Crashing {
                self.restart();
            }
        }
    }

    fn restart(&mut self) {
        let options = options(if self.way == Way::Crashing { 1 } else { 1_000 });
        self.evaluation = Evaluation::resume(self.plan.clone(), self.world.suspended(), Millis(3), options);
    }

    fn answer_some(&mut self, case: &Case, attempts: &mut BTreeMap<StepId, usize>) -> Vec<StepId> {
        let mut pending = self.world.pending();
        pending.retain(|id| case.data["handlers"].get(&*self.world.task(id).name).is_some());
        if self.way == Way::Backwards {
            pending = pending.pop().into_iter().collect();
        }
        for id in &pending {
            let handler = &case.data["handlers"][&*self.world.task(id).name];
            let attempt = attempts.entry(id.clone()).or_default();
            self.world.settle(id, answer(handler, &self.world.payload(id), *attempt));
            *attempt += 1;
        }
        pending
    }

    /// When nothing else happens, the next timer does.
    fn fire_first(&mut self) -> Vec<StepId> {
        let pending = self.world.pending();
        let first = pending.into_iter().filter_map(|id| Some((self.world.task(&id).fires()?, id))).min();
        if let Some((_, id)) = &first {
            self.world.fire(id);
        }
        first.map(|(_, id)| id).into_iter().collect()
    }
}

fn workflow_of(case: &Case, plan: &Plan) -> String {
    let wanted = case.data["workflow"].as_str().unwrap_or_default();
    let mut workflows = plan.workflows();
    let fits = |name: &&str| *name == wanted || name.rsplit('.').next() == Some(wanted) || wanted.is_empty();
    workflows.find(fits).unwrap_or_else(|| panic!("{} has no workflow {wanted}", case.name)).to_owned()
}

fn mentions(name: &str, expect: &Value, error: &str) {
    for text in expect["error_mentions"].as_array().into_iter().flatten() {
        let text = text.as_str().expect("a text");
        assert!(error.contains(text), "{name}: `{error}` does not mention `{text}`");
    }
}

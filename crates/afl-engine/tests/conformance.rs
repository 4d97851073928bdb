//! The cases of the conformance suite on the bare evaluator.

mod world;

use std::collections::BTreeMap;

use afl_engine::Value;
use afl_engine::evaluation::{Evaluation, SCRIPT_EVENT};
use afl_engine::run::RunStatus;
use afl_engine::task::Task;
use afl_engine::time::Millis;
use world::{Case, World, answer, cases, options, plan_of, start};

#[test]
fn every_case_comes_out_as_expected() {
    let mut ran = 0;
    for case in cases() {
        if case.data["expect"]["status"].is_string() {
            check(&case);
            ran += 1;
        }
    }
    assert!(ran > 70, "only {ran} cases ran");
}

fn check(case: &Case) {
    let name = &case.name;
    let expect = &case.data["expect"];
    let plan = plan_of(name, &case.text);
    let workflow = workflow_of(case, &plan);
    let mut world = World::default();
    let inputs = case.data["inputs"].as_object().cloned().unwrap_or_default();
    let mut evaluation = match start(&plan, &workflow, inputs) {
        Ok(evaluation) => evaluation,
        Err(refused) => {
            // Some cases give no workflow and no inputs: they are about what compiles.
            if !case.data["workflow"].is_null() {
                assert_eq!(expect["status"], "rejected", "{name}: {refused}");
                mentions(name, expect, &refused.to_string());
            }
            return;
        }
    };
    let mut status = world.drive(&mut evaluation);
    let mut attempts: BTreeMap<String, usize> = BTreeMap::new();
    let mut is_script = false;
    while status == RunStatus::Paused {
        let pending = world.pending();
        let mut answered = Vec::new();
        for id in pending {
            let task = world.get::<Task>(&format!("t/{id}")).expect("pending").item;
            is_script |= &*task.name == SCRIPT_EVENT;
            let Some(handler) = case.data["handlers"].get(&*task.name) else { continue };
            let attempt = attempts.entry(id.to_string()).or_default();
            world.settle(&id, answer(handler, &world.payload(&id), *attempt));
            *attempt += 1;
            answered.push(id);
        }
        if answered.is_empty() {
            break;
        }
        // A new evaluator each time: everything must be in the records.
        let mut evaluation = Evaluation::resume(plan.clone(), world.run(), Millis(3), options());
        for id in answered {
            evaluation.arrive(id);
        }
        status = world.drive(&mut evaluation);
    }
    if is_script {
        assert_eq!(status, RunStatus::Paused, "{name}: scripts wait for their host");
        return;
    }
    let run = world.run().item;
    let error = run.error.as_ref().map(ToString::to_string).unwrap_or_default();
    assert_eq!(expect["status"], status.name(), "{name}: {error}");
    mentions(name, expect, &error);
    if expect["outputs"].is_object() {
        let outputs = Value::Object(world.outputs(&plan));
        assert!(afl_engine::value::equal(&outputs, &expect["outputs"]), "{name}: {outputs}");
    }
    if let Some(iterations) = expect["iterations_per_run"].as_array() {
        assert_eq!(&serde_json::json!(run.iterations_per_run), &serde_json::json!(iterations), "{name}");
    }
}

fn workflow_of(case: &Case, plan: &afl_engine::plan::Plan) -> String {
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

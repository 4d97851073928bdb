//! A world for the evaluator: records in maps, agents that answer by a table.

#![expect(clippy::disallowed_methods, reason = "tests read fixtures")]

pub(crate) mod life;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use afl_engine::Value;
use afl_engine::attribute::ValueRef;
use afl_engine::changes::{Changes, Put};
use afl_engine::evaluation::{
    Advance, Budget, Evaluation, InputError, Options, Start, StoredRecord, SuspendedRun, Wants,
};
use afl_engine::event::{Event, EventError, EventState, Payload, Reception};
use afl_engine::history::Actor;
use afl_engine::id::{RunId, StepId};
use afl_engine::plan::Plan;
use afl_engine::run::{Run, RunStatus};
use afl_engine::step::Step;
use afl_engine::task::{Authority, FailureSource, Lease, Move, Requeue, Task, TaskState};
use afl_engine::time::Millis;
use afl_engine::timer::fired;
use afl_engine::trace::{Trace, Tracing};
use afl_engine::version::{Epoch, Version};
use afl_lang::source::Sources;
use afl_lang::{Validation, compile};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Map;

/// Records as their JSON, with versions, as a store keeps them.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) records: BTreeMap<String, (String, u64)>,
    pub(crate) blobs: BTreeMap<String, String>,
    pub(crate) commits: usize,
    /// How many records were read, and how many of them were tasks.
    pub(crate) read: usize,
    pub(crate) tasks_read: usize,
    pub(crate) largest_commit: usize,
    pub(crate) longest_active: usize,
    pub(crate) traces: Vec<Trace>,
}

pub(crate) fn plan_of(name: &str, text: &str) -> Arc<Plan> {
    let compiled = compile(&Sources::one(name, text), Validation::Require);
    let program = compiled.program.unwrap_or_else(|| panic!("{name}: {:?}", compiled.diagnostics));
    Arc::new(Plan::new(&program))
}

pub(crate) fn options(writes: usize) -> Options {
    Options { budget: Budget { writes, bytes: 8 << 20 }, tracing: Tracing::Full }
}

pub(crate) fn start(
    plan: &Arc<Plan>,
    workflow: &str,
    inputs: Map<String, Value>,
    options: Options,
) -> Result<Evaluation, InputError> {
    let start = Start {
        id: RunId("run".into()),
        workflow: workflow.into(),
        inputs,
        labels: BTreeMap::new(),
        idempotency_key: None,
        epoch: Epoch::default(),
    };
    Evaluation::start(plan.clone(), start, Millis(1), options)
}

impl World {
    pub(crate) fn get<T: DeserializeOwned>(&self, key: &str) -> Option<StoredRecord<T>> {
        let (text, version) = self.records.get(key)?;
        Some(StoredRecord {
            item: serde_json::from_str(text).expect("records are JSON"),
            version: at(*version),
        })
    }

    pub(crate) fn put<T: Serialize>(&mut self, key: String, item: &T, version: Option<Version>) {
        let version = number(version);
        let stored = self.records.get(&key).map(|(_, version)| *version);
        assert_eq!(stored, version, "{key} is written over");
        let text = serde_json::to_string(item).expect("records are JSON");
        self.records.insert(key, (text, version.unwrap_or(0) + 1));
    }

    /// Drives to the fixed point.
    pub(crate) fn drive(&mut self, evaluation: &mut Evaluation) -> RunStatus {
        loop {
            if let Some(status) = self.drive_to_commit(evaluation) {
                return status;
            }
        }
    }

    /// Drives to the next commit; gives the status at the fixed point.
    pub(crate) fn drive_to_commit(&mut self, evaluation: &mut Evaluation) -> Option<RunStatus> {
        let status = self.evaluate(evaluation);
        self.commit(evaluation);
        status
    }

    /// Supplies the wanted records until there is something to commit, and commits nothing.
    pub(crate) fn evaluate(&mut self, evaluation: &mut Evaluation) -> Option<RunStatus> {
        loop {
            match evaluation.advance(Millis(2)) {
                Advance::Need(wants) => self.supply(evaluation, wants),
                Advance::Commit => return None,
                Advance::Rest => return Some(evaluation.run().status),
            }
        }
    }

    fn supply(&mut self, evaluation: &mut Evaluation, wants: Wants) {
        let Wants { steps, events, tasks, blobs } = &wants;
        self.read += steps.len() + events.len() + tasks.len() + blobs.len();
        self.tasks_read += tasks.len();
        for id in wants.steps {
            let step = self.get::<Step>(&format!("s/{id}"));
            evaluation.supply_step(id, step).expect("the program has the step");
        }
        for id in wants.events {
            let event = self.get::<Event>(&format!("e/{id}"));
            evaluation.supply_event(id, event);
        }
        for id in wants.tasks {
            let task = self.get::<Task>(&format!("t/{id}"));
            evaluation.supply_task(id, task);
        }
        for hash in wants.blobs {
            let text = &self.blobs[&hash.0];
            evaluation.supply_blob(hash, text).expect("blobs are JSON");
        }
    }

    pub(crate) fn commit(&mut self, evaluation: &mut Evaluation) {
        let conflicts = self.try_commit(evaluation);
        assert!(conflicts.is_empty(), "{conflicts:?} were written by another");
    }

    /// Writes all, or nothing where others wrote meanwhile: then it says what they wrote.
    pub(crate) fn try_commit(&mut self, evaluation: &mut Evaluation) -> Vec<String> {
        let Some(changes) = evaluation.take_changes() else { return Vec::new() };
        let conflicts = self.conflicts(&changes);
        if !conflicts.is_empty() {
            return conflicts;
        }
        let records = 1 + changes.steps.len() + changes.events.len() + changes.tasks.len();
        self.largest_commit = self.largest_commit.max(records);
        self.longest_active = self.longest_active.max(changes.run.item.active);
        self.write(&changes);
        self.traces.extend(evaluation.drain_traces());
        evaluation.committed();
        self.commits += 1;
        conflicts
    }

    fn conflicts(&self, changes: &Changes) -> Vec<String> {
        let steps = changes.steps.iter().map(|put| (format!("s/{}", put.item.id), put.version));
        let events = changes.events.iter().map(|put| (format!("e/{}", put.item.step_id), put.version));
        let tasks = changes.tasks.iter().map(|put| (format!("t/{}", put.item.step_id), put.version));
        let run = std::iter::once(("run".to_owned(), changes.run.version));
        let stored = |key: &String| self.records.get(key).map(|(_, version)| *version);
        let expected = run.chain(steps).chain(events).chain(tasks);
        expected.filter(|(key, version)| stored(key) != number(*version)).map(|(key, _)| key).collect()
    }

    fn write(&mut self, changes: &Changes) {
        let Put { item, version } = &changes.run;
        self.put("run".to_owned(), &**item, *version);
        if let Some(Put { item, version }) = &changes.active {
            self.put("active".to_owned(), &**item, *version);
            if item.0.is_empty() {
                self.records.remove("active");
            }
        }
        for Put { item, version } in &changes.steps {
            self.put(format!("s/{}", item.id), &**item, *version);
        }
        for Put { item, version } in &changes.events {
            self.put(format!("e/{}", item.step_id), &**item, *version);
        }
        for Put { item, version } in &changes.tasks {
            self.put(format!("t/{}", item.step_id), &**item, *version);
        }
        for blob in &changes.blobs {
            self.blobs.insert(blob.hash.0.clone(), blob.text.clone());
        }
    }

    pub(crate) fn run(&self) -> StoredRecord<Run> {
        self.get("run").expect("the run is stored")
    }

    pub(crate) fn suspended(&self) -> SuspendedRun {
        SuspendedRun { run: self.run(), active: self.get("active") }
    }

    pub(crate) fn step(&self, id: &str) -> Step {
        self.get::<Step>(&format!("s/{id}")).expect("the step is stored").item
    }

    pub(crate) fn task(&self, id: &StepId) -> Task {
        self.get::<Task>(&format!("t/{id}")).expect("the task is stored").item
    }

    /// The steps whose tasks are pending.
    pub(crate) fn pending(&self) -> Vec<StepId> {
        let tasks = self.records.keys().filter_map(|key| key.strip_prefix("t/"));
        tasks
            .filter(|id| {
                self.get::<Task>(&format!("t/{id}")).is_some_and(|t| t.item.state == TaskState::Pending)
            })
            .map(|id| id.parse().expect("keys hold ids"))
            .collect()
    }

    /// The steps where failures began.
    pub(crate) fn failed(&self) -> Vec<StepId> {
        let ids = self.records.keys().filter_map(|key| key.strip_prefix("s/"));
        let ids = ids.map(|id| id.parse::<StepId>().expect("keys hold ids"));
        ids.filter(|id| Step { id: id.clone(), ..self.step(id.as_str()) }.failed_itself()).collect()
    }

    pub(crate) fn value(&self, held: &ValueRef) -> Value {
        match held {
            ValueRef::Inline(value) => value.clone(),
            ValueRef::Blob(blob) => serde_json::from_str(&self.blobs[&blob.hash.0]).expect("blobs are JSON"),
        }
    }

    pub(crate) fn payload(&self, id: &StepId) -> Map<String, Value> {
        let event = self.get::<Event>(&format!("e/{id}")).expect("a task has an event").item;
        event.payload.iter().map(|(name, held)| (name.clone(), self.value(held))).collect()
    }

    /// An agent claims and settles a task; a failed attempt with attempts left stays pending.
    pub(crate) fn settle(&mut self, id: &StepId, outcome: Result<Map<String, Value>, String>) {
        let mut task = self.get::<Task>(&format!("t/{id}")).expect("the task is stored");
        let mut event = self.get::<Event>(&format!("e/{id}")).expect("a task has an event");
        let now = Millis(2);
        let attempt = task.item.attempts + 1;
        let has_next = task.item.policy.retry.and_then(|retry| retry.wait_after(attempt)).is_some();
        let mut make = |what: Move<'_>| {
            task.item.apply(what, Authority::Actor(&Actor::System), now).expect("the move is legal");
        };
        let lease =
            Lease { owner: "w1".to_owned(), secret: String::new(), since: now, expires: now, heartbeat: now };
        make(Move::Claim { lease, handler: "", crashes: 0 });
        match outcome {
            Ok(result) => {
                make(Move::Complete);
                event.item.state = EventState::Completed;
                let held = |(name, value)| (name, ValueRef::Inline(value));
                event.item.result = Some(result.into_iter().map(held).collect::<Payload>());
            }
            Err(message) => {
                let error = EventError::new("EventError", message);
                if has_next {
                    let next = Requeue::NextAttempt { error: &error.message, not_before: None };
                    make(Move::Requeue(next));
                    self.put(format!("t/{id}"), &task.item, Some(task.version));
                    return;
                }
                make(Move::Fail { error: &error, source: FailureSource::Attempt });
                event.item.state = EventState::Error;
                event.item.error = Some(error);
            }
        }
        event.item.reception = Reception::Arrived;
        self.put(format!("t/{id}"), &task.item, Some(task.version));
        self.put(format!("e/{id}"), &event.item, Some(event.version));
    }

    /// The timers of a task come to their time: the end of its wait, or its timeout.
    pub(crate) fn fire(&mut self, id: &StepId) {
        let mut task = self.get::<Task>(&format!("t/{id}")).expect("the task is stored");
        let mut event = self.get::<Event>(&format!("e/{id}")).expect("a task has an event");
        let at = task.item.fires().expect("it has a timer");
        let error = EventError::new("timeout", "its Timeout is over");
        let what = if task.item.timer().is_some() {
            let held = |(name, value)| (name, ValueRef::Inline(value));
            event.item.result = Some(fired(at).into_iter().map(held).collect());
            event.item.state = EventState::Completed;
            Move::Complete
        } else {
            event.item.error = Some(error.clone());
            event.item.state = EventState::Error;
            Move::Fail { error: &error, source: FailureSource::Deadline }
        };
        task.item.apply(what, Authority::Actor(&Actor::System), at).expect("the move is legal");
        event.item.reception = Reception::Arrived;
        self.put(format!("t/{id}"), &task.item, Some(task.version));
        self.put(format!("e/{id}"), &event.item, Some(event.version));
    }

    pub(crate) fn outputs(&self, plan: &Plan) -> Map<String, Value> {
        let root = self.step("w");
        let declared = plan.returns(&self.run().item.workflow).expect("the workflow is declared");
        let value =
            |name: &String| Some((name.clone(), self.value(&root.attributes.returns.get(name)?.held)));
        declared.iter().filter_map(|parameter| value(&parameter.name)).collect()
    }

    /// Everything but times, versions and counts of iterations, which may differ between equal runs.
    pub(crate) fn canonical(&self) -> String {
        let mut text = String::new();
        for (key, (record, _)) in &self.records {
            let mut value: Value = serde_json::from_str(record).expect("records are JSON");
            for name in [
                "created",
                "turn",
                "updated",
                "ended",
                "rests",
                "iterations",
                "iterations_per_run",
                "token",
                "claims",
            ] {
                value.as_object_mut().expect("records are maps").remove(name);
            }
            writeln!(text, "{key} {value}").expect("writing to a string does not fail");
        }
        text
    }
}

/// A case of the conformance suite.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) data: Value,
}

/// The agreed cases, and our own in the same form.
pub(crate) fn cases() -> Vec<Case> {
    ["../../conformance", "tests/cases"].into_iter().flat_map(cases_of).collect()
}

fn cases_of(folder: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut names: Vec<_> = fs::read_dir(&folder)
        .expect("the cases are there")
        .map(|entry| entry.expect("a folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    names.sort();
    let case = |path: std::path::PathBuf| Case {
        name: path.file_stem().expect("a file has a name").to_string_lossy().into_owned(),
        text: fs::read_to_string(path.with_extension("afl")).expect("a case has a program"),
        data: serde_json::from_str(&fs::read_to_string(&path).expect("readable")).expect("a case is JSON"),
    };
    names.into_iter().map(case).collect()
}

/// The answer in place of an event facet: the format of the conformance suite.
pub(crate) fn answer(
    handler: &Value,
    payload: &Map<String, Value>,
    attempt: usize,
) -> Result<Map<String, Value>, String> {
    if let Some(answers) = handler["sequence"].as_array() {
        return answer(&answers[attempt.min(answers.len() - 1)], payload, 0);
    }
    if let Some(error) = handler["error"].as_str() {
        return Err(error.to_owned());
    }
    if let Some(echo) = handler["echo"].as_object() {
        let copy =
            |(name, from): (&String, &Value)| (name.clone(), payload[from.as_str().expect("a name")].clone());
        return Ok(echo.iter().map(copy).collect());
    }
    if let Some(table) = handler["table"].as_object() {
        let key = &payload[table["key"].as_str().expect("a name")];
        let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
        return Ok(table["rows"][&key].as_object().expect("a row").clone());
    }
    Ok(handler["returns"].as_object().expect("a handler answers").clone())
}

/// This store loses nothing, so it has one epoch.
fn at(number: u64) -> Version {
    Version { epoch: Epoch::default(), number }
}

fn number(version: Option<Version>) -> Option<u64> {
    version.map(|version| version.number)
}

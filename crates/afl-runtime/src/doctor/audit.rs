//! The promises about one run, checked step by step in the order of the program.

use afl_engine::attribute::{BlobHash, ValueRef};
use afl_engine::event::{Event, Reception, WorkEvidence};
use afl_engine::failure::StepFailure;
use afl_engine::id::StepId;
use afl_engine::plan::Plan;
use afl_engine::policy::Effect;
use afl_engine::run::{Control, Counts, Run};
use afl_engine::state::State;
use afl_engine::step::{Step, Transmission};
use afl_engine::task::{MAX_DELIVERIES, Task, TaskState};

use super::{Finding, Promise, Repair, Sorts};
use crate::query::StepView;

pub(super) struct Audit<'a> {
    run: &'a Run,
    plan: &'a Plan,
    /// The ancestors of the step under examination, with the counts of their children.
    above: Vec<OpenParent>,
    counted: Counts,
    sorts: Sorts,
    findings: Vec<Finding>,
}

struct OpenParent {
    step: Step,
    open: u32,
    failed: u32,
}

impl<'a> Audit<'a> {
    pub(super) fn new(run: &'a Run, plan: &'a Plan) -> Self {
        Self {
            run,
            plan,
            above: Vec::new(),
            counted: Counts::default(),
            sorts: Sorts::default(),
            findings: Vec::new(),
        }
    }

    /// Steps come in order, a parent before its children.
    pub(super) fn step(&mut self, view: &StepView) {
        while self.above.last().is_some_and(|above| !view.id.is_within(&above.step.id)) {
            self.leave();
        }
        self.check_parent(view);
        self.check_work(view);
        self.counted.steps += 1;
        self.sorts.steps += 1;
        self.sorts.events += usize::from(view.event.is_some());
        self.sorts.tasks += usize::from(view.task.is_some());
        match view.step.state {
            State::Complete => self.counted.complete += 1,
            State::Error => self.counted.failed += 1,
            _ => {}
        }
        let ended = self.run.status.is_terminal();
        if ended && !view.step.is_terminal() {
            self.find(Promise::Completion, &view.id, "the run has ended, but this step has not".to_owned());
        }
        self.above.push(OpenParent { step: view.step.clone(), open: 0, failed: 0 });
    }

    pub(super) fn missing_value(&mut self, view: &StepView, name: &str) {
        self.find(Promise::Acknowledged, &view.id, format!("the value of `{name}` is not in the store"));
    }

    /// The records that were seen with their steps.
    pub(super) fn sorts(&self) -> Sorts {
        self.sorts
    }

    /// An event or a task without its step.
    pub(super) fn stray(&mut self, step: &StepId, record: &str) {
        self.find(
            Promise::AtomicStep,
            step,
            format!("there is a record `{record}`, but the step is missing"),
        );
    }

    pub(super) fn finish(mut self) -> Vec<Finding> {
        while !self.above.is_empty() {
            self.leave();
        }
        self.check_counts();
        self.check_awake();
        self.check_service();
        self.findings
    }

    /// Whether the run is in service, and its mark and its quarantine fit.
    fn check_service(&mut self) {
        let (run, root) = (self.run, StepId::root());
        let is_open = !run.status.is_terminal();
        match &run.quarantine {
            Some(quarantine) if run.control == Control::Hold && is_open => {
                let problem = format!(
                    "the run is quarantined, and waits for a person to resume or cancel it: {}",
                    quarantine.reason
                );
                self.find(Promise::NoSilentStall, &root, problem);
            }
            Some(_) => {
                let problem = "the run is quarantined, but it is not held".to_owned();
                self.find(Promise::NoSilentStall, &root, problem);
            }
            None => {}
        }
        if run.evaluating.as_ref().is_some_and(|mark| mark.count == 0 || !is_open) {
            let problem = "an evaluation is marked that no process can be making".to_owned();
            self.find(Promise::CrashesCount, &root, problem);
        }
    }

    fn check_parent(&mut self, view: &StepView) {
        let parent = view.id.parent();
        let above = self.above.last().map(|above| &above.step.id);
        if parent.as_ref() != above {
            let problem = "the step or block that it belongs to is missing".to_owned();
            self.find(Promise::AtomicStep, &view.id, problem);
            return;
        }
        if let Some(above) = self.above.last_mut() {
            match view.step.state {
                State::Complete => {}
                State::Error => above.failed += 1,
                _ => above.open += 1,
            }
        }
    }

    /// A step with its event and its task.
    fn check_work(&mut self, view: &StepView) {
        let (event, task) = match (&view.event, &view.task, view.step.event) {
            (Some(event), Some(task), _) => (event, task),
            (_, _, Transmission::None) => return,
            (_, _, Transmission::Sent | Transmission::Answered) => {
                let problem = "it was sent out, but its event or its task is missing".to_owned();
                return self.find(Promise::Acknowledged, &view.id, problem);
            }
        };
        if event.reception != Reception::Taken {
            self.counted.waiting += 1;
        }
        for (promise, problem) in work_problems(&view.step, event, task) {
            self.find(promise, &view.id, problem);
        }
        if self.run.status.is_terminal() && (!task.state.is_terminal() || event.reception != Reception::Taken)
        {
            let problem = "the run has ended, but its task or event has not".to_owned();
            self.find(Promise::Completion, &view.id, problem);
        }
    }

    /// All children of the lowest step above have been seen.
    fn leave(&mut self) {
        let OpenParent { step, open, failed } = self.above.pop().expect("there is one to leave");
        // A step replaces its counts from phase to phase, and a cancel does not count.
        let counts = step.object_type.is_block() && self.run.control != Control::Cancel;
        let Some(children) = step.children.as_ref().filter(|_| counts) else { return };
        if (children.open, children.failed) != (open, failed) {
            let problem = format!(
                "it counts {} open and {} failed children, but has {open} and {failed}",
                children.open, children.failed
            );
            self.find(Promise::AtomicStep, &step.id, problem);
        }
    }

    fn check_counts(&mut self) {
        if self.counted != self.run.counts {
            let problem = format!("it counts {}, but has {}", words(self.run.counts), words(self.counted));
            self.find(Promise::AtomicStep, &StepId::root(), problem);
        }
    }

    fn check_awake(&mut self) {
        let waits = self.counted.waiting > 0 || self.run.active > 0;
        // One that is held or being canceled is found by where it is listed.
        let goes_on = !self.run.status.is_terminal() && self.run.control == Control::Go;
        if goes_on && !waits {
            let problem = "it waits, but nothing will ever wake it".to_owned();
            self.find(Promise::NoSilentStall, &StepId::root(), problem);
        }
    }

    fn find(&mut self, promise: Promise, step: &StepId, problem: String) {
        let path = self.plan.readable(&self.run.workflow, step);
        self.findings.push(Finding::new(promise, &self.run.id, &path, problem, Repair::ByHand));
    }
}

fn words(Counts { steps, complete, failed, waiting }: Counts) -> String {
    format!("{steps} steps ({complete} complete, {failed} failed, {waiting} waiting)")
}

fn work_problems(step: &Step, event: &Event, task: &Task) -> Vec<(Promise, String)> {
    let mut problems = Vec::new();
    let mut problem = |promise, text: String| problems.push((promise, text));
    if event.state.is_terminal() != task.state.is_terminal() {
        let text = format!("its event is {}, but its task is {}", event.state, task.state);
        problem(Promise::OneOutcome, text);
    }
    if (event.reception == Reception::Open) == event.state.is_terminal() {
        let text = format!("its event is {}, but its reception is {}", event.state, event.reception);
        problem(Promise::OneOutcome, text);
    }
    let taken = event.reception == Reception::Taken;
    if !step.is_terminal() && taken != (step.event == Transmission::Answered) {
        let text = format!("its event is {}, but the step's is {}", event.reception, step.event);
        problem(Promise::AtomicStep, text);
    }
    if task.deliveries > MAX_DELIVERIES {
        problem(
            Promise::CrashesCount,
            format!("it was handed out {} times without an answer", task.deliveries),
        );
    }
    if u64::from(task.deliveries) > task.claims || task.claims > task.token {
        let counts = format!("{} deliveries in {} claims", task.deliveries, task.claims);
        let text = format!("it counts {counts} up to token {}", task.token);
        problem(Promise::OneOutcome, text);
    }
    if task.policy.retry.is_some_and(|retry| task.attempts > retry.max) {
        problem(Promise::CrashesCount, format!("it was tried {} times", task.attempts));
    }
    if (task.state == TaskState::AwaitingResponse) != task.question.is_some() {
        let question = task.question.as_ref().map_or("no question", |question| &question.0);
        problem(Promise::OneOutcome, format!("it is {}, but waits for the answer to {question}", task.state));
    }
    problems.extend(effect_problems(step, task));
    problems.extend(timer_problems(event, task));
    let mut problem = |promise, text: String| problems.push((promise, text));
    match (&task.lease, task.state) {
        (None, TaskState::Running) => {
            problem(Promise::OneOutcome, "an agent works on it without a lease".to_owned());
        }
        (Some(lease), _) if lease.expires < lease.heartbeat => {
            problem(Promise::OneClock, "its lease ended before it began".to_owned());
        }
        (Some(_) | None, _) => {}
    }
    problems
}

/// A step with a timeout has a timer that fires it, and work that a timer does has its timer.
fn timer_problems(event: &Event, task: &Task) -> Vec<(Promise, String)> {
    let mut problems = Vec::new();
    let is_open = event.reception == Reception::Open;
    if is_open && event.times_out != task.times_out {
        problems.push("its event and its task time out at different times");
    }
    if is_open && task.policy.timeout_ms.is_some() != task.times_out.is_some() {
        problems.push("it has a timeout without a timer, or a timer without a timeout");
    }
    if task.timer().is_some() && task.state == TaskState::Pending && task.not_before.is_none() {
        problems.push("only a timer can answer it, and it has none");
    }
    problems.into_iter().map(|problem| (Promise::NoSilentStall, problem.to_owned())).collect()
}

/// Work that must happen at most once is handed out once, and a person is asked about it when it may have happened.
fn effect_problems(step: &Step, task: &Task) -> Vec<(Promise, String)> {
    let mut problems = Vec::new();
    let is_once = task.policy.effect == Some(Effect::Once);
    if is_once && task.deliveries > 1 {
        problems.push(format!("it must happen at most once, but was handed out {} times", task.deliveries));
    }
    let is_unknown = task.state == TaskState::Failed && task.evidence == WorkEvidence::Unknown;
    if is_once && is_unknown && !task.is_uncertain() {
        problems.push("it may have happened, but no person is asked".to_owned());
    }
    if step.caught.as_ref().is_some_and(StepFailure::is_uncertain) {
        problems.push("it may have happened, but a `catch` dealt with it".to_owned());
    }
    problems.into_iter().map(|problem| (Promise::HonestEffects, problem)).collect()
}

/// The large values that a step refers to.
pub(super) fn blobs(view: &StepView) -> Vec<(&str, &BlobHash)> {
    let attributes = &view.step.attributes;
    let fields = attributes.params.iter().chain(&attributes.returns);
    let own = fields.map(|(name, attribute)| (name, &attribute.held));
    let payloads =
        view.event.iter().flat_map(|event| event.payload.iter().chain(event.result.iter().flatten()));
    let held = own.chain(payloads);
    held.filter_map(|(name, held)| match held {
        ValueRef::Inline(_) => None,
        ValueRef::Blob(blob) => Some((name.as_str(), &blob.hash)),
    })
    .collect()
}

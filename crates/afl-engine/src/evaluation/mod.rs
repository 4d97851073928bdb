//! Evaluates a run: takes stored records and outcomes, gives [`Changes`].
//!
//! An evaluation goes from iteration to iteration until a fixed point (document 003 §9-10). In an iteration every
//! active step goes as far along its path as it can; what it creates is processed at once, what it completes wakes
//! its parent in the next iteration. It asks for the records it needs and never reads by itself; so it is pure, and
//! each record is read once.

mod answer;
mod block;
mod capture;
mod control;
mod event;
mod finish;
mod foreach;
mod init;
mod known;
mod mixin;
mod reader;
mod settings;
mod start;
mod statement;
mod wants;
mod work;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use self::capture::Fold;
use self::control::ControlRequest;
use self::known::{KnownRecords, StepEntry};
use crate::attribute::BlobHash;
use crate::changes::{Changes, Put};
use crate::event::Event;
use crate::id::StepId;
use crate::plan::{FacetAt, Node, Plan};
use crate::run::{Active, KEPT_RUNS, Run, RunStatus};
use crate::step::Step;
use crate::task::Task;
use crate::time::Millis;
use crate::trace::{Trace, Tracing};
use crate::value::Value;
use crate::version::{Epoch, Version};

pub use answer::{AnswerAdvance, PersonAnswer, Unanswerable};
pub use event::SCRIPT_EVENT;
pub use start::{InputError, InputProblem, Start};
use wants::MissingRecord;
pub use wants::Wants;

/// How many levels of blocks and steps may nest in a run. Recursion in a program ends here at the latest.
pub const MAX_DEPTH: usize = 500;

/// How long a step's id may be: stores index it. Only a `foreach` in a `foreach` in … meets this before the depth.
const MAX_ID_BYTES: usize = 2_000;

/// How many elements one `foreach` may have.
pub const MAX_ELEMENTS: usize = 1_000_000;

/// The least writes that an iteration may come to, however small the budget is.
const LEAST_ROOM: usize = 24;

/// How many records an evaluation keeps at hand when it rests or has committed. Beyond them it reads a step again when
/// its outcome arrives: an event of a `foreach` of 1,000 costs 23.0 records in all, of 10,000 25.3, of 30,000 25.4.
const KEPT_RECORDS: usize = 4_096;
const KEPT_BLOB_BYTES: usize = 64 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    pub budget: Budget,
    pub tracing: Tracing,
}

/// How much may be written at once. The last step of an iteration may go beyond it by half, so leave some room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    pub writes: usize,
    pub bytes: usize,
}

/// A record as read.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredRecord<T> {
    pub item: T,
    pub version: Version,
}

/// A run as it was left.
#[derive(Clone, PartialEq, Debug)]
pub struct SuspendedRun {
    pub run: StoredRecord<Run>,
    /// As many steps as the run says.
    pub active: Option<StoredRecord<Active>>,
}

/// Why a supplied record cannot be this run's. The run must not continue with it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Damage {
    #[error("the run's program has no such step")]
    NotInProgram,
    #[error("it is no JSON: {0}")]
    NotJson(String),
    /// The stored records led the evaluation to an impossible state.
    #[error("the stored records of the run contradict each other: {0}")]
    Unfitting(String),
}

/// The request of an evaluation to its driver.
#[derive(Clone, PartialEq, Debug)]
pub enum Advance {
    /// Supply these records, then go on.
    Need(Wants),
    /// Commit the changes, then go on.
    Commit,
    /// A fixed point: commit the changes. [`Run::status`] has the run's status.
    Rest,
}

/// One evaluator of one run. It may be kept between arrivals as long as no other writes the run.
#[derive(Debug)]
pub struct Evaluation {
    plan: Arc<Plan>,
    workflow: FacetAt,
    run: Run,
    /// When it began to read, or before.
    epoch: Epoch,
    run_version: Option<Version>,
    run_is_dirty: bool,
    /// The stored version of the list of active steps, when there is one.
    active_version: Option<Version>,
    known: KnownRecords,
    options: Options,
    now: Millis,
    phase: EvaluationPhase,
    requests: VecDeque<ControlRequest>,
    /// Active in this iteration.
    queue: VecDeque<StepId>,
    /// Active, but waiting for records.
    deferred: Vec<StepId>,
    /// Active in the next iteration.
    next: Vec<StepId>,
    /// Before those, because they had no room in this iteration.
    postponed: Vec<StepId>,
    is_next: FxHashSet<StepId>,
    /// Active, but with children to create, for which there are too many active steps.
    held_back: BTreeSet<StepId>,
    wants: Wants,
    folds: FxHashMap<StepId, Fold>,
    /// Of each `foreach` that is creating its blocks. Evaluated again when they are not here.
    elements: FxHashMap<StepId, Vec<Value>>,
    traces: Vec<Trace>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EvaluationPhase {
    Between,
    Within,
}

impl Evaluation {
    pub fn resume(plan: Arc<Plan>, suspended: SuspendedRun, now: Millis, options: Options) -> Self {
        let SuspendedRun { run, active } = suspended;
        let workflow = plan.facet_at(&run.item.workflow).expect("a run's program has its workflow");
        let mut evaluation = Self::new(plan, workflow, run.item, run.version.epoch, now, options);
        evaluation.run_version = Some(run.version);
        if let Some(StoredRecord { item: Active(steps), version }) = active {
            evaluation.active_version = Some(version);
            for id in steps {
                evaluation.activate(id);
            }
        }
        evaluation
    }

    fn new(
        plan: Arc<Plan>,
        workflow: FacetAt,
        run: Run,
        epoch: Epoch,
        now: Millis,
        options: Options,
    ) -> Self {
        Self {
            plan,
            workflow,
            run,
            epoch,
            run_version: None,
            run_is_dirty: false,
            active_version: None,
            known: KnownRecords::default(),
            options,
            now,
            phase: EvaluationPhase::Between,
            requests: VecDeque::new(),
            queue: VecDeque::new(),
            deferred: Vec::new(),
            next: Vec::new(),
            postponed: Vec::new(),
            is_next: FxHashSet::default(),
            held_back: BTreeSet::new(),
            wants: Wants::default(),
            folds: FxHashMap::default(),
            elements: FxHashMap::default(),
            traces: Vec::new(),
        }
    }

    pub fn run(&self) -> &Run {
        &self.run
    }

    /// When it advanced last.
    pub fn now(&self) -> Millis {
        self.now
    }

    /// The version of the run's record that the next commit expects.
    pub fn run_version(&self) -> Option<Version> {
        self.run_version
    }

    /// The run's record has another version, because this evaluation was marked in it.
    pub fn follow_mark(&mut self, version: Version) {
        self.run_version = Some(version);
        self.run_is_dirty = true;
    }

    /// The epoch of the store that all it knows was read in.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The outcome of this step's event has arrived, or the step is to be looked at for another reason.
    pub fn arrive(&mut self, step: StepId) {
        self.known.events.forget(&step);
        self.activate(step);
    }

    /// Whether a step is to be worked on in this iteration: then it must be stored.
    pub fn is_active(&self, step: &StepId) -> bool {
        self.queue.contains(step)
    }

    /// Works until it needs something, or rests.
    pub fn advance(&mut self, now: Millis) -> Advance {
        self.now = now;
        loop {
            if self.phase == EvaluationPhase::Between {
                if let Err(MissingRecord) = self.handle_requests() {
                    return Advance::Need(std::mem::take(&mut self.wants));
                }
                if self.next.is_empty() || self.run.status.is_terminal() {
                    self.rest();
                    return Advance::Rest;
                }
                self.begin_iteration();
            }
            while let Some(id) = self.queue.pop_front() {
                if !self.has_room() {
                    self.postpone(id);
                } else if let Err(MissingRecord) = self.work(&id) {
                    self.deferred.push(id);
                }
            }
            if !self.deferred.is_empty() {
                self.queue.extend(self.deferred.drain(..));
                return Advance::Need(std::mem::take(&mut self.wants));
            }
            self.end_iteration();
            let budget = self.options.budget;
            if self.known.writes() >= budget.writes || self.known.new_blob_bytes >= budget.bytes {
                return Advance::Commit;
            }
        }
    }

    /// Whether one more step may be worked on in this iteration. Large values wait in memory for the commit, so they
    /// count too.
    fn has_room(&self) -> bool {
        self.known.writes() < self.room() && self.known.new_blob_bytes < self.options.budget.bytes.max(1)
    }

    /// How many writes an iteration may have. Steps that are active beyond them come first in the next iteration.
    fn room(&self) -> usize {
        self.options.budget.writes.max(LEAST_ROOM)
    }

    fn begin_iteration(&mut self) {
        self.phase = EvaluationPhase::Within;
        self.is_next.clear();
        self.queue.extend(self.next.drain(..));
        self.run.iterations += 1;
        self.run.iterations_now += 1;
        self.run.status = RunStatus::Running;
        self.run_is_dirty = true;
        self.trace(|it| Trace::IterationBegan { iteration: it.run.iterations });
    }

    fn end_iteration(&mut self) {
        self.phase = EvaluationPhase::Between;
        let later = std::mem::replace(&mut self.next, std::mem::take(&mut self.postponed));
        self.next.extend(later);
        if self.next.len() <= self.created_at_once() {
            for id in std::mem::take(&mut self.held_back) {
                self.activate(id);
            }
        }
        let changed = self.known.writes();
        self.trace(|it| Trace::IterationEnded { iteration: it.run.iterations, changed });
    }

    /// Counts the last, empty iteration, by which the documents know a fixed point.
    fn rest(&mut self) {
        let has_worked = self.run.iterations_now > 0;
        if has_worked {
            self.run.iterations += 1;
            if self.run.iterations_per_run.len() < KEPT_RUNS {
                self.run.iterations_per_run.push(self.run.iterations_now + 1);
            }
            self.run.iterations_now = 0;
            self.run_is_dirty = true;
        }
        if self.run.status == RunStatus::Running {
            self.run.status = RunStatus::Paused;
            self.run_is_dirty = true;
        }
        if has_worked {
            self.trace_rest();
        }
    }

    /// Whether a parent must wait before it creates more children; then it is active again when there are fewer
    /// active steps. Otherwise a `foreach` would create faster than its elements get their turn, and each iteration
    /// would read all of them.
    fn hold_back(&mut self, parent: &StepId) -> bool {
        let active = self.queue.len() + self.deferred.len() + self.postponed.len() + self.next.len();
        let is_crowded = active > self.created_at_once();
        if is_crowded {
            self.held_back.insert(parent.clone());
        }
        is_crowded
    }

    fn postpone(&mut self, id: StepId) {
        if self.is_next.insert(id.clone()) {
            self.postponed.push(id);
        }
    }

    /// Wakes a step in the next iteration.
    fn activate(&mut self, id: StepId) {
        if self.is_next.insert(id.clone()) {
            self.next.push(id);
        }
    }

    /// All that changed since the last time, to be committed at once; `None` when nothing did.
    pub fn take_changes(&mut self) -> Option<Changes> {
        assert_eq!(self.phase, EvaluationPhase::Between, "changes are taken at iteration boundaries");
        if !self.run_is_dirty && self.known.writes() == 0 {
            return None;
        }
        self.run_is_dirty = false;
        self.run.updated = self.now;
        self.run.evaluating = None;
        self.run.active = self.next.len() + self.held_back.len();
        Some(Changes {
            run: Put { item: Arc::new(self.run.clone()), version: self.run_version },
            active: self.active_change(),
            steps: self.known.steps.take(|entry: &StepEntry| entry.step.clone()),
            events: self.known.events.take(|event| Arc::new(event.clone())),
            tasks: self.known.tasks.take(|task| Arc::new(task.clone())),
            blobs: self.known.take_blobs(),
        })
    }

    fn active_change(&self) -> Option<Put<Active>> {
        let is_none = self.run.active == 0 && self.active_version.is_none();
        let steps = || self.next.iter().chain(&self.held_back).cloned().collect();
        (!is_none).then(|| Put { item: Arc::new(Active(steps())), version: self.active_version })
    }

    /// The changes taken last are stored.
    pub fn committed(&mut self) {
        let next = |version: Option<Version>| version.map_or(Version::first(self.epoch), Version::next);
        self.run_version = Some(next(self.run_version));
        self.active_version = (self.run.active > 0).then(|| next(self.active_version));
        self.known.steps.committed(self.epoch);
        self.known.events.committed(self.epoch);
        self.known.tasks.committed(self.epoch);
        self.known.shrink(KEPT_RECORDS, KEPT_BLOB_BYTES);
    }

    /// The traces since the last call.
    pub fn drain_traces(&mut self) -> Vec<Trace> {
        std::mem::take(&mut self.traces)
    }

    fn trace(&mut self, trace: impl FnOnce(&Self) -> Trace) {
        if self.options.tracing == Tracing::Full {
            let trace = trace(self);
            self.traces.push(trace);
        }
    }

    fn trace_rest(&mut self) {
        self.trace(|it| Trace::Rested { iteration: it.run.iterations, status: it.run.status });
    }

    /// A step for people.
    fn path_of(&self, id: &StepId) -> String {
        self.plan.readable(&self.run.workflow, id)
    }

    pub fn supply_step(&mut self, id: StepId, stored: Option<StoredRecord<Step>>) -> Result<(), Damage> {
        let entry = match stored {
            Some(stored) => {
                let node = self.node_of(&id).ok_or(Damage::NotInProgram)?;
                Some((
                    StepEntry { step: Arc::new(Step { id: id.clone(), ..stored.item }), node },
                    stored.version,
                ))
            }
            None => None,
        };
        self.known.steps.supply(id, entry);
        Ok(())
    }

    /// From the parent where that is at hand: ids can be long.
    fn node_of(&self, id: &StepId) -> Option<Node> {
        let parent =
            id.split().and_then(|(parent, segment)| Some((self.known.steps.get(&parent)?.node, segment)));
        match parent {
            Some((node, segment)) => self.plan.child(node, segment),
            None => self.plan.locate(self.workflow, id),
        }
    }

    pub fn supply_event(&mut self, id: StepId, stored: Option<StoredRecord<Event>>) {
        let event = stored.map(|stored| (Event { step_id: id.clone(), ..stored.item }, stored.version));
        self.known.events.supply(id, event);
    }

    pub fn supply_task(&mut self, id: StepId, stored: Option<StoredRecord<Task>>) {
        let task = stored.map(|stored| (stored.item.of_step(id.clone()), stored.version));
        self.known.tasks.supply(id, task);
    }

    /// A large value, by its JSON text.
    pub fn supply_blob(&mut self, hash: BlobHash, text: &str) -> Result<(), Damage> {
        let value = serde_json::from_str(text).map_err(|error| Damage::NotJson(error.to_string()))?;
        self.known.supply_blob(hash, value, text.len());
        Ok(())
    }
}

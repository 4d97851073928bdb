//! Drives one run: evaluates the outcomes that arrived up to the next fixed point, and commits.
//!
//! **Problem.** Several processes may drive the same run at once, and any of them may die between two commits. Each
//! outcome must be evaluated exactly once all the same. Reading a run for each outcome would be slow.
//!
//! **Approach.** Drives are optimistic. An evaluation reads records, and its commit expects the version of the run
//! record that it read. One of two concurrent drives commits; the other is refused, throws its evaluation away, reads
//! again and finds the outcomes taken. A kept evaluation skips the reads: only evaluators write steps, so its records
//! stay valid until a commit is refused. After a crash of the database the epoch is newer, and the kept evaluation is
//! dropped.
//!
//! A run that committed in the middle of an evaluation less than two seconds ago belongs to a living process, most
//! likely. The driver leaves it alone and tries later; after that time it continues from the last commit.
//!
//! Arrivals are evaluated in the order of the program, so that equal outcomes give equal runs whatever their order.
//! They come in portions that fit one commit, since an iteration is committed whole.
//!
//! **Rejected.** A lock for each run costs two writes for each drive, and a dead holder blocks the run until it
//! expires.
//!
//! These are plain async functions, so that a simulation can call them one by one; [`serve`](crate::serve) calls them
//! for all runs at once.
//!
//! **Measured** by `cargo xtask bench`: one of 100,000 results of a `foreach` costs 1.08 commits, 1.06 reads and 1.22
//! times the CPU of one of 1,000 on SQLite.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afl_engine::changes::Put;
use afl_engine::evaluation::{Advance, Damage, Evaluation, StoredRecord, Wants};
use afl_engine::event::{Event, Reception};
use afl_engine::history::Actor;
use afl_engine::id::{RunId, StepId};
use afl_engine::run::{Control, Run, RunStatus};
use afl_engine::step::Step;
use afl_engine::task::Task;
use afl_engine::time::Millis;
use afl_engine::version::Epoch;
use afl_store::backend::Durability;
use afl_store::store::{self, ByStep, Defect, Terms, blob_record, run_record, step_record};

use crate::error::{Contention, Error};
use crate::quarantine::{MarkVerdict, commit_error, deadly};
use crate::service::Service;

/// How often an evaluation is redone because others wrote meanwhile, before it is left for later.
const REDOS: usize = 16;

/// How long an evaluation may commit nothing before another process takes it over.
const UNDER_WAY: Millis = Millis(2_000);

/// The writes for the result of one step, with room to spare: the step, its event, its block and the next steps.
const WRITES_PER_ARRIVAL: usize = 10;

/// A run that may have something to do.
#[derive(Clone, PartialEq, Debug)]
pub struct RunWork {
    pub run: RunId,
    pub arrivals: Vec<Arrival>,
}

/// An outcome that waits for the evaluator.
#[derive(Clone, PartialEq, Debug)]
pub struct Arrival {
    pub step: StepId,
    /// As it was written, when it was written in this process.
    pub event: Option<StoredRecord<Event>>,
}

impl RunWork {
    pub(crate) fn of_step(run: &RunId, step: &StepId) -> Self {
        Self { run: run.clone(), arrivals: vec![Arrival::of(step.clone())] }
    }
}

impl Arrival {
    pub(crate) fn of(step: StepId) -> Self {
        Self { step, event: None }
    }
}

/// How a run stands after it was driven.
#[derive(Debug)]
pub struct DriveResult {
    pub status: DriveStatus,
    /// The evaluator for the next drive, unless another process writes the run before.
    pub(crate) hot: Option<Box<Evaluation>>,
    /// Whether the evaluation began with stored records, so other processes may have written the run before.
    pub(crate) was_cold: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriveStatus {
    /// There is no such run, or no longer.
    Gone,
    /// An operator holds it.
    Held,
    /// Another process evaluates it at this moment.
    Elsewhere,
    /// At a fixed point, or at its end.
    Rests(RunStatus),
}

/// How to treat a run that another process seems to evaluate. To drive it is safe, but one of the two processes
/// works in vain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Others {
    Ignore,
    Respect,
}

impl Service {
    /// Takes in the arrivals of a run. It is safe for many to drive the same run at once: one of them commits, the
    /// others see that and look again.
    pub async fn drive_once(&self, work: &RunWork) -> Result<DriveResult, Error> {
        self.drive(work, None, Others::Ignore).await
    }

    pub(crate) async fn drive(
        &self,
        work: &RunWork,
        hot: Option<Box<Evaluation>>,
        others: Others,
    ) -> Result<DriveResult, Error> {
        let mut hot = hot;
        let mut refusals = 0;
        for redo in 0..REDOS {
            let (was_hot, epoch) = (hot.is_some(), self.store.epoch());
            match self.attempt(work, hot.take(), others, redo).await {
                Err(error) if error.is_conflict() => {}
                Err(error) if (was_hot && error.is_damage()) || self.is_torn(&error, epoch) => {}
                // A second evaluation, from the stored records, must come to the same.
                Err(error) if error.is_unstorable() && refusals == 0 => refusals += 1,
                Err(error) if error.is_unstorable() => {
                    // A store that refuses everything refuses this, too; then it is not the run's fault.
                    self.quarantine_refused(&work.run, &error).await.map_err(|_| error)?;
                    return Ok(DriveResult { status: DriveStatus::Held, hot: None, was_cold: true });
                }
                outcome => {
                    self.driven.fetch_add(u64::from(outcome.is_ok()), Ordering::Relaxed);
                    return outcome;
                }
            }
        }
        Err(Contention::Run { run: work.run.clone(), tries: REDOS }.into())
    }

    async fn attempt(
        &self,
        work: &RunWork,
        hot: Option<Box<Evaluation>>,
        others: Others,
        redo: usize,
    ) -> Result<DriveResult, Error> {
        let now = self.store.now().await?;
        let hot = hot.filter(|evaluator| evaluator.epoch() == self.store.epoch());
        let was_cold = hot.is_none();
        let mut evaluator = match hot {
            Some(evaluator) => evaluator,
            None => match self.cold(&work.run, others, now).await? {
                Ok(evaluator) => evaluator,
                Err(status) => return Ok(DriveResult { status, hot: None, was_cold }),
            },
        };
        let mut arrived = self.arrived(work, redo).await?.into_iter().peekable();
        loop {
            for (step, event) in arrived.by_ref().take(self.arrivals_at_once()) {
                evaluator.arrive(step.clone());
                evaluator.supply_event(step, Some(event));
            }
            self.evaluate(&mut evaluator, now, Durability::Relaxed).await?;
            if arrived.peek().is_none() {
                break;
            }
        }
        let status = evaluator.run().status;
        let hot = (!status.is_terminal()).then_some(evaluator);
        Ok(DriveResult { status: DriveStatus::Rests(status), hot, was_cold })
    }

    /// An iteration is committed whole, so it must not be woken by more than a commit can hold.
    fn arrivals_at_once(&self) -> usize {
        (self.options.budget.writes / WRITES_PER_ARRIVAL).max(1)
    }

    /// Builds an evaluation from the stored records, or says why the run needs none.
    async fn cold(
        &self,
        id: &RunId,
        others: Others,
        now: Millis,
    ) -> Result<Result<Box<Evaluation>, DriveStatus>, Error> {
        let Some(suspended) = self.store.suspended(id).await? else { return Ok(Err(DriveStatus::Gone)) };
        let run = &suspended.run.item;
        if run.status.is_terminal() {
            return Ok(Err(DriveStatus::Rests(run.status)));
        }
        match run.control {
            Control::Hold => Ok(Err(DriveStatus::Held)),
            Control::Cancel => {
                self.end_canceled(id, &Actor::System).await?;
                Ok(Err(DriveStatus::Rests(RunStatus::Canceled)))
            }
            Control::Go if others == Others::Respect && is_under_way(run, now) => {
                Ok(Err(DriveStatus::Elsewhere))
            }
            Control::Go => {
                match (self.judge_mark(run, now), others) {
                    (MarkVerdict::Alive, Others::Respect) => return Ok(Err(DriveStatus::Elsewhere)),
                    (MarkVerdict::Deadly, _) => {
                        self.quarantine(suspended.run, deadly()).await?;
                        return Ok(Err(DriveStatus::Held));
                    }
                    (MarkVerdict::Alive, Others::Ignore) | (MarkVerdict::Go, _) => {}
                }
                let plan = self.plan_of(run).await?;
                Ok(Ok(Box::new(Evaluation::resume(plan, suspended, now, self.options))))
            }
        }
    }

    /// The outcomes that are there and not taken yet; an evaluation must not be woken for nothing.
    async fn arrived(
        &self,
        work: &RunWork,
        redo: usize,
    ) -> Result<Vec<(StepId, StoredRecord<Event>)>, Error> {
        let mut arrived = Vec::with_capacity(work.arrivals.len());
        let mut wants = Wants::default();
        let mut seen = BTreeSet::new();
        for arrival in &work.arrivals {
            match &arrival.event {
                _ if !seen.insert(&arrival.step) => {}
                // After a conflict the event may have changed, so it is read again.
                Some(event) if redo == 0 => arrived.push((arrival.step.clone(), event.clone())),
                Some(_) | None => {
                    wants.events.insert(arrival.step.clone());
                }
            }
        }
        if !wants.events.is_empty() {
            let loaded = self.store.load(&work.run, &wants).await?.events;
            arrived.extend(loaded.into_iter().filter_map(|(step, event)| Some((step, event?))));
        }
        arrived.retain(|(_, event)| event.item.reception == Reception::Arrived);
        // The order of the program, not that of the arrival or of a hash.
        arrived.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(arrived)
    }

    /// Advances to the fixed point; `first` is the durability of the first commit, later ones are relaxed.
    pub(crate) async fn evaluate(
        &self,
        evaluator: &mut Evaluation,
        now: Millis,
        first: Durability,
    ) -> Result<(), Error> {
        let mut durability = first;
        loop {
            let watch = self.watch_evaluation(evaluator.run(), evaluator.run_version());
            let advance = guarded(evaluator, |evaluation| evaluation.advance(now));
            if let Some(version) = self.end_watch(watch).await {
                evaluator.follow_mark(version);
            }
            let advance = advance?;
            match &advance {
                Advance::Need(wants) => {
                    self.supply(evaluator, wants).await?;
                    continue;
                }
                Advance::Commit | Advance::Rest => {}
            }
            if let Some(changes) = evaluator.take_changes() {
                let committed = self.store.commit(&changes, Terms::default(), durability).await;
                committed.map_err(|error| commit_error(&evaluator.run().id, error))?;
                evaluator.committed();
                self.hand_on(&changes.tasks);
                durability = Durability::Relaxed;
            }
            self.tell(evaluator);
            if advance == Advance::Rest {
                return Ok(());
            }
        }
    }

    /// Whether records seem damaged because the store lost commits between two reads; then a new read decides.
    pub(crate) fn is_torn(&self, error: &Error, since: Epoch) -> bool {
        error.is_damage() && since < self.store.epoch()
    }

    /// Whether what the evaluator has read is not of one time. Every evaluator writes the run, so another version of it
    /// shows another writer, or a crash of the database.
    pub(crate) async fn is_outdated(&self, evaluator: &Evaluation) -> Result<bool, Error> {
        let version = self.existing(&evaluator.run().id).await?.version;
        Ok(Some(version) != evaluator.run_version())
    }

    /// Gives the tasks of a commit to the driver of one run.
    fn hand_on(&self, tasks: &[Put<Task>]) {
        let Some(created) = &self.created else { return };
        for task in tasks {
            // A driver that is gone needs none.
            created.send(Arc::clone(&task.item)).ok();
        }
    }

    pub(crate) async fn supply(&self, evaluation: &mut Evaluation, wants: &Wants) -> Result<(), Error> {
        let run = evaluation.run().id.clone();
        let loaded = self.store.load(&run, wants).await?;
        let lost = loaded.steps.iter().find(|(id, step)| step.is_none() && evaluation.is_active(id));
        let lost = lost.map(|(id, _)| step_record(id)).or_else(|| lost_parent(&loaded.steps));
        if let Some(record) = lost {
            return Err(store::Error::Unreadable { run, record, defect: Defect::Missing }.into());
        }
        for (id, step) in loaded.steps {
            let record = step_record(&id);
            evaluation.supply_step(id, step).map_err(|damage| damaged(&run, record, &damage))?;
        }
        for (id, event) in loaded.events {
            evaluation.supply_event(id, event);
        }
        for (id, task) in loaded.tasks {
            evaluation.supply_task(id, task);
        }
        for (hash, text) in loaded.blobs {
            let record = blob_record(&hash);
            let Some(text) = text else {
                return Err(store::Error::Unreadable { run, record, defect: Defect::Missing }.into());
            };
            evaluation.supply_blob(hash, &text).map_err(|damage| damaged(&run, record, &damage))?;
        }
        Ok(())
    }
}

/// Calls the evaluator on records that may not fit together, in ways that no checksum detects. Its panic stops this run
/// alone.
pub(crate) fn guarded<T>(
    evaluation: &mut Evaluation,
    call: impl FnOnce(&mut Evaluation) -> T,
) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(|| call(evaluation))).map_err(|panic| {
        let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
        let damage = Damage::Unfitting(said.unwrap_or_else(|| "its evaluation broke off".to_owned()));
        damaged(&evaluation.run().id, run_record(), &damage).into()
    })
}

/// The record of a step that must be there, because one within it is.
fn lost_parent(steps: &ByStep<Step>) -> Option<String> {
    let absent: BTreeSet<&StepId> =
        steps.iter().filter(|(_, step)| step.is_none()).map(|(id, _)| id).collect();
    let found = steps.iter().filter(|(_, step)| step.is_some() && !absent.is_empty());
    found.filter_map(|(id, _)| id.parent()).find(|id| absent.contains(id)).map(|id| step_record(&id))
}

/// The run is quarantined and the record named.
pub(crate) fn damaged(run: &RunId, record: String, damage: &Damage) -> store::Error {
    store::Error::Unreadable { run: run.clone(), record, defect: Defect::Body(damage.to_string()) }
}

/// Whether an evaluation that has not ended made a commit a moment ago.
fn is_under_way(run: &Run, now: Millis) -> bool {
    // A clock that went back must not make a run wait for it.
    let ago = now.since(run.updated);
    run.active > 0 && (Millis(0)..UNDER_WAY).contains(&ago)
}

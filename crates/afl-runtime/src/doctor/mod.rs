//! Checks every promise about stored data, and makes the repairs that are safe. The simulation runs it after every
//! step.

mod audit;
mod run;
mod shared;
mod system;

use afl_engine::id::RunId;
use afl_store::paging::{Pages, last_if_full};
use afl_store::store::{self, Misplacement, Placement, RecordKind, SHARED};
use serde::Serialize;

pub(crate) use self::shared::shared_record;
use crate::error::Error;
use crate::service::Service;

const PAGE: usize = 500;

/// How the doctor treats its findings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remedy {
    Tell,
    /// Make the repairs that cannot do harm.
    Fix,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Report {
    /// How many runs were looked at.
    pub runs: usize,
    pub system_tasks: usize,
    /// Runs that changed all the time, so that no look at them was whole.
    pub busy: Vec<RunId>,
    pub findings: Vec<Finding>,
}

/// A broken promise. Records beside the runs have their scope in place of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    pub promise: Promise,
    pub run: RunId,
    /// The step for people, or the record.
    pub path: String,
    pub problem: String,
    pub repair: Repair,
}

/// A broken promise of docs/promises.md.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum Promise {
    /// G1: the store is exactly at an iteration boundary.
    AtomicStep,
    /// G2: acknowledged writes are there.
    Acknowledged,
    /// G3: one outcome per step.
    OneOutcome,
    /// G4: work that must happen at most once is not repeated without a person's word.
    HonestEffects,
    /// G5: deliveries and attempts stay within their limits.
    CrashesCount,
    /// G7: a run ends whole.
    Completion,
    /// G8: the program of the run is there.
    PinnedDefinition,
    /// G9: every run that goes on has something that wakes it.
    NoSilentStall,
    /// G10: leases are by one clock.
    OneClock,
    /// G13: damage is reported, and evaluation does not guess past it.
    FailStop,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Repair {
    /// `fix` can do it.
    Possible,
    Done,
    /// Only a person can decide.
    ByHand,
    /// It is as a newer release wrote it, and sound for all that this one knows.
    ByNewerRelease,
    /// Only the operator of the store can repair it.
    OfStore,
}

impl Finding {
    fn new(promise: Promise, run: &RunId, path: &str, problem: String, repair: Repair) -> Self {
        Self { promise, run: run.clone(), path: path.to_owned(), problem, repair }
    }
}

impl Repair {
    fn of(error: &store::Error) -> Self {
        if error.is_of_newer_release() { Self::ByNewerRelease } else { Self::ByHand }
    }
}

impl Service {
    /// Looks at every run and every system task of the store, and at what they share.
    pub async fn doctor(&self, remedy: Remedy) -> Result<Report, Error> {
        let mut report = Report::default();
        let mut pages: Pages<String> = Pages::first();
        while !pages.is_over() {
            // Every scope is read, not the lists: a record in no list is one that no other query finds.
            let scopes = self.store.scopes(pages.after().map_or("", String::as_str), PAGE).await?;
            for scope in &scopes {
                self.examine_any(&mut report, scope, remedy).await?;
            }
            pages.follow(last_if_full(&scopes, PAGE).cloned());
        }
        self.examine_store(&mut report).await?;
        Ok(report)
    }

    async fn examine_any(&self, report: &mut Report, scope: &str, remedy: Remedy) -> Result<(), Error> {
        let id = RunId(scope.into());
        if SHARED.contains(&scope) {
            self.examine_scope(report, scope, |_| true, remedy).await
        } else if id.is_run() {
            self.examine_into(report, &id, remedy).await
        } else {
            self.examine_system_task(report, &id, remedy).await
        }
    }

    /// Looks at one run, one system task, or one record that all share.
    pub async fn examine(&self, run: &RunId, remedy: Remedy) -> Result<Report, Error> {
        let mut report = Report::default();
        if run.is_run() {
            self.examine_into(&mut report, run, remedy).await?;
        } else if let Some((scope, id)) = shared_record(run) {
            self.examine_scope(&mut report, scope, |path| path == id, remedy).await?;
        } else {
            self.examine_system_task(&mut report, run, remedy).await?;
        }
        Ok(report)
    }

    /// Whether there is anything of a run, the run itself or parts of it.
    pub async fn has_records(&self, run: &RunId) -> Result<bool, Error> {
        Ok(!self.store.inspect(run, None, 1).await?.is_empty())
    }

    async fn examine_into(&self, report: &mut Report, id: &RunId, remedy: Remedy) -> Result<(), Error> {
        report.runs += 1;
        match self.findings_of(id, remedy).await? {
            Some(mut findings) => {
                self.name_steps(id, &mut findings).await;
                report.findings.append(&mut findings);
            }
            None => report.busy.push(id.clone()),
        }
        Ok(())
    }

    /// Judges each record for itself, and counts the records of each sort.
    async fn examine_records(&self, id: &RunId, remedy: Remedy) -> Result<(Vec<Finding>, Sorts), Error> {
        let (mut findings, mut sorts) = (Vec::new(), Sorts::default());
        let mut pages: Pages<String> = Pages::first();
        while !pages.is_over() {
            let page = self.store.inspect(id, pages.after().map(String::as_str), PAGE).await?;
            pages.follow(last_if_full(&page, PAGE).map(|last| last.record.clone()));
            for one in page {
                sorts.add(one.sort);
                let finding =
                    |promise, problem, repair| Finding::new(promise, id, &one.record, problem, repair);
                match one.state {
                    Ok(Placement::Right) => {}
                    Ok(Placement::Wrong(misplaced)) => {
                        let problem =
                            format!("it is {}, but should be {}", misplaced.is(), misplaced.should_be());
                        let repair = self.put_right(misplaced, remedy).await?;
                        findings.push(finding(Promise::NoSilentStall, problem, repair));
                    }
                    Err(error) => {
                        let repair = Repair::of(&error);
                        findings.push(finding(Promise::FailStop, error.to_string(), repair));
                    }
                }
            }
        }
        Ok((findings, sorts))
    }

    async fn put_right(&self, misplaced: Misplacement, remedy: Remedy) -> Result<Repair, Error> {
        match remedy {
            Remedy::Tell => Ok(Repair::Possible),
            Remedy::Fix => {
                self.store.put_right(misplaced).await?;
                Ok(Repair::Done)
            }
        }
    }
}

/// How many records of each sort there are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Sorts {
    steps: usize,
    events: usize,
    tasks: usize,
}

impl Sorts {
    fn add(&mut self, sort: RecordKind) {
        match sort {
            RecordKind::Step => self.steps += 1,
            RecordKind::Event => self.events += 1,
            RecordKind::Task => self.tasks += 1,
            RecordKind::Run
            | RecordKind::Active
            | RecordKind::Blob
            | RecordKind::Log
            | RecordKind::Unknown => {}
        }
    }
}

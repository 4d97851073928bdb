//! Checks every promise about stored data, and repairs what is safe. The simulation asks it after every step.

mod audit;
mod shared;
mod system;

use afl_engine::id::{RunId, StepId};
use afl_engine::run::Run;
use afl_store::store::{self, Misplaced, Placement, Shelf};
use serde::Serialize;

use self::audit::Audit;
pub(crate) use self::shared::shared_record;
use crate::error::Error;
use crate::service::Service;

const PAGE: usize = 500;
/// How often a run that others write at the same time is looked at again.
const LOOKS: usize = 5;

/// What to do about what is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remedy {
    Tell,
    /// Repair what cannot do harm.
    Fix,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Report {
    /// How many runs were looked at.
    pub runs: usize,
    /// How many system tasks.
    pub system_tasks: usize,
    /// Runs that changed all the time, so that no look at them was whole.
    pub busy: Vec<RunId>,
    pub findings: Vec<Finding>,
}

/// Something that must not be. What is shared has its scope in place of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    pub promise: Promise,
    pub run: RunId,
    /// The step for people, or the record.
    pub path: String,
    pub problem: String,
    pub repair: Repair,
}

/// Which promise of the design is broken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum Promise {
    /// G1: the store is exactly at an iteration boundary.
    AtomicStep,
    /// G2: what was acknowledged is there.
    Acknowledged,
    /// G3: one outcome per step.
    OneOutcome,
    /// G5: deliveries and attempts stay within their limits.
    CrashesCount,
    /// G7: what has ended has ended whole.
    Completion,
    /// G8: the program of the run is there.
    PinnedDefinition,
    /// G9: every run that goes on has something that wakes it.
    NoSilentStall,
    /// G10: leases are by one clock.
    OneClock,
    /// G13: damage is told, not guessed past.
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
}

impl Service {
    /// Looks at every run and every system task of the store, and at what they share.
    pub async fn doctor(&self, remedy: Remedy) -> Result<Report, Error> {
        let mut report = Report::default();
        for shelf in Shelf::ALL {
            let mut after = None;
            loop {
                let page = self.store.ids_on(shelf, after.as_ref(), PAGE).await?;
                let full = page.len() == PAGE;
                for (run, mark) in page {
                    self.examine_into(&mut report, &run, remedy).await?;
                    after = Some(mark);
                }
                if !full {
                    break;
                }
            }
        }
        self.examine_system_tasks(&mut report, remedy).await?;
        self.examine_shared(&mut report, remedy).await?;
        Ok(report)
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

    async fn examine_into(&self, report: &mut Report, id: &RunId, remedy: Remedy) -> Result<(), Error> {
        report.runs += 1;
        for _ in 0..LOOKS {
            let mut findings = self.examine_records(id, remedy).await?;
            if findings.iter().any(|finding| finding.promise == Promise::FailStop) {
                report.findings.append(&mut findings);
                return Ok(());
            }
            let before = match self.store.suspended(id).await {
                Ok(Some(suspended)) => suspended.run,
                Ok(None) => return Ok(()),
                Err(ref error @ store::Error::Unreadable { record: ref path, .. }) => {
                    let (promise, run, path) = (Promise::FailStop, id.clone(), path.clone());
                    let (problem, repair) = (error.to_string(), Repair::ByHand);
                    findings.push(Finding { promise, run, path, problem, repair });
                    report.findings.append(&mut findings);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            findings.extend(self.examine_run(&before.item).await?);
            let after = self.store.run(id).await?;
            if after.is_some_and(|after| after.version == before.version) {
                report.findings.append(&mut findings);
                return Ok(());
            }
        }
        report.busy.push(id.clone());
        Ok(())
    }

    /// Each record for itself.
    async fn examine_records(&self, id: &RunId, remedy: Remedy) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.store.inspect(id, after.as_deref(), PAGE).await?;
            let full = page.len() == PAGE;
            after = page.last().map(|last| last.record.clone());
            for one in page {
                let finding = |promise, problem: String, repair| Finding {
                    promise,
                    run: id.clone(),
                    path: one.record.clone(),
                    problem,
                    repair,
                };
                match one.state {
                    Ok(Placement::Right) => {}
                    Ok(Placement::Wrong(misplaced)) => {
                        let problem =
                            format!("it is {}, but should be {}", misplaced.is(), misplaced.should_be());
                        let repair = self.put_right(misplaced, remedy).await?;
                        findings.push(finding(Promise::NoSilentStall, problem, repair));
                    }
                    Err(error) => {
                        findings.push(finding(Promise::FailStop, error.to_string(), Repair::ByHand));
                    }
                }
            }
            if !full {
                return Ok(findings);
            }
        }
    }

    async fn put_right(&self, misplaced: Misplaced, remedy: Remedy) -> Result<Repair, Error> {
        match remedy {
            Remedy::Tell => Ok(Repair::Possible),
            Remedy::Fix => {
                self.store.put_right(misplaced).await?;
                Ok(Repair::Done)
            }
        }
    }

    /// The records together.
    async fn examine_run(&self, run: &Run) -> Result<Vec<Finding>, Error> {
        let plan = match self.plan_of(run).await {
            Ok(plan) => plan,
            Err(error) if error.is_damage() => {
                return Ok(vec![Finding {
                    promise: Promise::PinnedDefinition,
                    run: run.id.clone(),
                    path: run.workflow.to_string(),
                    problem: error.to_string(),
                    repair: Repair::ByHand,
                }]);
            }
            Err(error) => return Err(error),
        };
        let mut audit = Audit::new(run, &plan);
        let mut after: Option<StepId> = None;
        loop {
            let page = self.steps(&run.id, None, after.as_ref(), PAGE).await?;
            for view in &page.steps {
                audit.step(view);
                for (name, blob) in audit::blobs(view) {
                    if !self.store.has_blob(&run.id, blob).await? {
                        audit.missing_value(view, name);
                    }
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(audit.finish()),
            }
        }
    }
}

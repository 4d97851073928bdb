//! Checks one run: what its records say together.

use std::collections::BTreeSet;

use afl_engine::evaluation::Wants;
use afl_engine::id::{RunId, StepId};
use afl_engine::run::Run;
use afl_store::paging::{Pages, last_if_full};
use afl_store::store::{self, RecordKind};

use super::audit::{self, Audit};
use super::{Finding, PAGE, Promise, Remedy, Repair, Sorts};
use crate::error::{Corruption, Error};
use crate::service::Service;

/// How often a run that others write at the same time is looked at again.
const LOOKS: usize = 5;

impl Service {
    /// Nothing when no look at it was whole.
    pub(super) async fn findings_of(
        &self,
        id: &RunId,
        remedy: Remedy,
    ) -> Result<Option<Vec<Finding>>, Error> {
        for look in 0..LOOKS {
            let (mut findings, sorts) = self.examine_records(id, remedy).await?;
            if findings.iter().any(|finding| finding.promise == Promise::FailStop) {
                return Ok(Some(findings));
            }
            let before = match self.store.suspended(id).await {
                Ok(Some(suspended)) => suspended.run,
                // Values of a start that is in progress or was given up.
                Ok(None) if sorts == Sorts::default() => return Ok(Some(findings)),
                // It may be deleted at this moment.
                Ok(None) if look == 0 => continue,
                Ok(None) => {
                    let problem = "the run itself is missing, though there are parts of it".to_owned();
                    findings.push(Finding::new(Promise::Acknowledged, id, "run", problem, Repair::ByHand));
                    return Ok(Some(findings));
                }
                Err(ref error @ store::Error::Unreadable { record: ref path, .. }) => {
                    let (problem, repair) = (error.to_string(), Repair::of(error));
                    findings.push(Finding::new(Promise::FailStop, id, path, problem, repair));
                    return Ok(Some(findings));
                }
                Err(error) => return Err(error.into()),
            };
            findings.extend(self.examine_run(&before.item, sorts).await?);
            let after = self.store.run(id).await?;
            if after.is_some_and(|after| after.version == before.version) {
                return Ok(Some(findings));
            }
        }
        Ok(None)
    }

    /// The records together.
    async fn examine_run(&self, run: &Run, sorts: Sorts) -> Result<Vec<Finding>, Error> {
        let plan = match self.plan_of(run).await {
            Ok(plan) => plan,
            Err(error) if error.is_damage() => {
                let repair = match &error {
                    Error::Damaged(Corruption::Record(record)) => Repair::of(record),
                    _ => Repair::ByHand,
                };
                let (promise, problem) = (Promise::PinnedDefinition, error.to_string());
                return Ok(vec![Finding::new(promise, &run.id, &run.workflow, problem, repair)]);
            }
            Err(error) => return Err(error),
        };
        let mut audit = Audit::new(run, &plan);
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.steps(&run.id, None, pages.after(), PAGE).await?;
            for view in &page.steps {
                audit.step(view);
                for (name, blob) in audit::blobs(view) {
                    if !self.store.has_blob(&run.id, blob).await? {
                        audit.missing_value(view, name);
                    }
                }
            }
            pages.follow(page.next);
        }
        if audit.sorts() != sorts {
            for (step, record) in self.strays(&run.id).await? {
                audit.stray(&step, &record);
            }
        }
        Ok(audit.finish())
    }

    /// Events and tasks of steps that are not there.
    async fn strays(&self, id: &RunId) -> Result<Vec<(StepId, String)>, Error> {
        let mut strays = Vec::new();
        let mut pages: Pages<String> = Pages::first();
        while !pages.is_over() {
            let page = self.store.inspect(id, pages.after().map(String::as_str), PAGE).await?;
            let parts = page.iter().filter(|one| matches!(one.sort, RecordKind::Event | RecordKind::Task));
            let parts: Vec<(StepId, &String)> =
                parts.filter_map(|one| Some((store::step_of_record(&one.record)?, &one.record))).collect();
            let steps = parts.iter().map(|(step, _)| step.clone()).collect();
            let found = self.store.load(id, &Wants { steps, ..Wants::default() }).await?.steps;
            let absent: BTreeSet<&StepId> =
                found.iter().filter(|(_, step)| step.is_none()).map(|(id, _)| id).collect();
            let alone = parts.iter().filter(|(step, _)| absent.contains(step));
            strays.extend(alone.map(|(step, record)| (step.clone(), (*record).clone())));
            pages.follow(last_if_full(&page, PAGE).map(|last| last.record.clone()));
        }
        Ok(strays)
    }

    /// Adds the readable path to the records of steps, as far as the run can be read.
    pub(super) async fn name_steps(&self, id: &RunId, findings: &mut [Finding]) {
        let Ok(Some(run)) = self.store.run(id).await else { return };
        let Ok(plan) = self.plan_of(&run.item).await else { return };
        for finding in findings {
            if let Some(step) = store::step_of_record(&finding.path) {
                let readable = plan.readable(&run.item.workflow, &step);
                finding.path = format!("{readable} (record {})", finding.path);
            }
        }
    }
}

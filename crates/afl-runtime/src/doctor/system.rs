//! Checks system tasks: each stands where its runner, the janitor or the collection looks for it, and has ended whole or not
//! at all.

use std::collections::BTreeSet;

use afl_engine::evaluation::Wants;
use afl_engine::event::Reception;
use afl_engine::id::{RunId, StepId};
use afl_store::store::bucket;

use super::{Finding, PAGE, Promise, Remedy, Repair, Report};
use crate::error::Error;
use crate::service::Service;
use crate::system::SystemTask;

impl Service {
    /// All that some bucket names: they are in no list of their own.
    pub(super) async fn examine_system_tasks(
        &self,
        report: &mut Report,
        remedy: Remedy,
    ) -> Result<(), Error> {
        let mut buckets = vec![bucket::TIMERS.to_owned(), bucket::ENDED.to_owned()];
        for prefix in [bucket::TASKS, bucket::RUNNING] {
            let all = self.store.buckets(prefix).await?;
            buckets.extend(all.into_iter().filter(|bucket| is_of_system(&bucket[prefix.len()..])));
        }
        let mut ids: BTreeSet<RunId> = BTreeSet::new();
        for bucket in buckets {
            let mut after = None;
            loop {
                let page = self.store.system_tasks_in(&bucket, after.as_ref(), PAGE).await?;
                ids.extend(page.ids);
                match page.next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
        }
        for id in ids {
            self.examine_system_task(report, &id, remedy).await?;
        }
        Ok(())
    }

    pub(super) async fn examine_system_task(
        &self,
        report: &mut Report,
        id: &RunId,
        remedy: Remedy,
    ) -> Result<(), Error> {
        report.system_tasks += 1;
        let mut findings = self.examine_records(id, remedy).await?;
        if findings.iter().all(|finding| finding.promise != Promise::FailStop) {
            findings.extend(self.ended_by_halves(id).await?);
        }
        report.findings.append(&mut findings);
        Ok(())
    }

    /// Task and event are settled in one commit, and one look reads both.
    async fn ended_by_halves(&self, id: &RunId) -> Result<Option<Finding>, Error> {
        let mut wants = Wants::default();
        wants.events.insert(StepId::root());
        wants.tasks.insert(StepId::root());
        let mut found = self.store.load(id, &wants).await?;
        let event = found.events.pop().and_then(|(_, event)| event);
        // It was deleted meanwhile.
        let Some(task) = found.tasks.pop().and_then(|(_, task)| task) else { return Ok(None) };
        let problem = match event.map(|event| event.item.reception) {
            None => "its event is missing".to_owned(),
            Some(reception) => {
                let is_open = match reception {
                    Reception::Open => true,
                    Reception::Arrived | Reception::Taken => false,
                };
                if is_open != task.item.state.is_terminal() {
                    return Ok(None);
                }
                format!("it is {}, but its event is not", task.item.state)
            }
        };
        let (promise, repair) = (Promise::Completion, Repair::ByHand);
        Ok(Some(Finding { promise, run: id.clone(), path: task.item.path, problem, repair }))
    }
}

/// By what stands behind the prefix of a bucket: a task list and a name.
fn is_of_system(end: &str) -> bool {
    let name = end.split_once('/').map(|(_, end)| bucket::name_and_needs(end).0);
    name.is_some_and(|name| name.parse::<SystemTask>().is_ok())
}

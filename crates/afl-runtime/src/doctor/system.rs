//! Checks system tasks: each stands where its runner, the janitor or the collection looks for it, and has ended whole
//! or not at all.

use afl_engine::evaluation::Wants;
use afl_engine::event::Reception;
use afl_engine::id::{RunId, StepId};

use super::{Finding, Promise, Remedy, Repair, Report};
use crate::error::Error;
use crate::service::Service;

impl Service {
    pub(super) async fn examine_system_task(
        &self,
        report: &mut Report,
        id: &RunId,
        remedy: Remedy,
    ) -> Result<(), Error> {
        report.system_tasks += 1;
        let (mut findings, _) = self.examine_records(id, remedy).await?;
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
                if (reception == Reception::Open) != task.item.state.is_terminal() {
                    return Ok(None);
                }
                format!("it is {}, but its event is not", task.item.state)
            }
        };
        let promise = Promise::Completion;
        Ok(Some(Finding::new(promise, id, &task.item.path, problem, Repair::ByHand)))
    }
}

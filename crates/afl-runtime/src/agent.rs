//! The verbs of agents on tasks. Every accepted outcome wakes the driver.

pub use afl_engine::event::{EventError, WorkEvidence};
use afl_engine::failure::FailureKind;
pub use afl_engine::history::{Actor, TaskEvent, TaskEventType};
use afl_engine::id::{RunId, StepId};
pub use afl_engine::policy::Effect;
pub use afl_engine::task::{DEFAULT_TASK_LIST, Task, TaskState, UNCERTAIN};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_store::queue::WorkOfStep;
pub use afl_store::queue::{
    Claim, ClaimRequest, ContinueResult, FacetFilter, HandlerMatch, LogLevel, LogLine, LogPage, LogStream,
    Refusal, SettleResult, SweepReport, Ticket, match_handler,
};

use crate::drive::{Arrival, RunWork};
use crate::error::{Error, InvalidRequest};
use crate::serve::Wake;
use crate::service::Service;

impl Service {
    /// Hands out up to `max` tasks, the most urgent first.
    pub async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claim>, Error> {
        let claims = self.queue.claim(request).await?;
        if !claims.is_empty() {
            self.wake(Wake::Claimed);
        }
        Ok(claims)
    }

    /// Whether the last claim of this owner left tasks because as many of their facet run as their `Limit` allows.
    pub fn was_turned_away(&self, owner: &str) -> bool {
        self.queue.was_turned_away(owner)
    }

    /// The holder is alive; it keeps the task until the returned time.
    pub async fn extend(&self, ticket: &Ticket, by: Millis) -> Result<Millis, Refusal> {
        self.queue.extend(ticket, by).await
    }

    /// Stores the result of the work in one durable commit. A second call with the same ticket changes nothing.
    pub async fn complete(
        &self,
        ticket: &Ticket,
        result: &Map<String, Value>,
    ) -> Result<SettleResult, Refusal> {
        let settled = self.queue.complete(ticket, result).await?;
        self.arrive(&ticket.run, &settled);
        Ok(settled)
    }

    /// The attempt failed: one durable commit. The declared retries decide what follows.
    pub async fn fail(&self, ticket: &Ticket, error: &EventError) -> Result<SettleResult, Refusal> {
        let settled = self.queue.fail(ticket, error).await?;
        self.arrive(&ticket.run, &settled);
        Ok(settled)
    }

    /// A part of the result, shown before the end (document 000 §8.9).
    pub async fn update(&self, ticket: &Ticket, partial: &Map<String, Value>) -> Result<(), Refusal> {
        self.queue.update(ticket, partial).await
    }

    /// Lines of the attempt's log, numbered by the holder: sending them again does no harm.
    pub async fn log(&self, ticket: &Ticket, number: u64, lines: Vec<LogLine>) -> Result<(), Refusal> {
        self.queue.log(ticket, number, lines).await
    }

    /// The log of a step's task, over all attempts, after a page of it.
    pub async fn task_log(
        &self,
        run: &RunId,
        step: &StepId,
        after: Option<&LogPage>,
    ) -> Result<Vec<LogPage>, Error> {
        let after = after.map(|page| (page.token, page.number));
        Ok(self.queue.log_after(run, step, after).await?)
    }

    /// Gives a task back undone.
    pub async fn release(&self, ticket: &Ticket) -> Result<SettleResult, Refusal> {
        self.queue.release(ticket, None).await
    }

    /// Gives a task back undone; no agent can claim it before this time.
    pub async fn put_off(&self, ticket: &Ticket, until: Millis) -> Result<SettleResult, Refusal> {
        self.queue.release(ticket, Some(until)).await
    }

    /// Continues a step without a claim (document 000 §6.3): a no-op past its event, refused before it.
    pub async fn continue_step(
        &self,
        run: &RunId,
        step: &StepId,
        result: &Map<String, Value>,
    ) -> Result<ContinueResult, Refusal> {
        self.settle_step(run, step, WorkOfStep::Event, Ok(result)).await
    }

    /// Fails a step without a claim (document 000 §6.2).
    pub async fn fail_step(
        &self,
        run: &RunId,
        step: &StepId,
        error: &EventError,
    ) -> Result<ContinueResult, Refusal> {
        self.settle_step(run, step, WorkOfStep::Event, Err(error)).await
    }

    /// Completes a step with an empty result, if no agent has begun its work.
    pub async fn skip(&self, run: &RunId, step: &StepId) -> Result<(), Error> {
        let item = self.existing(run).await?.item;
        let task = self.store.task(run, step).await?;
        if let Some(task) = task.filter(|task| task.item.state == TaskState::Pending) {
            let lacks = self.plan_of(&item).await?.must_return(&task.item.name);
            if !lacks.is_empty() {
                return Err(InvalidRequest::NeedsResult {
                    run: run.clone(),
                    path: task.item.path.clone(),
                    lacks,
                }
                .into());
            }
        }
        let settled = self.queue.skip(run, step, &self.actor).await?;
        self.arrive(run, &settled);
        Ok(())
    }

    /// Revokes the lease of an open task, and lets its step fail as canceled.
    pub async fn cancel_task(&self, run: &RunId, step: &StepId) -> Result<(), Error> {
        let message = "canceled by an operator".to_owned();
        let error = EventError::new(FailureKind::Canceled.name(), message);
        let settled = self.queue.cancel(run, step, &error, &self.actor).await?;
        self.arrive(run, &settled);
        Ok(())
    }

    /// One round of the janitor: silent holders, due retries, tasks that were put aside. Safe for many at once.
    pub async fn sweep_once(&self) -> Result<SweepReport, Error> {
        let swept = self.queue.sweep_once().await?;
        for (run, step) in &swept.arrived {
            self.wake(Wake::Arrived(RunWork::of_step(run, step)));
        }
        Ok(swept)
    }

    pub(crate) async fn settle_step(
        &self,
        run: &RunId,
        step: &StepId,
        work: WorkOfStep,
        outcome: Result<&Map<String, Value>, &EventError>,
    ) -> Result<ContinueResult, Refusal> {
        let continued = self.queue.continue_step(run, step, work, outcome, &self.actor).await?;
        match &continued {
            ContinueResult::Now(settled) => self.arrive(run, settled),
            ContinueResult::Before => {}
        }
        Ok(continued)
    }

    fn arrive(&self, run: &RunId, settled: &SettleResult) {
        match settled {
            // No run waits for the outcome of a system task.
            SettleResult::Arrived(_) if !run.is_run() => {}
            SettleResult::Arrived(event) => {
                let arrival = Arrival { step: event.item.step_id.clone(), event: Some((**event).clone()) };
                self.wake(Wake::Arrived(RunWork { run: run.clone(), arrivals: vec![arrival] }));
            }
            SettleResult::Again { .. } | SettleResult::Repeated => {}
        }
    }
}

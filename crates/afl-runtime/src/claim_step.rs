//! For agents that serve one run and must leave the tasks of others alone.

use afl_engine::id::{RunId, StepId};
use afl_engine::task::Task;
use afl_store::queue::{Asked, ClaimRequest};
use afl_store::store::StepPage;

use crate::error::Error;
use crate::service::Service;

impl Service {
    /// Hands out the task of one step, if it may be handed out now to who asks.
    pub async fn claim_step(
        &self,
        run: &RunId,
        step: &StepId,
        request: &ClaimRequest,
    ) -> Result<Asked, Error> {
        Ok(self.queue.claim_step(run, step, request).await?)
    }

    /// A page of a run's tasks, in the order of its program.
    pub async fn tasks_page(
        &self,
        run: &RunId,
        after: Option<&StepId>,
        limit: usize,
    ) -> Result<StepPage<Task>, Error> {
        Ok(self.store.tasks_page(run, after, limit).await?)
    }
}

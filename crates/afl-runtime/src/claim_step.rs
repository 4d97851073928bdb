//! For agents that serve one run and must leave the tasks of others alone.

use afl_engine::id::{RunId, StepId};
use afl_engine::time::Millis;
use afl_store::queue::Claim;

use crate::error::Error;
use crate::service::Service;

impl Service {
    /// Hands out the task of one step, if it may be handed out now.
    pub async fn claim_step(
        &self,
        run: &RunId,
        step: &StepId,
        owner: &str,
        lease: Millis,
    ) -> Result<Option<Claim>, Error> {
        Ok(self.queue.claim_step(run, step, owner, lease).await?)
    }
}

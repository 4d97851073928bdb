//! Claims the task of one step, for an agent that serves a single run.

use afl_engine::id::{RunId, StepId};
use afl_engine::policy::Effect;
use afl_engine::task::{Lease, Task, TaskKind, TaskState};

use super::claim::{claimed, goes_on};
use super::{Claim, Queue, Refusal, Request};
use crate::backend::Durability;
use crate::store::{Error, Stored, bucket, event_record, run_record};

impl Queue {
    /// The task, if it may be handed out now to who asks; nothing when it may not, somebody else was faster, or as many
    /// of its facet run as its `Limit` allows. It is named, so the lists that are asked for do not matter.
    pub async fn claim_step(
        &self,
        run: &RunId,
        step: &StepId,
        request: &Request,
    ) -> Result<Option<Claim>, Error> {
        let Some(task) = self.store.task(run, step).await? else { return Ok(None) };
        let now = self.store.now().await?;
        let is_due = task.item.not_before.is_none_or(|at| at <= now);
        if task.item.state != TaskState::Pending || !is_due || !request.admits_task(&task.item, now) {
            return Ok(None);
        }
        if self.running_beyond(&task.item, 1).await? {
            return Ok(None);
        }
        let keys = [run_record(), event_record(step)].map(|id| self.store.run_key(run, id));
        let found = self.store.backend().get(&keys).await?;
        let [of_run, event] = &found[..] else { unreachable!("the run and the event were asked for") };
        let goes_on = match (task.item.kind(), of_run) {
            (TaskKind::System, _) => true,
            (TaskKind::Event, Some(run)) => goes_on(run)?,
            (TaskKind::Event, None) => false,
        };
        if !goes_on {
            return Ok(None);
        }
        let Some(payload) = self.payload(&task.item, event.as_ref()).await? else { return Ok(None) };
        let secret = self.entropy.secret();
        let (owner, expires) = (request.owner.clone(), now.plus(request.lease));
        let lease = Lease { owner, secret, expires, heartbeat: now };
        let handler = request.names.handler(&task.item.name);
        let claimed = Stored { item: claimed(task.item, lease, &handler, now), version: task.version };
        let write = self.store.update(run, &claimed, now);
        let durability = match claimed.item.policy.effect {
            Some(Effect::Once) => Durability::Durable,
            Some(Effect::Idempotent | Effect::Pure) | None => Durability::Relaxed,
        };
        match self.store.write(vec![write], durability).await.map_err(Error::from) {
            Ok(()) => {}
            Err(error) if error.is_conflict() => return Ok(None),
            Err(error) => return Err(error),
        }
        let beyond = self.running_beyond(&claimed.item, 0).await?;
        let claim = Claim::new(claimed.item, payload);
        if !beyond {
            return Ok(Some(claim));
        }
        // Another was claimed at the same time: who sees too many gives back, so that never too many are handed out.
        match self.release(&claim.ticket).await {
            Ok(_) | Err(Refusal::LeaseLost { .. } | Refusal::Canceled { .. }) => Ok(None),
            Err(Refusal::Store(error)) => Err(error),
            Err(refusal) => unreachable!("the ticket of a claim just made: {refusal}"),
        }
    }

    /// Whether more run than the task's limit allows when `others` are added.
    async fn running_beyond(&self, task: &Task, others: usize) -> Result<bool, Error> {
        let Some(limit) = task.policy.limit.map(|limit| limit as usize) else { return Ok(false) };
        let running = bucket::running(&task.task_list_name, &task.name);
        Ok(self.store.count(&running, limit + 1).await? + others > limit)
    }
}

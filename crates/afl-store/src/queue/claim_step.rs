//! Claims the task of one step, for an agent that serves a single run.

use std::sync::Arc;

use afl_engine::id::{RunId, StepId};
use afl_engine::policy::Effect;
use afl_engine::task::{Lease, Task, TaskKind, TaskState};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};

use super::claim::{claimed, goes_on};
use super::{Claim, ClaimRequest, Queue};
use crate::backend::{AlsoRead, BucketCursor, Decide, Decision, Durability, MaxInBucket, Ranks, Take};
use crate::entropy::Entropy;
use crate::record::Key;
use crate::store::{Error, Stored, bucket, decode, encode, event_record, place_of, run_record, task_record};

/// What came of asking for the task of a step.
#[derive(Clone, PartialEq, Debug)]
pub enum Asked {
    Given(Box<Claim>),
    /// As many of its facet run as its `Limit` allows: it is worth asking again.
    Full,
    /// It may not be handed out to who asks, or somebody else was faster.
    NotGiven,
}

impl Asked {
    pub fn claim(self) -> Option<Claim> {
        match self {
            Self::Given(claim) => Some(*claim),
            Self::Full | Self::NotGiven => None,
        }
    }
}

impl Queue {
    /// The task, if it may be handed out now to who asks. It is named, so the lists that are asked for do not matter.
    pub async fn claim_step(
        &self,
        run: &RunId,
        step: &StepId,
        request: &ClaimRequest,
    ) -> Result<Asked, Error> {
        let Some(task) = self.store.task(run, step).await? else { return Ok(Asked::NotGiven) };
        let now = self.store.now().await?;
        let is_due = task.item.not_before.is_none_or(|at| at <= now);
        if task.item.state != TaskState::Pending || !is_due || !request.admits_task(&task.item, now) {
            return Ok(Asked::NotGiven);
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
            return Ok(Asked::NotGiven);
        }
        let Some(payload) = self.payload(&task.item, event.as_ref()).await? else {
            return Ok(Asked::NotGiven);
        };
        match task.item.policy.limit {
            None => self.claim_unlimited(task, payload, request, now).await,
            Some(limit) => self.claim_limited(&task, limit, payload, request).await,
        }
    }

    async fn claim_unlimited(
        &self,
        task: Stored<Task>,
        payload: Map<String, Value>,
        request: &ClaimRequest,
        now: Millis,
    ) -> Result<Asked, Error> {
        let (run, durability) = (task.item.workflow_id.clone(), durability(&task.item));
        let item = claimed_for(request, task.item, &self.entropy, now);
        let write = self.store.update(&run, &Stored { item: item.clone(), version: task.version }, now);
        match self.store.write(vec![write], durability).await.map_err(Error::from) {
            Ok(()) => Ok(Asked::Given(Box::new(Claim::new(item, payload)))),
            Err(error) if error.is_conflict() => Ok(Asked::NotGiven),
            Err(error) => Err(error),
        }
    }

    /// By a take, which counts those that run and moves the task in one go, however many others do the same.
    async fn claim_limited(
        &self,
        task: &Stored<Task>,
        limit: u32,
        payload: Map<String, Value>,
        request: &ClaimRequest,
    ) -> Result<Asked, Error> {
        let Task { workflow_id: run, step_id: step, .. } = &task.item;
        let place = place_of(&task.item).expect("a pending task has a place");
        let own = self.store.run_key(run, task_record(step));
        // Short of the task, so that few others are looked at.
        let before = own.id[..own.id.len() - 1].to_owned();
        let max_in_bucket = bucket::running(&task.item.task_list_name, &task.item.name);
        let take = Take {
            tenant: own.tenant.clone(),
            bucket: place.bucket,
            ranks: Ranks::UpTo(place.rank),
            after: Some(BucketCursor { rank: place.rank, scope: Arc::clone(&own.scope), id: before }),
            limit: 1,
            max_in_bucket: Some(MaxInBucket { bucket: max_in_bucket, max: limit as usize }),
            durability: durability(&task.item),
            decide: self.mover_of(own, request),
            also_read: AlsoRead::Nothing,
        };
        let taken = self.store.backend().take(take).await?;
        if let Some(moved) = taken.moved.first() {
            let task = decode::<Task>(moved)?.item;
            return Ok(Asked::Given(Box::new(Claim::new(task, payload))));
        }
        let is_there = self.store.task(run, step).await?.is_some_and(|found| found.version == task.version);
        Ok(if is_there { Asked::Full } else { Asked::NotGiven })
    }

    /// Moves this one task only.
    fn mover_of(&self, own: Key, request: &ClaimRequest) -> Decide {
        let (entropy, request) = (self.entropy.clone(), request.clone());
        Arc::new(move |record, now| {
            if record.key != own {
                return Decision::Leave;
            }
            let Ok(Stored { item: task, .. }) = decode::<Task>(record) else { return Decision::Leave };
            Decision::Move(encode(&record.key, &claimed_for(&request, task, &entropy, now), now))
        })
    }
}

fn claimed_for(request: &ClaimRequest, task: Task, entropy: &Entropy, now: Millis) -> Task {
    let lease = Lease {
        owner: request.owner.clone(),
        secret: entropy.secret(),
        expires: now.plus(request.lease),
        heartbeat: now,
    };
    let handler = request.names.handler(&task.name);
    claimed(task, lease, &handler, now)
}

/// Whether work was begun that may be done once only must outlive a power cut, or it would be begun twice.
fn durability(task: &Task) -> Durability {
    match task.policy.effect {
        Some(Effect::Once) => Durability::Durable,
        Some(Effect::Idempotent | Effect::Pure) | None => Durability::Relaxed,
    }
}

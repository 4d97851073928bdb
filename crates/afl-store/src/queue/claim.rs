//! Claims tasks: the most urgent first, each for one holder under a lease.
//!
//! **Problem.** Many agents claim at once, each only what it can do, within priorities, limits and turns. A claim must
//! cost the same whatever waits, and a task must have one holder even when agents and the store fail.
//!
//! **Approach.** The name of a bucket says everything that holds for all its tasks: list, facet, limit, whether the work
//! may be done once only, needed capabilities, desired server. So a claim reads the heads of its lists, drops the
//! buckets that it does not serve, and takes once from each bucket in the order of [`ClaimOrder`](super::claim_order).
//! A take is one atomic step of the backend: it chooses, counts running tasks, and writes the leases, and it returns
//! the events and runs beside the tasks. Heads are cached while no task arrives ([`HeadCache`](super::head_cache)).
//!
//! Tasks whose run is held or unreadable are put aside. When the store fails, the claim returns the tasks that it has:
//! no other agent would do them before their leases end.
//!
//! **Rejected.** Buckets for facets alone, with a take for each combination of limit and durability in them: a take
//! had to stop at the first task of another combination, report it, and begin again, up to eight times. It cost a
//! second take whenever a limited facet was met first, and most of the code here.
//!
//! **Measured** by `cargo xtask bench`: with 64 runs of one event in flight, a run reads SQLite 1.25 times in all, and a
//! claim is one of its three commits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use afl_engine::event::{Event, Payload};
use afl_engine::history::Actor;
use afl_engine::id::RunId;
use afl_engine::run::{Control, Run};
use afl_engine::task::{Authority, Lease, Move, Requeue, Task, TaskKind, TaskState};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};

use super::claim_order::{OpenBucket, PriorityBand};
use super::head_cache::CachedHeads;
use super::request::claim_durability;
use super::{ClaimRequest, Queue, Ticket};
use crate::backend::{BucketCursor, Decide, Decision, Durability, Head, Ranks, Take, TakeMoment, TakeResult};
use crate::conflict::unless_overtaken;
use crate::record::{Key, Record};
use crate::store::{
    Error, StoredRecord, TaskBucket, bucket, decode, encode, event_beside, place_of, run_record, task_record,
    urgency,
};

/// A task in the hands of an agent.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    pub ticket: Ticket,
    pub task: Task,
    pub payload: Map<String, Value>,
    pub expires: Millis,
}

impl Claim {
    /// The same for every attempt, so that an external system recognizes a repetition.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}", self.ticket.run, self.ticket.step)
    }
}

/// Where the heads of a claim come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HeadsFrom {
    Cache,
    Store,
}

impl Queue {
    /// Claims up to `max` tasks; none when none is there. A task that arrives meanwhile is for the next claim.
    pub async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claim>, Error> {
        let mut claims = Vec::new();
        if let Err(error) = self.claim_into(request, &mut claims).await {
            self.order().heads.clear();
            if claims.is_empty() {
                return Err(error);
            }
        }
        claims.sort_by_cached_key(|claim| urgency(&claim.task));
        Ok(claims)
    }

    async fn claim_into(&self, request: &ClaimRequest, claims: &mut Vec<Claim>) -> Result<(), Error> {
        if request.max == 0 {
            return Ok(());
        }
        if let Some(task) = &request.task {
            return self.claim_named(request, task, claims).await;
        }
        self.order().turned_away.remove(&request.owner);
        if let Some(open) = self.guess(request) {
            self.take(request, &open, Ranks::All, request.max, claims).await?;
            if !claims.is_empty() {
                self.order().guessed();
                return Ok(());
            }
        }
        if let Some(open) = self.open_by_cache(request).await? {
            self.claim_open(request, open, HeadsFrom::Cache, claims).await?;
        }
        if claims.len() < request.max {
            let open = self.open_by_store(request).await?;
            self.claim_open(request, open, HeadsFrom::Store, claims).await?;
        }
        Ok(())
    }

    /// Claims one task by its key. The caller knows the task's position in the queue, so the take begins right before it
    /// and ends with it: it reads no task of another run, however many wait. Nothing is claimed when the task has moved
    /// since the caller read it, or when its limit leaves no room.
    async fn claim_named(
        &self,
        request: &ClaimRequest,
        task: &Task,
        claims: &mut Vec<Claim>,
    ) -> Result<(), Error> {
        let Some(position) = place_of(task).filter(|_| task.state == TaskState::Pending) else {
            return Ok(());
        };
        let rank = position.rank;
        let queue = Head { bucket: TaskBucket::of(task), rank };
        let Some(open) = request.open_one(&task.task_list_name, &queue) else { return Ok(()) };
        // A retry that is due is taken from the timers.
        let open = OpenBucket { head: Head { bucket: position.bucket, rank }, ..open };
        let key = self.store.run_key(&task.workflow_id, task_record(&task.step_id));
        let after = BucketCursor { rank, scope: key.scope.clone(), id: last_before(&key.id) };
        let take = self.take_of(request, &open, Ranks::UpTo(rank));
        let decide = only(key, take.decide);
        let taken = self.store.backend().take(Take { limit: 1, after: Some(after), decide, ..take }).await?;
        self.hand_out(taken, claims).await
    }

    fn guess(&self, request: &ClaimRequest) -> Option<OpenBucket> {
        let head = self.order().guess(&request.owner)?;
        request.lists.iter().find_map(|list| request.open_one(list, &head))
    }

    /// The buckets to claim from, if the cache has the heads of all lists.
    async fn open_by_cache(&self, request: &ClaimRequest) -> Result<Option<Vec<OpenBucket>>, Error> {
        let now = self.store.now().await?;
        let order = self.order();
        let open = |list: &String| Some(request.open(list, order.heads.get(list, now)?));
        Ok(request.lists.iter().map(open).collect::<Option<Vec<_>>>().map(|open| open.concat()))
    }

    async fn open_by_store(&self, request: &ClaimRequest) -> Result<Vec<OpenBucket>, Error> {
        let mut open = Vec::new();
        for list in &request.lists {
            let prefix = bucket::tasks(list, "");
            // Made before the read, so that a task that arrives during the read invalidates it.
            let (watch, read) = (self.store.watch(&prefix), self.store.now().await?);
            let heads = self.store.heads(&prefix).await?;
            open.extend(request.open(list, &heads));
            self.order().read(list, CachedHeads { watch, read, heads });
        }
        if open.is_empty() {
            self.order().idle = Some(request.owner.clone());
        }
        Ok(open)
    }

    /// Gives each bucket an equal share of the wanted tasks, and what some leave to the others.
    async fn claim_open(
        &self,
        request: &ClaimRequest,
        open: Vec<OpenBucket>,
        from: HeadsFrom,
        claims: &mut Vec<Claim>,
    ) -> Result<(), Error> {
        let before = claims.len();
        let bands = self.order().bands(open);
        for PriorityBand { mut buckets, ranks } in bands {
            if ranks == Ranks::All && claims.len() > before {
                break;
            }
            while !buckets.is_empty() {
                let mut more = Vec::new();
                for (nth, open) in buckets.iter().enumerate() {
                    let share = (request.max - claims.len()).div_ceil(buckets.len() - nth);
                    if share == 0 {
                        return Ok(());
                    }
                    let taken = self.take(request, open, ranks, share, claims).await?;
                    match from {
                        _ if taken == share => more.push(open.clone()),
                        // The cache is out of date.
                        HeadsFrom::Cache if !open.may_hold_back() => return Ok(()),
                        HeadsFrom::Store if taken == 0 && open.max_in_bucket.is_some() => {
                            self.order().turned_away.insert(request.owner.clone());
                        }
                        HeadsFrom::Cache | HeadsFrom::Store => {}
                    }
                }
                buckets = more;
            }
        }
        Ok(())
    }

    /// Takes up to `share` tasks off the head of a bucket, and says how many there were.
    async fn take(
        &self,
        request: &ClaimRequest,
        open: &OpenBucket,
        ranks: Ranks,
        share: usize,
        claims: &mut Vec<Claim>,
    ) -> Result<usize, Error> {
        let (before, mut count) = (claims.len(), 0);
        let mut after = Some(BucketCursor::before(open.head.rank));
        loop {
            let limit = share - count;
            let take = Take { limit, after: after.clone(), ..self.take_of(request, open, ranks) };
            let mut taken = self.store.backend().take(take).await?;
            count += taken.moved.len();
            let gave_up_at = taken.gave_up_at.take();
            self.hand_out(taken, claims).await?;
            // Unreadable tasks hide none behind them. Tasks that are left to another server will be free soon: they are
            // not worth the reads.
            if count == share || open.is_for_another || gave_up_at <= after {
                break;
            }
            after = gave_up_at;
        }
        let mut order = self.order();
        if count > 0 {
            order.served(&open.head.bucket);
        }
        match claims[before..].last() {
            Some(last) if count == share => order.heads.raise(&open.head, urgency(&last.task)),
            Some(_) | None if count < share && !open.may_hold_back() => order.heads.forget(&open.head.bucket),
            Some(_) | None => {}
        }
        Ok(count)
    }

    fn take_of(&self, request: &ClaimRequest, open: &OpenBucket, ranks: Ranks) -> Take {
        Take {
            tenant: self.store.tenant().clone(),
            bucket: open.head.bucket.clone(),
            ranks,
            after: None,
            limit: request.max,
            max_in_bucket: open.max_in_bucket.clone(),
            durability: open.durability,
            decide: self.decide(request, open),
            also_read: Some(Arc::new(events_and_runs)),
        }
    }

    fn decide(&self, request: &ClaimRequest, open: &OpenBucket) -> Decide {
        let (owner, server, lease) = (request.owner.clone(), request.server.clone(), request.lease);
        let (entropy, names) = (self.entropy.clone(), request.names.clone());
        let policies = (open.max_in_bucket.as_ref().map(|in_bucket| in_bucket.max), open.durability);
        Arc::new(move |record, TakeMoment { now, crashes }| {
            // An unreadable task is left where it is, for the doctor to find; so is one in a bucket of other policies.
            let Ok(StoredRecord { item: mut task, .. }) = decode::<Task>(record) else {
                return Decision::Leave;
            };
            let is_due = task.not_before.is_none_or(|at| at <= now);
            // Its timeout is about to fail it.
            let is_over = task.times_out.is_some_and(|at| at <= now);
            if !is_due
                || is_over
                || policies_of(&task) != policies
                || task.is_left_to_another(server.as_deref(), now)
            {
                return Decision::Leave;
            }
            let lease = Lease {
                owner: owner.clone(),
                secret: entropy.secret(),
                since: now,
                expires: now.plus(lease),
                heartbeat: now,
            };
            let claim = Move::Claim { lease, handler: &names.handler(&task.name), crashes };
            let by = Actor::Agent(owner.clone());
            // A task that may not be claimed is left where it is, for the doctor to find.
            let is_claimed = task.apply(claim, Authority::Actor(&by), now).is_ok();
            Decision::from(is_claimed.then(|| encode(&record.key, &task, now)))
        })
    }

    /// Adds taken tasks to the claims, with their payloads. Those of a run that is held or cannot be read are put aside.
    async fn hand_out(&self, taken: TakeResult, claims: &mut Vec<Claim>) -> Result<(), Error> {
        let tasks = taken.moved.iter().map(decode::<Task>).collect::<Result<Vec<_>, _>>()?;
        let (events, runs) = taken.also_read.split_at(tasks.len());
        let going = runs.iter().flatten().filter(|run| matches!(goes_on(run), Ok(true)));
        let going: BTreeSet<&str> = going.map(|run| &*run.key.scope).collect();
        for (task, event) in tasks.into_iter().zip(events) {
            let goes_on = task.item.kind() == TaskKind::System || going.contains(&*task.item.workflow_id.0);
            let Some(event) = event.as_ref().filter(|_| goes_on) else {
                self.put_aside(task).await?;
                continue;
            };
            match self.payload(&task.item, event).await {
                Ok(payload) => claims.push(Claim::new(task.item, payload)),
                Err(error) if error.is_damage() => self.put_aside(task).await?,
                // The others come back with the end of their leases.
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The payload of a task, by its event.
    async fn payload(&self, task: &Task, event: &Record) -> Result<Map<String, Value>, Error> {
        let event = decode::<Event>(event)?.item;
        self.whole_payload(&task.workflow_id, &event.payload, &task.path).await
    }

    /// The values of a payload, the large ones included.
    pub async fn whole_payload(
        &self,
        run: &RunId,
        payload: &Payload,
        path: &str,
    ) -> Result<Map<String, Value>, Error> {
        let mut whole = Map::new();
        for (name, held) in payload {
            let value = self.store.value(run, held, || format!("{name} of {path}")).await?;
            whole.insert(name.clone(), value);
        }
        Ok(whole)
    }

    /// Takes a claim back before it is returned; `resume` and the sweep bring the task back to its queue.
    async fn put_aside(&self, mut task: StoredRecord<Task>) -> Result<(), Error> {
        let now = self.store.now().await?;
        let unclaim = Move::Requeue(Requeue::Unclaim { cause: "its run does not go on" });
        task.item
            .apply(unclaim, Authority::Actor(&Actor::System), now)
            .expect("a task that was claimed a moment ago is running");
        let write = self.store.aside(&task, now);
        // A concurrent writer of the task has decided what follows.
        unless_overtaken(self.store.write(vec![write], Durability::Relaxed).await)?;
        Ok(())
    }
}

/// An id right before this one: step ids are of letters and digits, which all come before `~`.
fn last_before(id: &str) -> String {
    let last = id.as_bytes().last().expect("a record's id is not empty");
    format!("{}{}~", &id[..id.len() - 1], char::from(last - 1))
}

/// Decides about the record of this key alone.
fn only(key: Key, decide: Decide) -> Decide {
    Arc::new(move |record, moment| if record.key == key { decide(record, moment) } else { Decision::Stop })
}

/// The policies by which tasks are kept apart in buckets: the limit and the durability of a take.
fn policies_of(task: &Task) -> (Option<usize>, Durability) {
    (task.policy.limit.map(|limit| limit as usize), claim_durability(task.policy.effect))
}

/// Whether the tasks of this run may be done now.
fn goes_on(run: &Record) -> Result<bool, Error> {
    let run = decode::<Run>(run)?.item;
    Ok(run.control == Control::Go && !run.status.is_terminal())
}

/// The events of the tasks in their order, then their runs.
fn events_and_runs(tasks: &[Record]) -> Vec<Key> {
    let event = |task: &Record| Key { id: event_beside(&task.key.id), ..task.key.clone() };
    let runs: BTreeMap<&str, &Record> = tasks.iter().map(|task| (&*task.key.scope, task)).collect();
    let run = |task: &Record| Key { id: run_record(), ..task.key.clone() };
    tasks.iter().map(event).chain(runs.into_values().map(run)).collect()
}

impl Claim {
    fn new(task: Task, payload: Map<String, Value>) -> Self {
        let lease = task.lease.as_ref().expect("a claimed task has a lease");
        let expires = lease.expires;
        let ticket = Ticket {
            run: task.workflow_id.clone(),
            step: task.step_id.clone(),
            token: task.token,
            secret: lease.secret.clone(),
        };
        Self { ticket, task, payload, expires }
    }
}

//! Hands out tasks: the most urgent first, each to one holder under a lease.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use afl_engine::event::{Event, Payload};
use afl_engine::history::Actor;
use afl_engine::id::RunId;
use afl_engine::policy::Effect;
use afl_engine::run::{Control, Run};
use afl_engine::task::{Authority, Lease, Move, Requeue, Task, TaskKind, TaskState};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};

use super::claim_order::{PriorityBand, TakeReport, TaskClass};
use super::head_cache::OpenBucket;
use super::{ClaimRequest, Queue, Ticket};
use crate::backend::{
    AlsoRead, BucketCursor, Decide, Decision, Durability, MaxInBucket, Ranks, Take, TakeResult,
};
use crate::record::{Key, Record};
use crate::store::{
    Error, Stored, bucket, decode, encode, event_beside, place_of, run_record, task_record, urgency,
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
    /// The same for every attempt, so that a system outside can tell a repetition.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}", self.ticket.run, self.ticket.step)
    }
}

/// How often a take is made again for tasks of one facet with different policies, which are taken apart.
const CLASSES: usize = 8;

impl Queue {
    /// Hands out up to `max` tasks; none when none is there. One look says where tasks wait, unless that is known or can
    /// be guessed; what comes during the claim is for the next one.
    pub async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Claim>, Error> {
        let mut claims = Vec::new();
        if request.max == 0 {
            return Ok(claims);
        }
        if let Some(task) = &request.task {
            return self.claim_named(request, task).await;
        }
        self.order.asks(&request.owner);
        if let Some(bucket) = self.order.guess(&request.owner).filter(|bucket| request.admits_bucket(bucket))
        {
            let open = OpenBucket::guessed(bucket);
            claims = self.take(request, &open, Ranks::All, request.max).await?.claims;
            if !claims.is_empty() {
                self.order.guessed();
                return Ok(claims);
            }
        }
        if let Some(known) = self.known_for(request).await? {
            self.claim_open(request, known, HeadsFrom::Known, &mut claims).await?;
        }
        if claims.len() < request.max {
            match self.open_for(request).await {
                Ok(open) => self.claim_open(request, open, HeadsFrom::New, &mut claims).await?,
                Err(error) if claims.is_empty() => return Err(error),
                // Nobody else would do what is in hand before the end of its lease.
                Err(_) => {}
            }
        }
        claims.sort_by_cached_key(|claim| urgency(&claim.task));
        Ok(claims)
    }

    /// Claims one task by its key. The caller knows the task's position in the queue, so the take begins right before it
    /// and ends with it: it reads no task of another run, however many wait. Nothing comes back when the task has moved
    /// since the caller read it, or when its limit leaves no room.
    async fn claim_named(&self, request: &ClaimRequest, task: &Task) -> Result<Vec<Claim>, Error> {
        let now = self.store.now().await?;
        let is_wanted = task.state == TaskState::Pending && request.admits_task(task, now);
        let Some(position) = place_of(task).filter(|_| is_wanted) else { return Ok(Vec::new()) };
        let key = self.store.run_key(&task.workflow_id, task_record(&task.step_id));
        let after = BucketCursor { rank: position.rank, scope: key.scope.clone(), id: last_before(&key.id) };
        let request = ClaimRequest { lists: vec![task.task_list_name.to_string()], ..request.clone() };
        let (ranks, report) = (Ranks::UpTo(position.rank), TakeReport::nothing());
        let take = self.take_of(&request, &position.bucket, ranks, TaskClass::of(task), &report);
        let decide = only(key, take.decide);
        let take = Take { limit: 1, after: Some(after), decide, ..take };
        let taken = self.store.backend().take(take).await?;
        self.hand_out(taken).await
    }

    /// The buckets that may hold what is asked for, if that is known for all lists.
    async fn known_for(&self, request: &ClaimRequest) -> Result<Option<Vec<OpenBucket>>, Error> {
        let now = self.store.now().await?;
        let known = request.lists.iter().map(|list| {
            let prefix = bucket::tasks(list, "");
            Some(request.admitted(&prefix, self.order.known(&prefix, now)?))
        });
        Ok(known.collect::<Option<Vec<_>>>().map(|known| known.concat()))
    }

    /// The buckets that may hold what is asked for, by a look.
    async fn open_for(&self, request: &ClaimRequest) -> Result<Vec<OpenBucket>, Error> {
        let mut open = Vec::new();
        for list in &request.lists {
            let prefix = bucket::tasks(list, "");
            let watch = self.order.has_backlog(&prefix).then(|| self.store.watch(&prefix));
            let found = self.order.looked(&prefix, watch, self.store.heads(&prefix).await?);
            open.extend(request.admitted(&prefix, found));
        }
        if open.is_empty() {
            self.order.nothing_waits(&request.owner);
        }
        Ok(open)
    }

    async fn claim_open(
        &self,
        request: &ClaimRequest,
        open: Vec<OpenBucket>,
        sight: HeadsFrom,
        claims: &mut Vec<Claim>,
    ) -> Result<(), Error> {
        let before = claims.len();
        for band in self.order.bands(open) {
            if claims.len() == request.max || (band.ranks == Ranks::All && claims.len() > before) {
                break;
            }
            if self.claim_band(request, band, sight, claims).await?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Gives each bucket an equal share of what is wanted, and what one leaves to the others. A store that fails does
    /// not take back what is in hand already.
    async fn claim_band(
        &self,
        request: &ClaimRequest,
        mut band: PriorityBand,
        sight: HeadsFrom,
        claims: &mut Vec<Claim>,
    ) -> Result<ControlFlow<()>, Error> {
        while !band.buckets.is_empty() {
            let mut more = Vec::new();
            let buckets = band.buckets.len();
            for (nth, open) in band.buckets.into_iter().enumerate() {
                let wanted = request.max - claims.len();
                if wanted == 0 {
                    return Ok(ControlFlow::Break(()));
                }
                let share = wanted.div_ceil(buckets - nth);
                let taken = match self.take(request, &open, band.ranks, share).await {
                    Err(_) if !claims.is_empty() => return Ok(ControlFlow::Break(())),
                    taken => taken?,
                };
                claims.extend(taken.claims);
                if taken.is_exhausted && sight == HeadsFrom::Known {
                    return Ok(ControlFlow::Break(()));
                }
                if taken.count == share {
                    more.push(open);
                }
            }
            band.buckets = more;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Takes tasks off the head of a bucket, and notes what that says of it.
    async fn take(
        &self,
        request: &ClaimRequest,
        open: &OpenBucket,
        ranks: Ranks,
        share: usize,
    ) -> Result<HandedOut, Error> {
        let taken = self.take_classes(request, open, ranks, share).await;
        match &taken {
            Ok(HandedOut { count, claims, is_exhausted }) => {
                if *count > 0 {
                    self.order.took_from(&open.bucket);
                }
                match claims.last() {
                    Some(Claim { task, .. }) if *count == share => {
                        self.order.filled(open, urgency(task), task.updated);
                    }
                    Some(_) | None if *is_exhausted => self.order.emptied(open),
                    Some(_) | None => {}
                }
            }
            Err(_) => self.order.emptied(open),
        }
        taken
    }

    /// Those of one class in one go.
    async fn take_classes(
        &self,
        request: &ClaimRequest,
        open: &OpenBucket,
        ranks: Ranks,
        share: usize,
    ) -> Result<HandedOut, Error> {
        let bucket = open.bucket.as_str();
        let mut all = HandedOut::default();
        let mut after = BucketCursor::before(open.rank);
        let mut class = self.order.class(bucket);
        // Whose limit let nothing be looked at.
        let mut full = None;
        let mut classes = 0;
        while classes < CLASSES {
            let report = TakeReport::nothing();
            let take = self.take_of(request, bucket, ranks, class, &report);
            let take = Take { limit: share - all.count, after: Some(after.clone()), ..take };
            let taken = match self.store.backend().take(take).await {
                Err(_) if all.count > 0 => break,
                taken => taken?,
            };
            let count = taken.moved.len();
            all.count += count;
            let gave_up_at = taken.gave_up_at.clone();
            match self.hand_out(taken).await {
                Err(_) if !all.claims.is_empty() => break,
                claims => all.claims.extend(claims?),
            }
            let is_short = all.count < share && !report.has_some_for_another();
            all.is_exhausted = is_short && class.limit.is_none();
            match gave_up_at {
                // Behind what cannot be read; what is left to another will be free, and is not worth the way.
                Some(mark) if is_short && mark > after => {
                    after = mark;
                    continue;
                }
                Some(_) | None => {}
            }
            classes += 1;
            class = match report.stopped_at() {
                Some(other) if all.count < share => {
                    self.order.report(bucket, other);
                    if full == Some(other) {
                        self.order.turned_away(&request.owner);
                        break;
                    }
                    other
                }
                // The first task may be of another class by now.
                None if count == 0 && class.limit.is_some() => {
                    full = Some(class);
                    TaskClass::default()
                }
                Some(_) | None => break,
            };
        }
        all.is_exhausted &= full.is_none();
        Ok(all)
    }

    fn take_of(
        &self,
        request: &ClaimRequest,
        bucket: &str,
        ranks: Ranks,
        class: TaskClass,
        report: &TakeReport,
    ) -> Take {
        Take {
            tenant: self.store.tenant().clone(),
            bucket: bucket.to_owned(),
            ranks,
            after: None,
            limit: request.max,
            max_in_bucket: class
                .limit
                .map(|max| MaxInBucket { bucket: request.running_beside(bucket), max: max as usize }),
            durability: match class.effect {
                // Whether the work was begun must outlive a power cut, or it would be begun twice.
                Some(Effect::Once) => Durability::Durable,
                Some(Effect::Idempotent | Effect::Pure) | None => Durability::Relaxed,
            },
            decide: self.decide(request, class, report.clone()),
            also_read: AlsoRead::Keys(Arc::new(events_and_runs)),
        }
    }

    fn decide(&self, request: &ClaimRequest, class: TaskClass, report: TakeReport) -> Decide {
        let (owner, server, lease) = (request.owner.clone(), request.server.clone(), request.lease);
        let (entropy, names) = (self.entropy.clone(), request.names.clone());
        Arc::new(move |record, now| {
            // A damaged task is left where it is, for the doctor to find.
            let Ok(Stored { item: task, .. }) = decode::<Task>(record) else { return Decision::Leave };
            if task.not_before.is_some_and(|at| at > now) {
                return Decision::Leave;
            }
            if task.is_left_to_another(server.as_deref(), now) {
                report.one_for_another();
                return Decision::Leave;
            }
            let found = TaskClass::of(&task);
            if found != class {
                report.stop_at(found);
                return Decision::Stop;
            }
            let lease = Lease {
                owner: owner.clone(),
                secret: entropy.secret(),
                expires: now.plus(lease),
                heartbeat: now,
            };
            let handler = names.handler(&task.name);
            let task = claimed(task, lease, &handler, now);
            Decision::from(task.map(|task| encode(&record.key, &task, now)))
        })
    }

    /// Gives taken tasks their payload. Those of a run that is held or cannot be read are put aside.
    async fn hand_out(&self, taken: TakeResult) -> Result<Vec<Claim>, Error> {
        let tasks = taken.moved.iter().map(decode::<Task>).collect::<Result<Vec<_>, _>>()?;
        let (events, runs) = taken.also_read.split_at(tasks.len());
        let going = runs.iter().flatten().filter(|run| matches!(goes_on(run), Ok(true)));
        let going: BTreeSet<&str> = going.map(|run| &*run.key.scope).collect();
        let mut claims = Vec::with_capacity(tasks.len());
        for (task, event) in tasks.into_iter().zip(events) {
            let goes_on = task.item.kind() == TaskKind::System || going.contains(&*task.item.workflow_id.0);
            match self.handed_out(task, event.as_ref(), goes_on).await {
                Ok(claim) => claims.extend(claim),
                // The others come back with the end of their leases.
                Err(_) if !claims.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(claims)
    }

    async fn handed_out(
        &self,
        task: Stored<Task>,
        event: Option<&Record>,
        goes_on: bool,
    ) -> Result<Option<Claim>, Error> {
        if goes_on {
            match self.payload(&task.item, event).await {
                Ok(Some(payload)) => return Ok(Some(Claim::new(task.item, payload))),
                Ok(None) | Err(Error::Unreadable { .. } | Error::Shared { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.put_aside(task).await?;
        Ok(None)
    }

    /// What the task is about, by its event.
    async fn payload(
        &self,
        task: &Task,
        event: Option<&Record>,
    ) -> Result<Option<Map<String, Value>>, Error> {
        let Some(event) = event.map(decode::<Event>).transpose()? else { return Ok(None) };
        self.whole_payload(&task.workflow_id, &event.item.payload, &task.path).await.map(Some)
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

    /// Takes a claim back before anybody saw it; `resume` and the sweep bring the task back to its queue.
    async fn put_aside(&self, mut task: Stored<Task>) -> Result<(), Error> {
        let now = self.store.now().await?;
        let unclaim = Move::Requeue(Requeue::Unclaim { cause: "its run does not go on" });
        task.item
            .apply(unclaim, Authority::Actor(&Actor::System), now)
            .expect("a task that was claimed a moment ago is running");
        let write = self.store.aside(&task, now);
        match self.store.write(vec![write], Durability::Relaxed).await.map_err(Error::from) {
            Err(error) if !error.is_conflict() => Err(error),
            // Whoever changed it meanwhile decided what becomes of it.
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// An id right before this one: step ids are of letters and digits, which all come before `~`.
fn last_before(id: &str) -> String {
    let last = id.as_bytes().last().expect("a record's id is not empty");
    format!("{}{}~", &id[..id.len() - 1], char::from(last - 1))
}

/// Decides about the record of this key alone.
fn only(key: Key, decide: Decide) -> Decide {
    Arc::new(move |record, now| if record.key == key { decide(record, now) } else { Decision::Stop })
}

/// What came of some takes; not everything that was taken is handed out.
#[derive(Default)]
struct HandedOut {
    count: usize,
    claims: Vec<Claim>,
    /// Whether there was less than was wanted, for no other reason than that there is no more.
    is_exhausted: bool,
}

/// Where the buckets of a claim are known from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HeadsFrom {
    /// The first bucket with less than was wanted ends it: there is a look for what it does not know.
    Known,
    New,
}

/// Whether the run of this record wants its tasks done now.
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

/// `None` for a task that may not be claimed: it is left where it is, for the doctor to find.
fn claimed(mut task: Task, lease: Lease, handler: &str, now: Millis) -> Option<Task> {
    let by = Actor::Agent(lease.owner.clone());
    task.apply(Move::Claim { lease, handler }, Authority::Actor(&by), now).is_ok().then_some(task)
}

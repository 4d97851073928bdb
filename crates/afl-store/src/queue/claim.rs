//! Hands out tasks: the most urgent first, each to one holder under a lease.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afl_engine::event::{Event, Payload};
use afl_engine::id::RunId;
use afl_engine::policy::Effect;
use afl_engine::run::{Control, Run};
use afl_engine::task::{DEFAULT_TASK_LIST, Lease, Task, TaskKind, TaskState};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};

use super::{Queue, Ticket};
use crate::backend::{Ceiling, Durability, Mover, Order, Ranks, Take};
use crate::record::{Key, Record};
use crate::store::{Error, Stored, bucket, decode, encode, event_record, run_record};

/// What an agent asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    pub names: Names,
    pub lists: Vec<String>,
    pub max: usize,
    /// How long nobody else gets the task unless the holder extends.
    pub lease: Millis,
    pub owner: String,
}

impl Request {
    /// One task of the default list, under a lease of a minute.
    pub fn new(names: Names, owner: &str) -> Self {
        let lists = vec![DEFAULT_TASK_LIST.to_owned()];
        Self { names, lists, max: 1, lease: Millis(60_000), owner: owner.to_owned() }
    }
}

/// Which facets an agent can do. A name without a dot stands for the facet of that name in every namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Names {
    All,
    Only(Vec<String>),
}

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

/// How many takes a claim makes for each task it may hand out, at most: tasks of one facet with different
/// policies are taken apart.
const TAKES: usize = 8;

impl Queue {
    /// Hands out up to `max` tasks; none when none is there.
    pub async fn claim(&self, request: &Request) -> Result<Vec<Claim>, Error> {
        let mut claims = Vec::new();
        let mut buckets = self.open_buckets(request).await?;
        let mut classes: BTreeMap<String, Class> = BTreeMap::new();
        for _ in 0..request.max.saturating_mul(TAKES).max(TAKES) {
            let wanted = request.max - claims.len();
            let Some(turn) = self.next_turn(&mut buckets).await?.filter(|_| wanted > 0) else { break };
            let class = classes.get(&turn.bucket).copied().unwrap_or_default();
            let (taken, stopped) = self.take(request, &turn, class, wanted).await?;
            // A turn that ends before another's may come again; one that found nothing has nothing or no room.
            let over = taken.is_empty() || (turn.ranks == Ranks::All && taken.len() < wanted);
            claims.extend(self.hand_out(taken).await?);
            match stopped {
                Some(other) => {
                    classes.insert(turn.bucket, other);
                }
                None if over => buckets.retain(|bucket| *bucket != turn.bucket),
                None => {}
            }
        }
        Ok(claims)
    }

    /// The buckets that may hold what is asked for.
    async fn open_buckets(&self, request: &Request) -> Result<Vec<String>, Error> {
        if let (Names::Only(names), [list]) = (&request.names, &request.lists[..])
            && let [name] = &names[..]
            && name.contains('.')
        {
            return Ok(vec![bucket::tasks(list, name)]);
        }
        let mut open = Vec::new();
        for list in &request.lists {
            let prefix = bucket::tasks(list, "");
            let found = self.store.backend().buckets(self.store.tenant(), &prefix).await?;
            open.extend(found.into_iter().filter(|bucket| request.names.admit(&bucket[prefix.len()..])));
        }
        Ok(open)
    }

    /// The bucket whose first task is the most urgent, and how far it may be taken from before another's turn.
    async fn next_turn(&self, buckets: &mut Vec<String>) -> Result<Option<Turn>, Error> {
        if let [only] = &buckets[..] {
            return Ok(Some(Turn { bucket: only.clone(), ranks: Ranks::All }));
        }
        let mut heads = Vec::with_capacity(buckets.len());
        for bucket in std::mem::take(buckets) {
            let scan = self.store.bucket_scan(bucket.clone(), Order::Ascending, None, 1);
            let head = self.store.backend().scan(&scan).await?.pop();
            if let Some(place) = head.and_then(|record| record.content.place) {
                heads.push((place.rank, bucket));
            }
        }
        heads.sort();
        let turn = heads.first().map(|(_, bucket)| Turn {
            bucket: bucket.clone(),
            ranks: heads.get(1).map_or(Ranks::All, |(rank, _)| Ranks::UpTo(*rank)),
        });
        buckets.extend(heads.into_iter().map(|(_, bucket)| bucket));
        Ok(turn)
    }

    /// Takes tasks of one class off the head of a bucket; also the class of the one where it stopped.
    async fn take(
        &self,
        request: &Request,
        turn: &Turn,
        class: Class,
        limit: usize,
    ) -> Result<(Vec<Record>, Option<Class>), Error> {
        let stopped = Arc::new(AtomicU64::new(Class::NONE));
        let take = Take {
            tenant: self.store.tenant().clone(),
            bucket: turn.bucket.clone(),
            ranks: turn.ranks,
            limit,
            ceiling: class.limit.map(|max| Ceiling {
                bucket: turn.bucket.replacen(bucket::TASKS, bucket::RUNNING, 1),
                max: max as usize,
            }),
            durability: match class.effect {
                // Whether the work was begun must outlive a power cut, or it would be begun twice.
                Some(Effect::Once) => Durability::Durable,
                Some(Effect::Idempotent | Effect::Pure) | None => Durability::Relaxed,
            },
            mover: self.mover(request, class, Arc::clone(&stopped)),
        };
        let taken = self.store.backend().take(take).await?;
        Ok((taken, Class::decode(stopped.load(Ordering::SeqCst))))
    }

    fn mover(&self, request: &Request, class: Class, stopped: Arc<AtomicU64>) -> Mover {
        let (owner, lease) = (request.owner.clone(), request.lease);
        let entropy = self.entropy.clone();
        Arc::new(move |record, now| {
            if stopped.load(Ordering::SeqCst) != Class::NONE {
                return None;
            }
            // A damaged task is left where it is, for the doctor to find.
            let task = decode::<Task>(record).ok()?.item;
            let found = Class::of(&task);
            if found != class {
                stopped.store(found.encode(), Ordering::SeqCst);
                return None;
            }
            let lease = Lease {
                owner: owner.clone(),
                secret: entropy.secret(),
                expires: now.plus(lease),
                heartbeat: now,
            };
            Some(encode(&record.key, &claimed(task, lease, now), now))
        })
    }

    /// Gives taken tasks their payload. Those of a run that is held or cannot be read are put aside.
    async fn hand_out(&self, taken: Vec<Record>) -> Result<Vec<Claim>, Error> {
        let tasks = taken.iter().map(decode::<Task>).collect::<Result<Vec<_>, _>>()?;
        let mut keys: Vec<Key> = Vec::with_capacity(2 * tasks.len());
        keys.extend(tasks.iter().map(|task| self.event_key(&task.item)));
        let runs: BTreeSet<&RunId> = tasks.iter().map(|task| &task.item.workflow_id).collect();
        keys.extend(runs.iter().map(|run| self.store.run_key(run, run_record())));
        let mut events = self.store.backend().get(&keys).await?;
        let records = events.split_off(tasks.len());
        let runs: BTreeMap<RunId, Option<Record>> = runs.into_iter().cloned().zip(records).collect();
        let mut claims = Vec::with_capacity(tasks.len());
        for (task, event) in tasks.into_iter().zip(events) {
            let run = runs.get(&task.item.workflow_id).and_then(Option::as_ref);
            match self.payload(&task.item, run, event.as_ref()).await {
                Ok(Some(payload)) => claims.push(Claim::new(task.item, payload)),
                Ok(None) | Err(Error::Unreadable { .. }) => self.put_aside(task).await?,
                Err(error) => return Err(error),
            }
        }
        Ok(claims)
    }

    fn event_key(&self, task: &Task) -> Key {
        self.store.run_key(&task.workflow_id, event_record(&task.step_id))
    }

    /// What the task is about; nothing when its run does not want it done now.
    pub(super) async fn payload(
        &self,
        task: &Task,
        run: Option<&Record>,
        event: Option<&Record>,
    ) -> Result<Option<Map<String, Value>>, Error> {
        if task.kind() == TaskKind::Event {
            let Some(run) = run.map(decode::<Run>).transpose()? else { return Ok(None) };
            if run.item.control != Control::Go || run.item.status.is_terminal() {
                return Ok(None);
            }
        }
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
    async fn put_aside(&self, task: Stored<Task>) -> Result<(), Error> {
        let now = self.store.now().await?;
        let task = Stored { item: unclaimed(task.item, now), version: task.version };
        let write = self.store.aside(&task, now);
        match self.store.write(vec![write], Durability::Relaxed).await.map_err(Error::from) {
            Err(error) if !error.is_conflict() => Err(error),
            // Whoever changed it meanwhile decided what becomes of it.
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

struct Turn {
    bucket: String,
    ranks: Ranks,
}

/// Tasks that can be taken in one go: the limit and the durability are of the whole take.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Class {
    limit: Option<u32>,
    effect: Option<Effect>,
}

impl Class {
    const NONE: u64 = u64::MAX;
    const LIMITED: u64 = 1 << 32;
    const ONCE: u64 = 1 << 33;

    fn of(task: &Task) -> Self {
        Self { limit: task.policy.limit, effect: task.policy.effect.filter(|effect| *effect == Effect::Once) }
    }

    fn encode(self) -> u64 {
        let once = self.effect.map_or(0, |_| Self::ONCE);
        self.limit.map_or(0, |limit| u64::from(limit) | Self::LIMITED) | once
    }

    fn decode(code: u64) -> Option<Self> {
        (code != Self::NONE).then(|| Self {
            limit: (code & Self::LIMITED != 0).then_some(code as u32),
            effect: (code & Self::ONCE != 0).then_some(Effect::Once),
        })
    }
}

impl Names {
    /// A qualified name admits only itself, so that no facet is done by the handler of a namesake.
    fn admit(&self, name: &str) -> bool {
        let short = name.rsplit('.').next().unwrap_or(name);
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|offered| offered == name || offered == short),
        }
    }
}

impl Claim {
    pub(super) fn new(task: Task, payload: Map<String, Value>) -> Self {
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

pub(super) fn claimed(task: Task, lease: Lease, now: Millis) -> Task {
    Task {
        state: TaskState::Running,
        token: task.token + 1,
        // Counted now and not at the end: a worker that dies tells nobody.
        deliveries: task.deliveries + 1,
        started: task.started.or(Some(now)),
        updated: now,
        lease: Some(lease),
        ..task
    }
}

fn unclaimed(task: Task, now: Millis) -> Task {
    Task {
        state: TaskState::Pending,
        deliveries: task.deliveries.saturating_sub(1),
        updated: now,
        lease: None,
        ..task
    }
}

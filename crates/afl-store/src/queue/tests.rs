//! The promises of the queue to its agents, on the memory backend with a simulated clock.

mod desired;
mod fair;
mod named;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::conformance::unread;
use afl_engine::event::{Event, EventError, EventState, Reception};
use afl_engine::history::Actor;
use afl_engine::id::{RunId, Segment, StepId};
use afl_engine::policy::{Effect, Policy, RetryPolicy};
use afl_engine::run::{Control, Counts, Run, RunStatus};
use afl_engine::state::State;
use afl_engine::step::{Step, Transmission};
use afl_engine::task::{MAX_DELIVERIES, NewTask, Task, TaskState};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_engine::{ObjectType, attribute::Attributes};
use serde_json::json;

use super::{Claim, ClaimRequest, ContinueResult, FacetFilter, Queue, Refusal, SettleResult, WorkOfStep};
use crate::backend::{Backend, Change, Durability, Expect, Write};
use crate::clock::{Clock, SimClock};
use crate::entropy::Entropy;
use crate::memory::Memory;
use crate::record::{Key, Record, Tenant};
use crate::store::{Store, StoredRecord};

const LEASE: Millis = Millis(60_000);

struct World {
    clock: SimClock,
    memory: Arc<Memory>,
    queue: Queue,
    run: RunId,
}

impl World {
    async fn new() -> Self {
        let clock = SimClock::new(Millis(1_000_000));
        let memory = Arc::new(Memory::new(Clock::Simulated(clock.clone())).with_power_cuts());
        let backend: Arc<dyn Backend> = memory.clone();
        let store = Store::new(backend, Tenant::new(Tenant::LOCAL).unwrap());
        let world =
            Self { clock, memory, queue: Queue::new(store, Entropy::seeded(7)), run: RunId("r".into()) };
        world.control(Control::Go, Expect::Absent).await;
        world
    }

    async fn control(&self, control: Control, expect: Expect) {
        let now = self.clock.now();
        let run = Run {
            id: self.run.clone(),
            workflow: "W".into(),
            workflow_version: "sha256:0".to_owned(),
            status: RunStatus::Paused,
            control,
            created: now,
            updated: now,
            ended: None,
            labels: BTreeMap::new(),
            idempotency_key: None,
            iterations: 1,
            iterations_per_run: vec![1],
            iterations_now: 0,
            active: 0,
            counts: Counts::default(),
            turn: None,
            error: None,
            evaluating: None,
            quarantine: None,
        };
        let write = self.store().put(&self.run, &run, expect, now);
        self.store().write(vec![write], Durability::Durable).await.unwrap();
    }

    fn store(&self) -> &Store {
        &self.queue.store
    }

    fn step(&self, number: u32, name: &str) -> Step {
        Step {
            id: StepId::root().child(Segment::Clause(0)).child(Segment::Statement(number)),
            object_type: ObjectType::VariableAssignment,
            statement_id: "s".into(),
            facet_name: name.into(),
            state: State::EventTransmit,
            attributes: Attributes::default(),
            policy: Policy::default(),
            event: Transmission::Sent,
            children: None,
            case: None,
            error: None,
            failed_in: None,
            caught: None,
            created: self.clock.now(),
            ended: None,
            rests: Vec::new(),
        }
    }

    /// A step that has sent nothing out.
    async fn on_its_way(&self, number: u32, state: State) -> StepId {
        let step = Step { state, event: Transmission::None, ..self.step(number, "a.F") };
        let write = self.store().put(&self.run, &step, Expect::Absent, self.clock.now());
        self.store().write(vec![write], Durability::Durable).await.unwrap();
        step.id
    }

    async fn ask(&self, number: u32, name: &str, policy: Policy) -> StepId {
        self.ask_on("default", number, name, policy).await
    }

    async fn ask_on(&self, list: &str, number: u32, name: &str, policy: Policy) -> StepId {
        let step = self.step(number, name);
        let (id, now) = (step.id.clone(), self.clock.now());
        let event = Event {
            step_id: id.clone(),
            state: EventState::Created,
            event_type: name.into(),
            payload: BTreeMap::from([(
                "n".to_owned(),
                afl_engine::attribute::ValueRef::Inline(json!(number)),
            )]),
            result: None,
            error: None,
            partial: None,
            reception: Reception::Open,
            times_out: policy.timeout_ms.map(|timeout| now.plus(timeout)),
        };
        let task = NewTask {
            step_id: id.clone(),
            workflow_id: self.run.clone(),
            name: name.into(),
            path: format!("W.s{number}"),
            task_list_name: list.into(),
            policy,
            turn: now,
            token: 0,
            claims: 0,
            fires: None,
        };
        let task = Task::pending(task, now);
        let writes = vec![
            self.store().put(&self.run, &step, Expect::Absent, now),
            self.store().put(&self.run, &event, Expect::Absent, now),
            self.store().put(&self.run, &task, Expect::Absent, now),
        ];
        self.store().write(writes, Durability::Durable).await.unwrap();
        id
    }

    /// Makes the tasks of these steps unreadable.
    async fn damage(&self, steps: impl IntoIterator<Item = &StepId>) {
        let key = |step: &StepId| self.store().run_key(&self.run, format!("t/{step}"));
        let keys: Vec<Key> = steps.into_iter().map(key).collect();
        let hurt = |record: Record| {
            let Record { key, version, mut content } = record;
            content.body[5] ^= 1;
            Write { key, expect: Expect::Version(version), change: Change::Put(content) }
        };
        let writes = self.memory.get(&keys).await.unwrap().into_iter().flatten().map(hurt).collect();
        self.store().write(writes, Durability::Durable).await.unwrap();
    }

    async fn claim(&self, names: &[&str], max: usize) -> Vec<Claim> {
        let names = match names {
            [] => FacetFilter::All,
            names => FacetFilter::Only(names.iter().map(|name| (*name).to_owned()).collect()),
        };
        let request = ClaimRequest { max, lease: LEASE, ..ClaimRequest::new(names, "a1") };
        self.queue.claim(&request).await.unwrap()
    }

    /// The task of one step, by its key.
    async fn claim_named(&self, step: &StepId, request: &ClaimRequest) -> Option<Claim> {
        let task = Some(Arc::new(self.task(step).await));
        self.queue.claim(&ClaimRequest { task, ..request.clone() }).await.unwrap().pop()
    }

    async fn one(&self) -> Claim {
        self.claim(&[], 1).await.pop().expect("a task is there")
    }

    async fn task(&self, step: &StepId) -> Task {
        self.store().task(&self.run, step).await.unwrap().unwrap().item
    }

    async fn event(&self, step: &StepId) -> Event {
        self.store().event(&self.run, step).await.unwrap().unwrap().item
    }
}

/// A record with other fields than the task machine would write.
fn rewritten(task: &Task, fields: Value) -> Task {
    let mut record = serde_json::to_value(task).unwrap();
    let Value::Object(fields) = fields else { panic!("fields are an object") };
    record.as_object_mut().unwrap().extend(fields);
    serde_json::from_value::<Task>(record).unwrap().of_step(task.step_id.clone())
}

fn result() -> Map<String, Value> {
    json!({"out": 3}).as_object().unwrap().clone()
}

fn error() -> EventError {
    EventError::new("Boom", "it broke")
}

fn names(claims: &[Claim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.task.path.as_str()).collect()
}

// covers: SDK-2.2-a, SDK-3.2-b, SDK-3.3-a, SDK-3.3-b, SDK-3.3-c, SDK-3.3-g
#[tokio::test]
async fn a_claim_hands_out_each_task_once_with_its_payload() {
    let world = World::new().await;
    assert_eq!(world.claim(&[], 1).await, []);
    let step = world.ask(1, "a.F", Policy::default()).await;
    assert_eq!(world.task(&step).await.state, TaskState::Pending);
    let claim = world.one().await;
    assert_eq!(claim.payload, *json!({"n": 1}).as_object().unwrap());
    assert_eq!(claim.ticket.token, 1);
    assert_eq!(claim.idempotency_key(), "r/wb0s1");
    assert_eq!(world.task(&step).await.state, TaskState::Running);
    assert_eq!(world.claim(&[], 10).await, []);
}

// covers: EVT-0-c, EVT-3-c, SDK-3.4-a, SDK-3.4-b, SDK-3.4-c, SDK-3.4-d
#[tokio::test]
async fn t11_a_name_matches_exactly_or_by_its_last_part_but_never_a_namesake() {
    let world = World::new().await;
    world.ask(1, "a.Pay", Policy::default()).await;
    world.ask(2, "b.Pay", Policy::default()).await;
    world.ask(3, "a.Ship", Policy::default()).await;
    assert_eq!(names(&world.claim(&["c.Pay"], 9).await), <[&str; 0]>::default());
    assert_eq!(names(&world.claim(&["b.Pay"], 9).await), ["W.s2"]);
    assert_eq!(names(&world.claim(&["Pay", "x.Y"], 9).await), ["W.s1"]);
    assert_eq!(names(&world.claim(&["Ship"], 9).await), ["W.s3"]);
}

// covers: SDK-3.4-c
#[tokio::test]
async fn t11_a_short_name_is_no_handler_for_a_third_namespace_where_another_has_its_own() {
    let world = World::new().await;
    for (number, name) in [(1, "a.Pay"), (2, "b.Pay"), (3, "Pay")] {
        world.ask(number, name, Policy::default()).await;
    }
    let claims = world.claim(&["Pay", "b.Pay"], 9).await;
    let mut own = names(&claims);
    own.sort_unstable();
    assert_eq!(own, ["W.s2", "W.s3"]);
    assert_eq!(names(&world.claim(&["Pay", "a.Refund"], 9).await), ["W.s1"]);
}

// covers: EVT-0-a
#[tokio::test]
async fn the_most_urgent_task_comes_first_then_the_oldest_whatever_its_name() {
    let world = World::new().await;
    let urgent = Policy { priority: Some(90), ..Policy::default() };
    for (number, name) in [(1, "a.F"), (2, "b.G"), (3, "a.F"), (4, "b.G")] {
        world.ask(number, name, Policy::default()).await;
        world.clock.advance(Millis(1));
    }
    world.ask(5, "b.G", urgent).await;
    assert_eq!(names(&world.claim(&[], 9).await), ["W.s5", "W.s1", "W.s2", "W.s3", "W.s4"]);
}

#[tokio::test]
async fn g13_more_unreadable_tasks_than_a_round_looks_at_hide_none_that_can_be_read() {
    let world = World::new().await;
    for number in 0..502 {
        world.ask(number, "a.F", Policy::default()).await;
    }
    let mut claims = world.claim(&[], 501).await;
    world.clock.advance(Millis(1));
    claims.extend(world.claim(&[], 1).await);
    let last = claims.pop().expect("all were claimed").ticket.step;
    world.damage(claims.iter().map(|claim| &claim.ticket.step)).await;
    world.clock.advance(LEASE.plus(Millis(1)));
    let swept = world.queue.sweep_once().await.unwrap();
    assert_eq!((swept.requeued, swept.unreadable.len()), (1, 501));
    assert_eq!(world.task(&last).await.state, TaskState::Pending);
}

// covers: SDK-2.2-c, EVT-1-c, EVT-7-b
#[tokio::test]
async fn t2_g2_an_outcome_is_one_durable_commit_of_task_event_and_wake_up() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    let claim = world.one().await;
    let settled = world.queue.complete(&claim.ticket, &result()).await.unwrap();
    world.memory.power_cut(10);
    let (task, event) = (world.task(&step).await, world.event(&step).await);
    assert_eq!((task.state, event.state), (TaskState::Completed, EventState::Completed));
    assert_eq!(event.reception, Reception::Arrived);
    assert_eq!(
        settled,
        SettleResult::Arrived(Box::new(StoredRecord {
            item: event,
            version: crate::Version::first(crate::Epoch(0)).next()
        }))
    );
    let arrived = world.store().arrived(None, 10).await.unwrap();
    assert_eq!(arrived.iter().map(|(_, step, _)| step).collect::<Vec<_>>(), [&step]);
}

// covers: EVT-7-e, RT-12.1-b
#[tokio::test]
async fn f6_f8_repeating_an_outcome_is_a_no_op() {
    let world = World::new().await;
    let done = world.ask(1, "a.F", Policy::default()).await;
    let claim = world.one().await;
    world.queue.complete(&claim.ticket, &result()).await.unwrap();
    let before = world.event(&done).await;
    assert_eq!(world.queue.complete(&claim.ticket, &result()).await.unwrap(), SettleResult::Repeated);
    assert_eq!(world.queue.fail(&claim.ticket, &error()).await.unwrap(), SettleResult::Repeated);
    assert_eq!(world.event(&done).await, before);

    let retried = Policy {
        retry: Some(RetryPolicy {
            max: 3,
            backoff_ms: Millis(10),
            factor: 2.0,
            max_backoff_ms: Millis(1_000),
        }),
        ..Policy::default()
    };
    let again = world.ask(2, "a.F", retried).await;
    let claim = world.one().await;
    world.queue.fail(&claim.ticket, &error()).await.unwrap();
    assert_eq!(world.queue.fail(&claim.ticket, &error()).await.unwrap(), SettleResult::Repeated);
    assert_eq!(world.task(&again).await.attempts, 1);
}

// covers: RT-16-b
#[tokio::test]
async fn g3_f4_only_the_holder_of_the_live_lease_is_heard() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    let old = world.one().await;
    world.clock.advance(Millis(LEASE.0 + 1));
    assert_eq!(world.queue.sweep_once().await.unwrap().requeued, 1);
    let lost = |refusal| matches!(refusal, Refusal::LeaseLost { .. });
    // It has no holder, and the zombie comes back.
    assert!(lost(world.queue.complete(&old.ticket, &result()).await.unwrap_err()));
    // The same worker, by name, takes its own task again.
    let new = world.one().await;
    assert_eq!(new.ticket.token, 2);
    assert_ne!(new.ticket.secret, old.ticket.secret);
    assert!(lost(world.queue.extend(&old.ticket, LEASE).await.unwrap_err()));
    assert!(lost(world.queue.complete(&old.ticket, &result()).await.unwrap_err()));
    assert!(lost(world.queue.fail(&old.ticket, &error()).await.unwrap_err()));
    assert!(lost(world.queue.release(&old.ticket, None).await.unwrap_err()));
    let other = world.ask(2, "a.F", Policy::default()).await;
    let foreign = super::Ticket { step: other, ..new.ticket.clone() };
    assert!(lost(world.queue.complete(&foreign, &result()).await.unwrap_err()));
    let forged = super::Ticket { secret: "0".repeat(32), ..new.ticket.clone() };
    assert!(lost(world.queue.complete(&forged, &result()).await.unwrap_err()));
    assert_eq!(world.event(&step).await.reception, Reception::Open);
    world.queue.complete(&new.ticket, &result()).await.unwrap();
    assert!(lost(world.queue.fail(&old.ticket, &error()).await.unwrap_err()));
    assert_eq!(world.event(&step).await.state, EventState::Completed);
}

#[tokio::test]
async fn g10_a_heartbeat_keeps_the_task_by_the_clock_of_the_store() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    let claim = world.one().await;
    for _ in 0..5 {
        world.clock.advance(Millis(LEASE.0 - 1));
        let expires = world.queue.extend(&claim.ticket, LEASE).await.unwrap();
        assert_eq!(expires, world.clock.now().plus(LEASE));
        let swept = world.queue.sweep_once().await.unwrap();
        assert_eq!((swept.requeued, swept.next), (0, Some(expires)));
    }
    world.clock.advance(Millis(-3_600_000));
    world.queue.sweep_once().await.unwrap();
    assert_eq!(world.task(&step).await.state, TaskState::Running);
}

#[tokio::test]
async fn g5_workers_that_die_use_up_the_deliveries() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    for _ in 0..MAX_DELIVERIES {
        world.one().await;
        world.clock.advance(Millis(LEASE.0 + 1));
        world.queue.sweep_once().await.unwrap();
    }
    assert_eq!(world.claim(&[], 1).await, []);
    assert_eq!(world.task(&step).await.state, TaskState::Failed);
    let event = world.event(&step).await;
    assert_eq!(event.error.unwrap().kind, "lease_exhausted");
    assert_eq!(event.reception, Reception::Arrived);
}

#[tokio::test]
async fn g4_work_that_must_happen_at_most_once_is_claimed_durably_and_not_repeated_after_silence() {
    let world = World::new().await;
    let once = Policy { effect: Some(Effect::Once), ..Policy::default() };
    let step = world.ask(1, "a.F", once).await;
    world.one().await;
    world.memory.power_cut(10);
    assert_eq!(world.task(&step).await.state, TaskState::Running);
    world.clock.advance(Millis(LEASE.0 + 1));
    assert_eq!(world.queue.sweep_once().await.unwrap().arrived.len(), 1);
    assert_eq!(world.event(&step).await.error.unwrap().kind, "uncertain");
}

// covers: SDK-2.2-d, SDK-6.1-b, SDK-6.1-d, EVT-1-d
#[tokio::test]
async fn declared_retries_wait_their_time_and_no_others_happen() {
    let world = World::new().await;
    let plain = world.ask(1, "a.F", Policy::default()).await;
    let claim = world.one().await;
    world.queue.fail(&claim.ticket, &error()).await.unwrap();
    assert_eq!(world.task(&plain).await.state, TaskState::Failed);
    let event = world.event(&plain).await;
    assert_eq!((event.state, event.error), (EventState::Error, Some(error())));

    let retry = RetryPolicy { max: 3, backoff_ms: Millis(100), factor: 2.0, max_backoff_ms: Millis(150) };
    let step = world.ask(2, "a.F", Policy { retry: Some(retry), ..Policy::default() }).await;
    for wait in [100, 150] {
        let claim = world.one().await;
        let due = world.clock.now().plus(Millis(wait));
        let settled = world.queue.fail(&claim.ticket, &error()).await.unwrap();
        assert_eq!(settled, SettleResult::Again { not_before: due });
        assert_eq!(world.event(&step).await.reception, Reception::Open);
        world.clock.advance(Millis(wait - 1));
        assert_eq!(world.queue.sweep_once().await.unwrap().next, Some(due));
        assert_eq!(world.claim(&[], 1).await, []);
        world.clock.advance(Millis(1));
        assert_eq!(world.queue.sweep_once().await.unwrap().due, 1);
    }
    let claim = world.one().await;
    let settled = world.queue.fail(&claim.ticket, &error()).await.unwrap();
    assert!(matches!(settled, SettleResult::Arrived(_)));
    assert_eq!(world.task(&step).await.attempts, 3);
}

#[tokio::test]
async fn nothing_of_a_held_run_is_handed_out_until_it_goes_on() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    world.control(Control::Hold, Expect::Version(unread(1))).await;
    assert_eq!(world.claim(&[], 1).await, []);
    world.queue.sweep_once().await.unwrap();
    assert_eq!(world.claim(&[], 1).await, []);
    let task = world.task(&step).await;
    assert_eq!((task.state, task.deliveries), (TaskState::Pending, 0));
    world.control(Control::Go, Expect::Version(unread(2))).await;
    assert_eq!(world.queue.sweep_once().await.unwrap().returned, 1);
    assert_eq!(world.claim(&[], 1).await.len(), 1);
}

#[tokio::test]
async fn f6_a_late_result_of_a_canceled_run_is_refused_by_name() {
    let world = World::new().await;
    world.ask(1, "a.F", Policy::default()).await;
    let claim = world.one().await;
    world.control(Control::Cancel, Expect::Version(unread(1))).await;
    let refusal = world.queue.complete(&claim.ticket, &result()).await.unwrap_err();
    assert_eq!(refusal.to_string(), "`W.s1` of run r was canceled: stop and drop the result");
}

// covers: XR-8, EVT-7-d, SDK-6.3-a
#[tokio::test]
async fn xr8_continuing_is_refused_before_the_event_and_a_no_op_past_it() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    let absent = StepId::root().child(Segment::Clause(0)).child(Segment::Statement(9));
    let stored = world.on_its_way(8, State::MixinBlocksContinue).await;
    for early in [&absent, &stored] {
        let (run, by) = (&world.run, &Actor::System);
        let continued =
            world.queue.continue_step(run, early, WorkOfStep::Event, Ok(&result()), by).await.unwrap_err();
        assert!(matches!(continued, Refusal::TooEarly { .. }), "{continued}");
        let failed =
            world.queue.continue_step(run, early, WorkOfStep::Event, Err(&error()), by).await.unwrap_err();
        assert!(matches!(failed, Refusal::TooEarly { .. }), "{failed}");
    }
    // A step that sends nothing out goes past its event by itself.
    let past = world.on_its_way(7, State::StatementBlocksContinue).await;
    let continued = world
        .queue
        .continue_step(&world.run, &past, WorkOfStep::Event, Ok(&result()), &Actor::System)
        .await
        .unwrap();
    assert_eq!(continued, ContinueResult::Before);

    let claim = world.one().await;
    let continued = world
        .queue
        .continue_step(&world.run, &step, WorkOfStep::Event, Ok(&result()), &Actor::System)
        .await
        .unwrap();
    assert!(matches!(continued, ContinueResult::Now(SettleResult::Arrived(_))));
    assert_eq!(world.task(&step).await.state, TaskState::Completed);
    let before = world.event(&step).await;
    assert_eq!(
        world
            .queue
            .continue_step(&world.run, &step, WorkOfStep::Event, Ok(&Map::new()), &Actor::System)
            .await
            .unwrap(),
        ContinueResult::Before
    );
    assert_eq!(
        world
            .queue
            .continue_step(&world.run, &step, WorkOfStep::Event, Err(&error()), &Actor::System)
            .await
            .unwrap(),
        ContinueResult::Before
    );
    let refusal = world.queue.complete(&claim.ticket, &result()).await.unwrap_err();
    assert!(matches!(refusal, Refusal::LeaseLost { .. }), "{refusal}");
    assert_eq!(world.event(&step).await, before);
}

#[tokio::test]
async fn a_released_task_is_taken_at_once_and_not_counted() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    let claim = world.one().await;
    world.queue.release(&claim.ticket, None).await.unwrap();
    assert_eq!(world.queue.release(&claim.ticket, None).await.unwrap(), SettleResult::Repeated);
    assert_eq!(world.task(&step).await.deliveries, 0);
    assert_eq!(world.one().await.ticket.token, 2);
}

#[tokio::test]
async fn a_large_result_and_a_large_payload_travel_whole() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    let claim = world.one().await;
    let large = json!({"text": "x".repeat(100_000)}).as_object().unwrap().clone();
    world.queue.complete(&claim.ticket, &large).await.unwrap();
    let payload = world.event(&step).await.result.unwrap();
    let whole = world.queue.whole_payload(&world.run, &payload, "W.s1").await.unwrap();
    assert_eq!(whole, large);
}

// covers: EVT-0-b, EVT-4-g, RT-6-b, RT-12-b, SDK-3.3-d, SDK-3.3-e, SDK-10.4-a
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn claimers_at_the_same_time_never_get_the_same_task() {
    let world = Arc::new(World::new().await);
    for number in 0..200 {
        world.ask(number, "a.F", Policy::default()).await;
    }
    let mut claimers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let world = Arc::clone(&world);
        claimers.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let claims = world.claim(&["a.F"], 3).await;
                if claims.is_empty() {
                    return mine;
                }
                mine.extend(claims.into_iter().map(|claim| claim.ticket.step));
            }
        });
    }
    let mut all: Vec<StepId> = claimers.join_all().await.into_iter().flatten().collect();
    all.sort();
    assert_eq!(all.len(), 200);
    all.dedup();
    assert_eq!(all.len(), 200);
}

mod events;
mod limits;
mod moves;
mod notifying;
mod noting;
mod once;
mod timers;

//! Tasks that are no step's: what is asked of the runners themselves (document 000 §7.2).
//!
//! Such a task stands beside the runs, with its event, in a scope that no run can have. Claims, leases, outcomes, logs
//! and the sweep are those of every task.

use std::sync::Arc;

use afl_engine::event::{Event, EventState, Payload, Reception};
use afl_engine::history::{Actor, History, Move};
use afl_engine::id::{RunId, StepId};
use afl_engine::policy::Policy;
use afl_engine::task::{Task, TaskKind, TaskState};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};

use super::outcome::{ended, held};
use super::{Queue, Refusal};
use crate::backend::{Durability, Expect};
use crate::conflict::retry_on_conflict;
use crate::store::{Error, Reservation, Stored};

/// What to ask.
#[derive(Clone, PartialEq, Debug)]
pub struct SystemTaskRequest {
    /// Its own, which [is no run's](RunId::is_run).
    pub id: RunId,
    pub name: Arc<str>,
    /// What it is about, for people.
    pub path: String,
    pub list: Arc<str>,
    pub payload: Map<String, Value>,
}

impl Queue {
    /// Asks for it, and reserves an idempotency key with it; a conflict says that the id or the key is taken.
    pub async fn enqueue(
        &self,
        order: SystemTaskRequest,
        reservation: Option<&Reservation>,
    ) -> Result<(), Error> {
        assert!(!order.id.is_run(), "the task of a run is its step's");
        let now = self.store.now().await?;
        let (payload, blobs) = held(order.payload);
        let task = Task {
            step_id: StepId::root(),
            workflow_id: order.id.clone(),
            name: order.name.clone(),
            path: order.path,
            state: TaskState::Pending,
            task_list_name: order.list,
            created: now,
            updated: now,
            policy: Policy::default(),
            token: 0,
            deliveries: 0,
            attempts: 0,
            not_before: None,
            desired_server: None,
            lease: None,
            error: None,
            error_kind: None,
            turn: None,
            history: History::default(),
            started: None,
            ended: None,
        };
        let event = open_event(order.name, payload);
        let mut writes = vec![
            self.store.put(&order.id, &task, Expect::Absent, now),
            self.store.put(&order.id, &event, Expect::Absent, now),
        ];
        writes.extend(reservation.map(|reservation| self.store.put_reservation(reservation)));
        self.store.write_with_blobs(&order.id, writes, &blobs, Durability::Durable).await
    }

    /// A system task that ended badly is to be done after all, by the server `on` if it is there in time.
    pub async fn ask_again(&self, id: &RunId, by: &Actor, on: Option<&Arc<str>>) -> Result<Task, Refusal> {
        self.rewrite(id, |task, event, now| {
            let is_over = matches!(task.state, TaskState::Failed | TaskState::Canceled | TaskState::Ignored);
            let event = open_event(event.event_type, event.payload);
            let task = Task {
                state: TaskState::Pending,
                deliveries: 0,
                attempts: 0,
                desired_server: on.cloned(),
                lease: None,
                error: None,
                error_kind: None,
                ended: None,
                ..task
            };
            is_over.then(|| (task.moved(Move::Retried, by, "", now), event))
        })
        .await
    }

    /// A system task is not wanted any more. Whoever does it loses it.
    pub async fn withdraw(&self, id: &RunId, by: &Actor) -> Result<Task, Refusal> {
        self.rewrite(id, |task, event, now| {
            let is_open = !task.state.is_terminal();
            let task = Task { lease: None, ..ended(task, TaskState::Canceled, now) };
            let event = Event { state: EventState::Error, reception: Reception::Taken, ..event };
            is_open.then(|| (task.moved(Move::Canceled, by, "", now), event))
        })
        .await
    }

    /// The task as it is afterwards; where `change` wants nothing, nothing is written.
    async fn rewrite(
        &self,
        id: &RunId,
        change: impl Fn(Task, Event, Millis) -> Option<(Task, Event)>,
    ) -> Result<Task, Refusal> {
        let step = StepId::root();
        retry_on_conflict(|| async {
            let work = self.store.work(id, &step).await?;
            let system = work.task.filter(|task| task.item.kind() == TaskKind::System);
            let (Some(task), Some(event)) = (system, work.event) else {
                return Err(Refusal::Unknown { run: id.clone(), step: step.clone() });
            };
            let now = self.store.now().await?;
            let Some((changed, event_changed)) = change(task.item.clone(), event.item, now) else {
                return Ok(task.item);
            };
            let changed = Stored { item: Task { updated: now, ..changed }, version: task.version };
            let event = Stored { item: event_changed, version: event.version };
            let messages = self.store.messages_of_end(&changed, Some(&event.item), now).await?;
            let mut writes = vec![self.store.update(id, &changed, now), self.store.update(id, &event, now)];
            writes.extend(messages.writes);
            self.store.write_with_blobs(id, writes, &messages.blobs, Durability::Durable).await?;
            Ok(changed.item)
        })
        .await
    }
}

fn open_event(name: Arc<str>, payload: Payload) -> Event {
    Event {
        step_id: StepId::root(),
        state: EventState::Created,
        event_type: name,
        payload,
        partial: None,
        result: None,
        error: None,
        reception: Reception::Open,
    }
}

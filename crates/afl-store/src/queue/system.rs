//! Tasks that belong to no step: requests to the runners themselves (document 000 §7.2).
//!
//! Such a task stands beside the runs, with its event, in a scope that no run can have. Claims, leases, outcomes, logs
//! and the sweep are those of every task.

use std::sync::Arc;

use afl_engine::event::{Event, EventState, Reception};
use afl_engine::history::Actor;
use afl_engine::id::{RunId, StepId};
use afl_engine::policy::Policy;
use afl_engine::task::{Authority, Move, NewTask, Task, TaskKind};
use afl_engine::value::{Map, Value};

use super::outcome::held;
use super::{Queue, Refusal};
use crate::backend::{Batch, Durability, Expect};
use crate::conflict::retry_on_conflict;
use crate::store::{Error, Reservation, StoredRecord};

/// The content of a system task.
#[derive(Clone, PartialEq, Debug)]
pub struct SystemTaskRequest {
    /// Its own, which [is no run's](RunId::is_run).
    pub id: RunId,
    pub name: Arc<str>,
    /// The subject of the task, for people.
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
        let task = NewTask {
            step_id: StepId::root(),
            workflow_id: order.id.clone(),
            name: order.name.clone(),
            path: order.path,
            task_list_name: order.list,
            policy: Policy::default(),
            turn: now,
            token: 0,
            claims: 0,
            fires: None,
        };
        let task = Task::pending(task, now);
        let event = Event::open(StepId::root(), order.name, payload);
        let mut writes = vec![
            self.store.put(&order.id, &task, Expect::Absent, now),
            self.store.put(&order.id, &event, Expect::Absent, now),
        ];
        writes.extend(reservation.map(|reservation| self.store.put_reservation(reservation)));
        self.store.write_with_blobs(&order.id, Batch::new(writes, Durability::Durable), &blobs).await
    }

    /// A system task that ended badly is to be done after all, by the server `on` if it is there in time.
    pub async fn ask_again(&self, id: &RunId, by: &Actor, on: Option<&Arc<str>>) -> Result<Task, Refusal> {
        let retry = || Move::Retry { server: on.cloned(), turn: None, fires: None };
        self.rewrite(id, retry, by, |event| Event::open(StepId::root(), event.event_type, event.payload))
            .await
    }

    /// Cancels a system task. Its holder loses it.
    pub async fn withdraw(&self, id: &RunId, by: &Actor) -> Result<Task, Refusal> {
        let cancel = || Move::Cancel { cause: "", error: None };
        let ended = |event| Event { state: EventState::Error, reception: Reception::Taken, ..event };
        self.rewrite(id, cancel, by, ended).await
    }

    /// The task after a move; a task that may not make the move stays as it is.
    async fn rewrite(
        &self,
        id: &RunId,
        what: impl Fn() -> Move<'static>,
        by: &Actor,
        change: impl Fn(Event) -> Event,
    ) -> Result<Task, Refusal> {
        let step = StepId::root();
        retry_on_conflict(|| async {
            let work = self.store.work(id, &step).await?;
            let system = work.task.filter(|task| task.item.kind() == TaskKind::System);
            let (Some(mut task), Some(event)) = (system, work.event) else {
                return Err(Refusal::Unknown { run: id.clone(), step: step.clone() });
            };
            let now = self.store.now().await?;
            if task.item.apply(what(), Authority::Actor(by), now).is_err() {
                return Ok(task.item);
            }
            let event = StoredRecord { item: change(event.item), version: event.version };
            let messages = self.store.messages_of_end(&task, Some(&event.item), now).await?;
            let mut writes = vec![self.store.update(id, &task, now), self.store.update(id, &event, now)];
            writes.extend(messages.writes);
            let batch = Batch::new(writes, Durability::Durable);
            self.store.write_with_blobs(id, batch, &messages.blobs).await?;
            Ok(task.item)
        })
        .await
    }
}

//! System tasks: starts that are left to the runners (document 000 §7.2).

use std::collections::BTreeMap;
use std::sync::Arc;

use afl_engine::id::{RunId, StepId};
use afl_engine::run::RunStatus;
use afl_engine::task::{DEFAULT_TASK_LIST, Task, TaskState};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_store::conflict::CONFLICT_TRIES;
use afl_store::paging::Pages;
use afl_store::queue::{Refusal, SystemTaskRequest};
use afl_store::store::{StoredRecord, bucket};
use serde::{Deserialize, Serialize};

use crate::error::{Contention, Error, InvalidRequest, NotFound};
use crate::run_id;
use crate::service::Service;
use crate::start::{StartRequest, StartResult};

/// The name of the task that starts a run.
pub const EXECUTE: &str = "afl:execute";

const PAGE: usize = 500;

/// The workflow that [`EXECUTE`] has to start.
#[derive(Serialize, Deserialize)]
struct ExecutePayload {
    run: RunId,
    program: String,
    workflow: String,
    inputs: Map<String, Value>,
    labels: BTreeMap<String, String>,
    key: Option<String>,
}

impl Service {
    /// Leaves a start to a runner, durably. The run will have the id that is returned; refused inputs make a failed
    /// task.
    pub async fn hand_over(&self, request: StartRequest) -> Result<StartResult, Error> {
        let prepared = self.prepare(&request).await?;
        let attempt = || async {
            if let Some(started) = self.reserved(&request, &prepared).await? {
                return Ok(started);
            }
            let run = run_id::fresh(self.store.now().await?, &self.entropy);
            let start = ExecutePayload {
                run: run.clone(),
                program: request.program.to_string(),
                workflow: prepared.workflow.to_string(),
                inputs: request.inputs.clone(),
                labels: request.labels.clone(),
                key: request.idempotency_key.clone(),
            };
            let order = SystemTaskRequest {
                id: task_id(&run),
                name: EXECUTE.into(),
                path: format!("start {}", prepared.workflow),
                list: DEFAULT_TASK_LIST.into(),
                payload: object(&start),
            };
            let reservation = prepared.reservation(&request, &run);
            match self.queue.enqueue(order, reservation.as_ref()).await {
                // The connection failed during the commit; the store knows whether it happened.
                Err(error) if error.is_uncertain() && self.is_handed_over(&run).await? => {}
                written => written?,
            }
            Ok(StartResult { run, status: RunStatus::Running, is_new: true })
        };
        self.redo(Contention::Start { tries: CONFLICT_TRIES }, attempt).await
    }

    /// Does the task [`EXECUTE`]. An error of the store says nothing about the task; any other is its outcome.
    pub async fn execute(&self, payload: Map<String, Value>) -> Result<Map<String, Value>, Error> {
        let start: ExecutePayload = serde_json::from_value(Value::Object(payload))
            .map_err(|error| InvalidRequest::SystemTask { reason: error.to_string() })?;
        let program = start.program.parse().map_err(|_| NotFound::Program { version: start.program })?;
        let request = StartRequest {
            program,
            workflow: Some(start.workflow),
            inputs: start.inputs,
            labels: start.labels,
            idempotency_key: start.key,
        };
        match self.start_as(&start.run, &request).await {
            Ok(started) => Ok(object(&started)),
            Err(error) if error.is_of_store() => Err(error),
            Err(refused) => {
                // There will be no such run, so who corrects the inputs may use the key.
                if let Some(key) = &request.idempotency_key {
                    self.store.free_key(key, &start.run).await?;
                }
                Err(refused)
            }
        }
    }

    /// Whether a run of this id exists; the start of one may still wait for a runner.
    pub async fn has_begun(&self, run: &RunId) -> Result<bool, Error> {
        Ok(self.store.run(run).await?.is_some())
    }

    /// The task that will start a run of this id, or has.
    pub async fn start_task(&self, run: &RunId) -> Result<Option<Task>, Error> {
        self.task(&task_id(run), &StepId::root()).await
    }

    /// The same while the start is wanted; an error when it was withdrawn or failed before the run began.
    pub(crate) async fn asked_by(&self, run: &RunId) -> Result<Option<StoredRecord<Task>>, Error> {
        match self.store.task(&task_id(run), &StepId::root()).await? {
            Some(task) if task.item.state.is_terminal() => Err(Error::not_begun(run, &task.item)),
            task => Ok(task),
        }
    }

    pub(crate) async fn is_handed_over(&self, run: &RunId) -> Result<bool, Error> {
        let open = |task: Task| match task.state {
            TaskState::Pending | TaskState::Running | TaskState::AwaitingResponse | TaskState::Completed => {
                true
            }
            TaskState::Failed | TaskState::Ignored | TaskState::Canceled => false,
        };
        Ok(self.start_task(run).await?.is_some_and(open))
    }

    /// A system task that ended badly is to be done after all, by the server `on` if it is there in time.
    pub async fn ask_again(&self, id: &RunId, on: Option<&Arc<str>>) -> Result<Task, Error> {
        if let Some(server) = on {
            self.check_online(server).await?;
        }
        Ok(self.queue.ask_again(id, &self.actor, on).await?)
    }

    /// A system task is not wanted any more.
    pub async fn withdraw(&self, id: &RunId) -> Result<Task, Error> {
        match self.queue.withdraw(id, &self.actor).await {
            Ok(task) => {
                self.free_key_of(&task).await?;
                Ok(task)
            }
            Err(Refusal::Store(error)) => Err(error.into()),
            Err(_) => Err(Error::no_run(id)),
        }
    }

    /// Withdraws a start that no runner has made; whether that prevented the run.
    pub(crate) async fn is_start_taken_back(&self, run: &RunId) -> Result<bool, Error> {
        if self.store.run(run).await?.is_some() {
            return Ok(false);
        }
        let Some(task) = self.start_task(run).await? else { return Ok(false) };
        let task = self.withdraw(&task.workflow_id).await?;
        // A runner may have begun it just before.
        if self.store.run(run).await?.is_some() {
            return Ok(false);
        }
        if task.state == TaskState::Canceled { Ok(true) } else { Err(Error::not_begun(run, &task)) }
    }

    async fn free_key_of(&self, task: &Task) -> Result<(), Error> {
        let Some(event) = self.store.event(&task.workflow_id, &task.step_id).await? else { return Ok(()) };
        let payload = self.queue.whole_payload(&task.workflow_id, &event.item.payload, &task.path).await?;
        match serde_json::from_value::<ExecutePayload>(Value::Object(payload)) {
            Ok(ExecutePayload { run, key: Some(key), .. }) if self.store.run(&run).await?.is_none() => {
                Ok(self.store.free_key(&key, &run).await?)
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Deletes system tasks that ended before this time and that no message for one of these channels needs.
    pub(crate) async fn collect_system_tasks(
        &self,
        ended_before: Millis,
        channels: &[String],
    ) -> Result<usize, Error> {
        let mut deleted = 0;
        let mut pages = Pages::first();
        while !pages.is_over() {
            // One that cannot be read stays, for the doctor to find; the others go all the same.
            let page = self.store.tasks_in(bucket::ENDED, pages.after(), PAGE).await?;
            let old = |task: &Task| task.ended.is_some_and(|ended| ended < ended_before);
            for task in page.items.iter().filter(|task| old(&task.item)) {
                if self.outbox().refers_to(&task.item.workflow_id, channels).await? {
                    continue;
                }
                match self.store.delete_system_task(task).await {
                    Ok(()) => deleted += 1,
                    // A concurrent caller asked for it again.
                    Err(error) if error.is_conflict() => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let is_past = page.items.last().is_some_and(|task| !old(&task.item));
            pages.follow(page.next.filter(|_| !is_past));
        }
        Ok(deleted)
    }
}

/// The scope of the task that starts this run.
fn task_id(run: &RunId) -> RunId {
    RunId(format!("{}execute/{run}", RunId::NO_RUN).into())
}

fn object(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value).expect("it has a JSON form") {
        Value::Object(entries) => entries,
        other => unreachable!("{other} is no object"),
    }
}

//! System tasks: starts and evaluations that are left to the runners (document 000 §7.2).

use std::collections::BTreeMap;
use std::sync::Arc;

use afl_engine::id::{RunId, StepId};
use afl_engine::task::{DEFAULT_TASK_LIST, Task, TaskState};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_engine::wire_enum;
use afl_store::queue::{Refusal, SystemTaskRequest};
use afl_store::store::{Stored, bucket};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::drive::{DriveStatus, RunWork};
use crate::error::{Contention, Error, InvalidRequest, NotFound, StateRefusal};
use crate::run_id;
use crate::service::Service;
use crate::start::{Origin, StartRequest, StartResult};

wire_enum! {
    /// What runners do besides the work of steps.
    pub enum SystemTask ("system task") {
        /// Starts a run.
        Execute = "afl:execute",
        /// Evaluates a run.
        Resume = "afl:resume",
    }
}

/// How often a hand-over that met another one looks again.
const TRIES: usize = 16;
const PAGE: usize = 500;

/// What `afl:execute` has to start.
#[derive(Serialize, Deserialize)]
struct ExecutePayload {
    run: RunId,
    program: String,
    workflow: String,
    inputs: Map<String, Value>,
    labels: BTreeMap<String, String>,
    key: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct ResumePayload {
    run: RunId,
}

impl Service {
    /// Leaves a start to a runner, durably. The run will have the id that is returned; refused inputs make a failed
    /// task.
    pub async fn hand_over(&self, request: StartRequest) -> Result<StartResult, Error> {
        let prepared = self.prepare(&request).await?;
        for _ in 0..TRIES {
            if let Some(key) = &request.idempotency_key
                && let Some(started) = self.reserved(key, &prepared).await?
            {
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
            let path = format!("start {}", prepared.workflow);
            let order = order(SystemTask::Execute, &run, path, &start);
            let reservation = prepared.reservation(&request, &run);
            match self.queue.enqueue(order, reservation.as_ref()).await {
                Ok(()) => {}
                Err(error) if error.is_conflict() => continue,
                // The connection failed during the commit; the store knows whether it happened.
                Err(error) if error.is_uncertain() && self.is_handed_over(&run).await? => {}
                Err(error) => return Err(error.into()),
            }
            let status = afl_engine::run::RunStatus::Running;
            return Ok(StartResult { run, status, origin: Origin::New });
        }
        Err(Contention::Start { tries: TRIES }.into())
    }

    /// Leaves the evaluation of a run to a runner, durably. Says under which name the task is listed.
    pub async fn hand_over_evaluation(&self, run: &RunId) -> Result<RunId, Error> {
        self.existing(run).await?;
        let fresh = run_id::fresh(self.store.now().await?, &self.entropy);
        let resume = ResumePayload { run: run.clone() };
        let order = order(SystemTask::Resume, &fresh, format!("evaluate {run}"), &resume);
        let id = order.id.clone();
        self.queue.enqueue(order, None).await?;
        Ok(id)
    }

    /// Does a system task. An error of the store says nothing about the task; any other is its outcome.
    pub async fn do_system_task(
        &self,
        task: SystemTask,
        payload: Map<String, Value>,
    ) -> Result<Map<String, Value>, Error> {
        let result = match task {
            SystemTask::Execute => self.execute(read(payload)?).await?,
            SystemTask::Resume => self.evaluate_now(&read::<ResumePayload>(payload)?.run).await?,
        };
        match result {
            Value::Object(result) => Ok(result),
            other => unreachable!("{other} is no object"),
        }
    }

    async fn execute(&self, start: ExecutePayload) -> Result<Value, Error> {
        let program = start.program.parse().map_err(|_| NotFound::Program { version: start.program })?;
        let request = StartRequest {
            program,
            workflow: Some(start.workflow),
            inputs: start.inputs,
            labels: start.labels,
            idempotency_key: start.key,
        };
        match self.start_as(&start.run, &request).await {
            Ok(StartResult { run, status, origin }) => {
                Ok(json!({"run": run, "status": status, "new": origin == Origin::New}))
            }
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

    async fn evaluate_now(&self, run: &RunId) -> Result<Value, Error> {
        let arrivals = self.arrivals_of(run).await?;
        let driven = self.drive_once(&RunWork { run: run.clone(), arrivals }).await?;
        match driven.status {
            DriveStatus::Rests(status) => Ok(json!({"run": run, "status": status})),
            DriveStatus::Held | DriveStatus::Elsewhere => Ok(json!({"run": run, "status": "held"})),
            DriveStatus::Gone => Err(Error::no_run(run)),
        }
    }

    /// Whether a run of this id exists; the start of one may still wait for a runner.
    pub async fn has_begun(&self, run: &RunId) -> Result<bool, Error> {
        Ok(self.store.run(run).await?.is_some())
    }

    /// The task that will start a run of this id, or has.
    pub async fn start_task(&self, run: &RunId) -> Result<Option<Task>, Error> {
        Ok(self.asking_for(run).await?.map(|task| task.item))
    }

    async fn asking_for(&self, run: &RunId) -> Result<Option<Stored<Task>>, Error> {
        Ok(self.store.task(&id(SystemTask::Execute, run), &StepId::root()).await?)
    }

    /// The same while the start is wanted; an error when it was withdrawn or failed before the run began.
    pub(crate) async fn asked_by(&self, run: &RunId) -> Result<Option<Stored<Task>>, Error> {
        match self.asking_for(run).await? {
            Some(Stored { item: task, .. }) if task.state.is_terminal() => {
                Err(StateRefusal::NotBegun { run: run.clone(), state: task.state, error: task.error.clone() }
                    .into())
            }
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
        match task.state {
            _ if self.store.run(run).await?.is_some() => Ok(false),
            TaskState::Canceled => Ok(true),
            state => {
                Err(StateRefusal::NotBegun { run: run.clone(), state, error: task.error.clone() }.into())
            }
        }
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
        let mut after = None;
        loop {
            // One that cannot be read stays, for the doctor to find; the others go all the same.
            let page = self.store.tasks_in(bucket::ENDED, after.as_ref(), PAGE).await?;
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
            match page.next {
                Some(next) if !is_past => after = Some(next),
                Some(_) | None => return Ok(deleted),
            }
        }
    }
}

/// Under which name the task is kept.
fn id(task: SystemTask, own: &RunId) -> RunId {
    let sort = match task {
        SystemTask::Execute => "execute",
        SystemTask::Resume => "resume",
    };
    RunId(format!("{}{sort}/{own}", RunId::NO_RUN).into())
}

fn order(task: SystemTask, own: &RunId, path: String, payload: &impl Serialize) -> SystemTaskRequest {
    let payload = match serde_json::to_value(payload).expect("a request has a JSON form") {
        Value::Object(payload) => payload,
        other => unreachable!("{other} is no object"),
    };
    SystemTaskRequest {
        id: id(task, own),
        name: task.name().into(),
        path,
        list: DEFAULT_TASK_LIST.into(),
        payload,
    }
}

fn read<T: for<'a> Deserialize<'a>>(payload: Map<String, Value>) -> Result<T, Error> {
    serde_json::from_value(Value::Object(payload))
        .map_err(|error| InvalidRequest::SystemTask { reason: error.to_string() }.into())
}

//! A task as document 000 §3.1 describes it.

use std::collections::BTreeMap;

use afl_engine::attribute::ValueRef;
use afl_engine::evaluation::Wants;
use afl_engine::event::Payload;
use afl_engine::history::TaskEvent;
use afl_engine::id::{RunId, StepId};
use afl_engine::task::{Task, TaskKind, TaskRecord, TaskState};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_store::queue::{LogLine, LogPage};
use serde::Serialize;

use crate::error::Error;
use crate::service::Service;

/// `TaskDefinition`, and what else an operator wants to know.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TaskView {
    /// `run/step`, the idempotency key for systems outside.
    pub uuid: String,
    pub name: String,
    pub kind: TaskKind,
    /// The creator of the task: the run, whichever process evaluated it.
    pub runner_id: RunId,
    /// The agent that holds it, or held it last.
    pub claimer: Option<String>,
    pub workflow_id: RunId,
    /// The hash of the program; a system task has none.
    pub flow_id: Option<String>,
    pub step_id: StepId,
    pub state: TaskState,
    pub created: Millis,
    pub updated: Millis,
    pub error: Option<String>,
    pub task_list_name: String,
    /// Empty: the data of an event is the parameters of its facet.
    pub data_type: &'static str,
    /// A large value stands as its hash and size.
    pub data: Option<Map<String, Value>>,
    /// The step for people.
    pub path: String,
    pub error_kind: Option<String>,
    pub attempts: u32,
    /// How often it was claimed.
    pub claims: u64,
    pub priority: i64,
    pub not_before: Option<Millis>,
    /// When its step's `Timeout` fails it.
    pub times_out: Option<Millis>,
    /// The server that it is left to for a while.
    pub desired_server: Option<String>,
    pub expires: Option<Millis>,
    pub started: Option<Millis>,
    pub ended: Option<Millis>,
}

/// A task with its history and its log.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TaskDetail {
    #[serde(flatten)]
    pub task: TaskView,
    /// The keys of its result that its facet does not declare.
    pub undeclared: Vec<String>,
    pub events: Vec<TaskEvent>,
    /// How many older events are not kept.
    pub dropped_events: u32,
    pub log: Vec<TaskLogPage>,
}

/// Lines that one attempt sent together.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TaskLogPage {
    /// The token of the claim.
    pub claim: u64,
    pub at: Millis,
    pub lines: Vec<LogLine>,
}

impl Service {
    /// In the order of the tasks.
    pub async fn view_tasks(&self, tasks: &[Task]) -> Result<Vec<TaskView>, Error> {
        let mut wanted: BTreeMap<&RunId, Wants> = BTreeMap::new();
        for task in tasks {
            wanted.entry(&task.workflow_id).or_default().events.insert(task.step_id.clone());
        }
        let mut programs: BTreeMap<&RunId, String> = BTreeMap::new();
        let mut payloads: BTreeMap<(&RunId, StepId), Payload> = BTreeMap::new();
        for (run, wants) in wanted {
            if run.is_run() {
                programs.insert(run, self.existing(run).await?.item.workflow_version);
            }
            for (step, event) in self.store.load(run, &wants).await?.events {
                payloads.extend(event.map(|event| ((run, step), event.item.payload)));
            }
        }
        let mut views = Vec::with_capacity(tasks.len());
        for task in tasks {
            let flow_id = programs.get(&task.workflow_id).cloned();
            let data = payloads.remove(&(&task.workflow_id, task.step_id.clone())).map(plain);
            views.push(TaskView::new(task, flow_id, data));
        }
        Ok(views)
    }

    /// A task with its whole history and log.
    pub async fn task_detail(&self, task: &Task) -> Result<TaskDetail, Error> {
        let mut log: Vec<LogPage> = Vec::new();
        loop {
            let more = self.task_log(&task.workflow_id, &task.step_id, log.last()).await?;
            if more.is_empty() {
                break;
            }
            log.extend(more);
        }
        let undeclared = match self.undeclared(task).await {
            // The doctor reports the damage; the rest of the task is shown.
            Err(error) if error.is_damage() => Vec::new(),
            undeclared => undeclared?,
        };
        let page = |LogPage { token, at, lines, .. }| TaskLogPage { claim: token, at, lines };
        Ok(TaskDetail {
            task: self.view_tasks(std::slice::from_ref(task)).await?.remove(0),
            undeclared,
            events: task.events(),
            dropped_events: task.history.dropped(),
            log: log.into_iter().map(page).collect(),
        })
    }

    /// The fields of a task's result that its facet does not declare; the run goes on without them.
    pub async fn undeclared(&self, task: &Task) -> Result<Vec<String>, Error> {
        let run = match task.kind() {
            TaskKind::Event => self.existing(&task.workflow_id).await?.item,
            TaskKind::System => return Ok(Vec::new()),
        };
        let event = self.store.event(&task.workflow_id, &task.step_id).await?;
        let Some(result) = event.and_then(|event| event.item.result) else { return Ok(Vec::new()) };
        let plan = self.plan_of(&run).await?;
        let Some(declared) = plan.result(&task.name) else { return Ok(Vec::new()) };
        let is_declared = |key: &String| declared.iter().any(|parameter| parameter.name == *key);
        Ok(result.into_keys().filter(|key| !is_declared(key)).collect())
    }
}

impl TaskView {
    fn new(task: &Task, flow_id: Option<String>, data: Option<Map<String, Value>>) -> Self {
        // Every field is named, so a new field does not compile until the view shows it or leaves it out.
        let TaskRecord {
            step_id,
            workflow_id,
            name,
            path,
            state,
            task_list_name,
            created,
            turn: _,
            updated,
            policy: _,
            token: _,
            claims,
            deliveries: _,
            attempts,
            not_before,
            times_out,
            desired_server,
            lease,
            question: _,
            error,
            error_kind,
            evidence: _,
            started,
            ended,
            history: _,
        } = &**task;
        let lease = lease.as_ref();
        Self {
            uuid: format!("{workflow_id}/{step_id}"),
            name: name.to_string(),
            kind: task.kind(),
            runner_id: workflow_id.clone(),
            claimer: lease.map(|lease| lease.owner.clone()),
            workflow_id: workflow_id.clone(),
            flow_id,
            step_id: step_id.clone(),
            state: *state,
            created: *created,
            updated: *updated,
            error: error.clone(),
            task_list_name: task_list_name.to_string(),
            data_type: "",
            data,
            path: path.clone(),
            error_kind: error_kind.clone(),
            attempts: *attempts,
            claims: *claims,
            priority: task.priority(),
            not_before: *not_before,
            times_out: *times_out,
            desired_server: desired_server.as_deref().map(str::to_owned),
            expires: lease.map(|lease| lease.expires),
            started: *started,
            ended: *ended,
        }
    }
}

fn plain(payload: Payload) -> Map<String, Value> {
    let value = |held: ValueRef| match held {
        ValueRef::Inline(value) => value,
        ValueRef::Blob(blob) => serde_json::json!({"hash": blob.hash, "bytes": blob.bytes}),
    };
    payload.into_iter().map(|(name, held)| (name, value(held))).collect()
}

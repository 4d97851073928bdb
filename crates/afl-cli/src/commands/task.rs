//! `afl task`: one task, and what a person can do about it.

use std::sync::Arc;

use afl_engine::id::StepId;
use afl_engine::task::{DESIRED_FOR, Task, TaskKind};
use afl_engine::value::Value;
use afl_runtime::agent::{LogStream, TaskEvent};
use afl_runtime::view::TaskDetail;
use afl_runtime::{Again, AnswerResult, ReportedOutcome, Service};
use clap::{Args, Subcommand};

use crate::commands::tasks;
use crate::decide;
use crate::failure::Failure;
use crate::handlers::Trouble;
use crate::json_text;
use crate::output;
use crate::shown::{self, Moment};
use crate::store::{self, IfMissing};

const EXAMPLES: &str = "\
Examples:
  afl task show 06ebz Pay.charge      show it with its log
  afl task done 06ebz Pay.charge --result '{\"receipt\": \"r1\"}'
  afl task retry 06ebz Pay.charge     try it again, by whatever agent takes it";

/// Show a task with its log, or decide its outcome
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: TaskAction,
}

#[derive(Subcommand)]
enum TaskAction {
    /// Show a task and what its handler printed
    Show(ShowTask),
    /// Try a task again that failed; agents take it up
    Retry(RetryTask),
    /// Say that the work was done, with its result: of an open task, or of one that failed
    Done(FinishTask),
    /// Say that the work failed: of an open task, or of an uncertain one
    Fail(FailTask),
    /// Take an open task from its agent, and let its step fail as canceled
    Cancel(TaskTarget),
    /// Continue a step with an empty result, while no agent does its work
    Skip(TaskTarget),
}

#[derive(Args)]
struct TaskTarget {
    /// The run, by its id or the beginning of it
    run: String,
    /// The step, by its path as `afl tasks` prints it, or by its id; a system task, such as @execute/06ebz, has none
    step: Option<String>,
    #[command(flatten)]
    store: store::Options,
}

#[derive(Args)]
struct RetryTask {
    #[command(flatten)]
    one: TaskTarget,
    /// The agent to leave it to, by its name in `afl servers`; after 30 s others may take it too
    #[arg(long, value_name = "SERVER")]
    on: Option<String>,
}

#[derive(Args)]
struct ShowTask {
    #[command(flatten)]
    one: TaskTarget,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct FinishTask {
    #[command(flatten)]
    one: TaskTarget,
    /// The result of the work, as a JSON object
    #[arg(long, value_name = "JSON")]
    result: String,
}

#[derive(Args)]
struct FailTask {
    #[command(flatten)]
    one: TaskTarget,
    /// The reason that the run records
    #[arg(long, value_name = "TEXT", default_value = "given up by a person")]
    message: String,
}

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    match &options.action {
        TaskAction::Show(options) => show(options).await?,
        TaskAction::Retry(options) => retry(options).await?,
        TaskAction::Done(FinishTask { one, result }) => {
            let result = json_text::parse_object(result)
                .map_err(|error| Trouble::BadResult { reason: error.to_string() })?;
            answer(one, &ReportedOutcome::Done(result), "continued with that result").await?;
        }
        TaskAction::Fail(FailTask { one, message }) => {
            answer(one, &ReportedOutcome::Failed { message: message.clone() }, "failed").await?;
        }
        TaskAction::Cancel(one) => {
            let StoredTask { service, task } = one.find().await?;
            if task.kind() == TaskKind::System {
                return withdraw(&service, &task).await;
            }
            service.cancel_task(&task.workflow_id, &task.step_id).await?;
            went_on(&service, &task, "failed as canceled").await?;
        }
        TaskAction::Skip(one) => {
            let StoredTask { service, task } = one.find_step().await?;
            service.skip(&task.workflow_id, &task.step_id).await?;
            went_on(&service, &task, "was skipped").await?;
        }
    }
    Ok(())
}

async fn retry(options: &RetryTask) -> Result<(), Failure> {
    let StoredTask { service, task } = options.one.find().await?;
    let (run, step, on) =
        (&task.workflow_id, task.step_id.clone(), options.on.as_deref().map(Arc::<str>::from));
    match (task.kind(), &on) {
        (TaskKind::Event, None) => drop(service.retry(run, &Again::Step(step)).await?),
        (TaskKind::Event, Some(server)) => {
            drop(service.retry(run, &Again::StepOn(step, server.clone())).await?);
        }
        (TaskKind::System, on) => drop(service.ask_again(run, on.as_ref()).await?),
    }
    let who = on.map_or_else(
        || "when an agent takes it".to_owned(),
        |server| {
            format!(
                "by {server}, or by another agent when it has not taken it after {}",
                shown::span(DESIRED_FOR)
            )
        },
    );
    output::say(&shown::inert(&format!("{} is tried again {who}\n", task.path)));
    Ok(())
}

async fn answer(one: &TaskTarget, verdict: &ReportedOutcome, how: &str) -> Result<(), Failure> {
    let StoredTask { service, task } = one.find_step().await?;
    match service.answer(&task.workflow_id, &task.step_id, verdict).await? {
        AnswerResult::Now => went_on(&service, &task, how).await,
        AnswerResult::Before => Err(ended(&task)),
    }
}

struct StoredTask {
    service: Service,
    task: Task,
}

impl TaskTarget {
    async fn find(&self) -> Result<StoredTask, Failure> {
        let service = self.store.open(IfMissing::Refuse).await?;
        let run = tasks::find(&service, &self.run).await?;
        let step = match &self.step {
            _ if !run.is_run() => StepId::root(),
            Some(step) => service.find_step(&run, step).await?,
            None => return Err(Trouble::NoStepNamed { run: run.to_string() }.into()),
        };
        let Some(task) = service.task(&run, &step).await? else {
            let step = self.step.clone().unwrap_or_else(|| step.to_string());
            return Err(Trouble::NoTask { run: run.to_string(), step }.into());
        };
        Ok(StoredTask { service, task })
    }

    /// Only a task that is a step's.
    async fn find_step(&self) -> Result<StoredTask, Failure> {
        let found = self.find().await?;
        match found.task.kind() {
            TaskKind::Event => Ok(found),
            TaskKind::System => {
                let (id, path) = (found.task.workflow_id.to_string(), found.task.path.clone());
                Err(Trouble::NoStepOfSystemTask { id, path }.into())
            }
        }
    }
}

fn ended(task: &Task) -> Failure {
    let (run, path) = (task.workflow_id.to_string(), task.path.clone());
    let step = match task.kind() {
        TaskKind::Event => Some(path.clone()),
        TaskKind::System => None,
    };
    Trouble::TaskEnded { run, path, step, state: task.state.name() }.into()
}

async fn withdraw(service: &Service, task: &Task) -> Result<(), Failure> {
    if task.state.is_terminal() {
        return Err(ended(task));
    }
    service.withdraw(&task.workflow_id).await?;
    output::say(&format!("`{}` is canceled\n", task.path));
    Ok(())
}

/// Evaluates the run, so that the next command shows the result.
async fn went_on(service: &Service, task: &Task, how: &str) -> Result<(), Failure> {
    service.turn().await?;
    output::say(&format!("{} {how}\n", task.path));
    Ok(())
}

async fn show(options: &ShowTask) -> Result<(), Failure> {
    let StoredTask { service, task } = options.one.find().await?;
    let detail = service.task_detail(&task).await?;
    if options.json {
        return output::view(&detail);
    }
    let object = serde_json::to_value(&detail.task).expect("a task has a JSON form");
    let is_set = |value: &Value| !value.is_null() && value.as_str() != Some("");
    let fields = object.as_object().into_iter().flatten().filter(|(_, value)| is_set(value));
    let mut lines: Vec<String> =
        fields.map(|(name, value)| format!("{name:<14} {}", shown::field(name, value, &TIMES))).collect();
    lines.extend(history(&detail));
    lines.extend(
        detail
            .undeclared
            .iter()
            .map(|key| format!("the result has `{}`, which its facet does not declare", shown::inert(key))),
    );
    if !detail.log.is_empty() {
        lines.push(String::new());
    }
    for page in &detail.log {
        lines.extend(page.lines.iter().map(|line| {
            let stream = match line.stream {
                LogStream::Stdout | LogStream::System => "",
                LogStream::Stderr => "stderr: ",
            };
            format!("[{}] {stream}{}", Moment(page.at).local(), shown::inert(&line.text))
        }));
    }
    output::lines(&lines)?;
    decide::advise(&service, [&task], &options.one.store.flag()).await
}

/// A line for each thing that happened to the task.
fn history(detail: &TaskDetail) -> Vec<String> {
    let mut lines = vec![String::new()];
    lines.extend(detail.events.iter().map(|TaskEvent { event_type, created, actor, message, .. }| {
        let line = format!("{} {:<9} {actor}  {message}", Moment(*created).local(), event_type.name());
        shown::inert(&line.replace('\n', " ")).trim_end().to_owned()
    }));
    match detail.dropped_events {
        0 => {}
        dropped => lines.push(format!("{dropped} older moves are not kept")),
    }
    lines
}

const TIMES: [&str; 6] = ["created", "updated", "started", "ended", "not_before", "expires"];

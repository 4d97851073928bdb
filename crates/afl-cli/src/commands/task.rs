//! `afl task`: one task, and what a person can do about it.

use std::fmt::Write;

use afl_engine::id::{RunId, StepId};
use afl_engine::task::{Task, TaskKind};
use afl_engine::value::{Map, Value};
use afl_runtime::agent::{Continued, EventError, LogPage, LogStream};
use afl_runtime::{Again, Service};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::commands::tasks;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::handlers::Trouble;
use crate::output;
use crate::shown::{self, Moment};
use crate::store::{self, Missing};

const EXAMPLES: &str = "\
Examples:
  afl task show 06ebz Pay.charge                         show it with its log
  afl task skip 06ebz Pay.charge --result '{\"receipt\": \"r1\"}'
  afl task retry 06ebz Pay.charge                        try it again, by whatever agent takes it";

/// Show a task with its log, or decide what becomes of it
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show a task and what its handler printed
    Show(Show),
    /// Try a task again that failed; agents take it up
    Retry(One),
    /// Take an open task from whoever does it, and let its step fail as canceled
    Cancel(One),
    /// Take an open task from whoever does it, and let its step go on with a result, or an empty one
    Skip(Skip),
}

#[derive(Args)]
struct One {
    /// The run, by its id or the beginning of it
    run: String,
    /// The step, by its path as `afl tasks` prints it, or by its id; a system task, such as @execute/06ebz, has none
    #[arg(default_value = "")]
    step: String,
    #[command(flatten)]
    store: store::Options,
}

#[derive(Args)]
struct Show {
    #[command(flatten)]
    one: One,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Skip {
    #[command(flatten)]
    one: One,
    /// What the step returns, as a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    result: String,
}

/// What a `catch` sees as the type of the error.
const CANCELED: &str = "canceled";

pub(crate) async fn run(options: &Options) -> Result<Exit, Failure> {
    match &options.action {
        Action::Show(options) => show(options).await?,
        Action::Retry(one) => {
            let Found { service, task } = one.find().await?;
            match task.kind() {
                TaskKind::Event => {
                    service.retry(&task.workflow_id, &Again::Step(task.step_id.clone())).await?;
                }
                TaskKind::System => {
                    service.ask_again(&task.workflow_id).await?;
                }
            }
            output::say(&format!("{} is tried again when an agent takes it\n", task.path));
        }
        Action::Cancel(one) => {
            let Found { service, task } = one.find().await?;
            if task.kind() == TaskKind::System {
                return withdraw(&service, &task).await;
            }
            let message = "canceled by an operator".to_owned();
            let error = EventError { kind: CANCELED.to_owned(), message };
            let told = service.fail_step(&task.workflow_id, &task.step_id, &error).await?;
            went_on(&service, &task, &told, "failed as canceled").await?;
        }
        Action::Skip(skip) => {
            let result: Map<String, Value> = serde_json::from_str(&skip.result)
                .map_err(|error| Trouble::BadResult { reason: error.to_string() })?;
            let Found { service, task } = skip.one.find().await?;
            if task.kind() == TaskKind::System {
                return Err(Trouble::NoStepOfSystemTask { path: task.path }.into());
            }
            let told = service.continue_step(&task.workflow_id, &task.step_id, &result).await?;
            went_on(&service, &task, &told, "went on with that result").await?;
        }
    }
    Ok(Exit::Fine)
}

struct Found {
    service: Service,
    task: Task,
}

impl One {
    async fn find(&self) -> Result<Found, Failure> {
        let service = self.store.open(Missing::Refuse).await?;
        let run = tasks::find(&service, &self.run).await?;
        let step = if run.is_run() { service.find_step(&run, &self.step).await? } else { StepId::root() };
        match service.store().task(&run, &step).await? {
            Some(task) => Ok(Found { service, task: task.item }),
            None => Err(Trouble::NoTask { run: run.to_string(), step: self.step.clone() }.into()),
        }
    }
}

async fn withdraw(service: &Service, task: &Task) -> Result<Exit, Failure> {
    if task.state.is_terminal() {
        let (run, path) = (task.workflow_id.to_string(), task.path.clone());
        return Err(Trouble::TaskEnded { run, path, state: task.state.name() }.into());
    }
    service.withdraw(&task.workflow_id).await?;
    output::say(&format!("`{}` is canceled\n", task.path));
    Ok(Exit::Fine)
}

/// Evaluates the run, so that whoever looks next sees what came of it.
async fn went_on(service: &Service, task: &Task, told: &Continued, how: &str) -> Result<(), Failure> {
    match told {
        Continued::Now(_) => {
            service.turn().await?;
            output::say(&format!("{} {how}\n", task.path));
            Ok(())
        }
        Continued::Before => {
            let (run, path) = (task.workflow_id.to_string(), task.path.clone());
            Err(Trouble::TaskEnded { run, path, state: task.state.name() }.into())
        }
    }
}

async fn show(options: &Show) -> Result<(), Failure> {
    let Found { service, task } = options.one.find().await?;
    let log = log(&service, &task.workflow_id, &task.step_id).await?;
    if options.json {
        let mut object = tasks::entry(&task);
        object["log"] = log.iter().map(page).collect();
        return output::json(&object);
    }
    let entry = tasks::entry(&task);
    let fields = entry.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let mut text = String::new();
    for (name, value) in fields {
        let value = match (name.as_str(), value) {
            (name, Value::Number(at)) if TIMES.contains(&name) => {
                Moment(afl_engine::time::Millis(at.as_i64().unwrap_or_default())).local()
            }
            (_, Value::String(text)) => shown::inert(text),
            (_, other) => other.to_string(),
        };
        writeln!(text, "{name:<9} {value}").expect(ANY_TEXT);
    }
    if !log.is_empty() {
        text.push('\n');
    }
    for page in &log {
        for line in &page.lines {
            let stream = match line.stream {
                LogStream::Stdout | LogStream::System => "",
                LogStream::Stderr => "stderr: ",
            };
            let line = shown::inert(&line.text);
            writeln!(text, "[{}] {stream}{line}", Moment(page.at).local()).expect(ANY_TEXT);
        }
    }
    output::data(&text)
}

const ANY_TEXT: &str = "a string takes any text";
const TIMES: [&str; 5] = ["created", "updated", "ended", "notBefore", "expires"];

async fn log(service: &Service, run: &RunId, step: &StepId) -> Result<Vec<LogPage>, Failure> {
    let mut log: Vec<LogPage> = Vec::new();
    loop {
        let more = service.task_log(run, step, log.last()).await?;
        if more.is_empty() {
            return Ok(log);
        }
        log.extend(more);
    }
}

fn page(page: &LogPage) -> Value {
    json!({"claim": page.token, "at": page.at, "lines": page.lines})
}

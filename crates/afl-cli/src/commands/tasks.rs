//! `afl tasks`: lists the work that runs wait for.

use afl_engine::task::{Task, TaskState};
use afl_runtime::{EXECUTE, RunId, Service, TaskList, TaskQuery};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::json;

use crate::commands::runs::meant;
use crate::decide;
use crate::failure::Failure;
use crate::handlers::Trouble;
use crate::output;
use crate::shown::{self, Moment};
use crate::store::{IfMissing, ListOptions, limit};

const EXAMPLES: &str = "\
Examples:
  afl tasks                             list all that is open, the oldest first
  afl tasks --state pending --name Charge
  afl tasks --state failed              list what failed, the newest runs first
  afl tasks --run 06ebz                 list all tasks of a run, those that have ended too";

/// List tasks: their state, their agent, and their attempts
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Only tasks in this state; those that are completed or ignored are listed with `--run`, or with `--name
    /// afl:execute`
    #[arg(long, value_parser = states())]
    state: Option<TaskState>,
    /// Only tasks of this facet, by its whole or its short name
    #[arg(long, value_name = "FACET")]
    name: Option<String>,
    /// Only tasks of this run, by its id or the beginning of it
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// How many to list
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = limit)]
    limit: usize,
    #[command(flatten)]
    list: ListOptions,
}

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let is_system = options.name.as_deref() == Some(EXECUTE);
    if let (Some(state @ (TaskState::Completed | TaskState::Ignored)), None) = (options.state, &options.run)
        && !is_system
    {
        return Err(Trouble::EndedTasks { state: state.name() }.into());
    }
    let service = options.list.store.open(IfMissing::Refuse).await?;
    let run = match &options.run {
        Some(run) => Some(find(&service, run).await?),
        None => None,
    };
    // One more, to know whether there are more.
    let limit = options.limit.saturating_add(1);
    let query = TaskQuery { run, state: options.state, name: options.name.clone(), after: None, limit };
    let TaskList { mut tasks, unreadable, .. } = service.tasks(&query).await?;
    let is_cut = tasks.len() > options.limit;
    tasks.truncate(options.limit);
    for trouble in &unreadable {
        output::say(&format!("{trouble}\n"));
    }
    if options.list.json {
        let tasks = service.view_tasks(&tasks).await?;
        output::json(&json!({"tasks": tasks, "more": is_cut}))?;
    } else if tasks.is_empty() {
        output::say(&match &query.name {
            Some(name) => format!("no tasks of `{name}`{}\n", meant(service.closest_task(&query).await?)),
            None => "no tasks\n".to_owned(),
        });
    } else {
        output::table(&["RUN", "STEP", "FACET", "STATE", "TRIED", "SINCE", "REMARK"], tasks.iter().map(row))?;
        decide::advise(&service, &tasks, &options.list.store.flag()).await?;
        if is_cut {
            output::say("there are more; `--limit` lists them\n");
        }
    }
    Ok(())
}

/// The run, or the name of a system task as it is listed.
pub(crate) async fn find(service: &Service, given: &str) -> Result<RunId, Failure> {
    let name = RunId(given.into());
    if name.is_run() { Ok(service.find(given).await?) } else { Ok(name) }
}

/// By their names, which the help lists, or by other names of the documents.
fn states() -> impl TypedValueParser<Value = TaskState> {
    let named = |state: &TaskState| PossibleValue::new(state.name()).aliases(state.aliases().iter().copied());
    PossibleValuesParser::new(TaskState::ALL.iter().map(named))
        .map(|name| TaskState::spelled(&name).expect("the parser admits no other"))
}

fn row(task: &Task) -> Vec<String> {
    vec![
        task.workflow_id.to_string(),
        task.path.clone(),
        task.name.to_string(),
        task.state.name().to_owned(),
        task.attempts.to_string(),
        Moment(task.updated).from(Moment::now()),
        shown::inert(&shown::cut(&remark(task).replace('\n', " "), REMARK_CHARS)),
    ]
}

const REMARK_CHARS: usize = 80;

/// The agent that does it, the time of its next attempt, or its error.
fn remark(task: &Task) -> String {
    let now = Moment::now();
    match (task.state, &task.lease, task.not_before, &task.error) {
        (TaskState::Running | TaskState::AwaitingResponse, Some(lease), ..) => lease.owner.clone(),
        (TaskState::Pending, _, Some(at), error) => {
            let error = error.as_ref().map(|error| format!(" after: {error}")).unwrap_or_default();
            format!("again {}{error}", Moment(at).from(now))
        }
        (_, _, _, Some(error)) => error.clone(),
        (_, _, _, None) => String::new(),
    }
}

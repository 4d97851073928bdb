//! `afl runs`: lists runs.

use afl_engine::run::{Run, RunStatus};
use afl_runtime::RunQuery;
use afl_runtime::view::RunSummary;
use afl_store::store::RunState;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::json;

use crate::failure::Failure;
use crate::launch::labels;
use crate::output;
use crate::shown::{self, Moment};
use crate::store::{IfMissing, ListOptions, limit};
use crate::when;

const EXAMPLES: &str = "\
Examples:
  afl runs                          list the newest runs
  afl runs --state failed --since 1d
  afl runs -w Pay --limit 5 --json";

/// List runs, the newest first
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Only runs in this state
    #[arg(long, value_parser = states())]
    state: Option<RunState>,
    /// Only runs of this workflow, by its whole or its short name
    #[arg(short, long, value_name = "NAME")]
    workflow: Option<String>,
    /// Only runs with this label; can be repeated
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// Only runs that were started since then: a span, such as 2h or 30d, or a date
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// How many to list
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = limit)]
    limit: usize,
    #[command(flatten)]
    list: ListOptions,
}

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let since = options.since.as_deref().map(when::past).transpose()?;
    let labels = labels(&options.labels)?.into_iter().collect();
    let service = options.list.store.open(IfMissing::Refuse).await?;
    let query = RunQuery {
        state: options.state,
        workflow: options.workflow.clone(),
        since,
        labels,
        after: None,
        // One more, to know whether there are more.
        limit: options.limit.saturating_add(1),
    };
    let mut list = service.runs(&query).await?;
    let is_cut = list.runs.len() > options.limit;
    list.runs.truncate(options.limit);
    for trouble in &list.unreadable {
        output::say(&format!("{trouble}\n"));
    }
    if options.list.json {
        let runs: Vec<RunSummary> = list.runs.iter().map(RunSummary::from).collect();
        output::json(&json!({"runs": runs, "more": is_cut}))?;
    } else if list.runs.is_empty() {
        output::say(&match &options.workflow {
            Some(name) => format!("no runs of `{name}`{}\n", meant(service.closest_workflow(name).await?)),
            None => "no runs\n".to_owned(),
        });
    } else {
        output::table(&["RUN", "WORKFLOW", "STATE", "STARTED", "TOOK", "STEPS"], list.runs.iter().map(row))?;
        if is_cut {
            output::say("there are more; `--limit` lists them\n");
        }
    }
    Ok(())
}

/// The suggestion for a name that does not exist.
pub(crate) fn meant(closest: Option<String>) -> String {
    closest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// By their names, which the help lists.
fn states() -> impl TypedValueParser<Value = RunState> {
    let waiting = PossibleValue::new(RunState::Waiting.name()).alias(RunStatus::Paused.name());
    let values = RunState::ALL.iter().map(|shelf| match shelf {
        // As JSON calls it, by the documents' name.
        RunState::Waiting => waiting.clone(),
        shelf => PossibleValue::new(shelf.name()),
    });
    PossibleValuesParser::new(values).map(|name| name.parse().unwrap_or(RunState::Waiting))
}

fn row(run: &Run) -> Vec<String> {
    let took = shown::took(run.created, run.ended).unwrap_or_default();
    let steps = format!("{}/{}", run.counts.complete, run.counts.steps);
    vec![
        run.id.to_string(),
        run.workflow.to_string(),
        state(run).into(),
        Moment(run.created).from(Moment::now()),
        took,
        steps,
    ]
}

/// The state of a run, as `--state` takes it.
pub(crate) fn state(run: &Run) -> &'static str {
    RunState::of(run).name()
}

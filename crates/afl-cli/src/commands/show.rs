//! `afl show`: one run with its steps.

use afl_engine::id::RunId;
use afl_engine::run::Run;
use afl_lang::render::Color;
use afl_runtime::{Service, StepMove};
use clap::Args;
use serde_json::json;

use crate::commands::runs;
use crate::decide;
use crate::failure::Failure;
use crate::output;
use crate::report::count;
use crate::shown::{self, Moment};
use crate::states;
use crate::store::{IfMissing, ObjectOptions};
use crate::tree;

const EXAMPLES: &str = "\
Examples:
  afl show 06ebz                 show a run and its steps
  afl show 06ebz 'Pay.items[3]'  show one step and the steps within it
  afl show 06ebz --iteration 4   show what the fourth iteration changed";

/// How many steps are shown unless all are asked for.
const SHOWN: usize = 1_000;

/// Show a run: its steps as a tree, with their states, times and values
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The run, by its id or the beginning of it
    run: String,
    /// Show this step only, with the steps within it
    step: Option<String>,
    /// Show which steps one iteration changed, and where they came to rest
    #[arg(long, value_name = "NUMBER", conflicts_with = "step")]
    iteration: Option<u64>,
    /// Show every step, however many there are
    #[arg(long)]
    all: bool,
    /// Print the state without ids, times and history: equal runs give equal texts on every store
    #[arg(long, conflicts_with_all = ["step", "iteration", "json"])]
    canonical: bool,
    #[command(flatten)]
    object: ObjectOptions,
}

pub(crate) async fn run(options: &Options, color: Color) -> Result<(), Failure> {
    let service = options.object.store.open(IfMissing::Refuse).await?;
    let id = service.find(&options.run).await?;
    match options.iteration {
        _ if options.canonical => output::data(&service.canonical(&id).await?)?,
        Some(iteration) => show_iteration(&service, &id, iteration, options.object.json).await?,
        None => show_run(options, &service, &id, color).await?,
    }
    Ok(())
}

async fn show_run(options: &Options, service: &Service, id: &RunId, color: Color) -> Result<(), Failure> {
    let within = match &options.step {
        Some(step) => Some(service.find_step(id, step).await?),
        None => None,
    };
    let run = service.run(id).await?;
    let limit = if options.all { usize::MAX } else { SHOWN };
    let list = service.first_steps(id, within.as_ref(), limit).await?;
    if options.object.json {
        return output::view(&service.run_detail(&run, &list).await?);
    }
    let color = if output::is_terminal() { color } else { Color::Plain };
    output::lines(&heading(&run))?;
    output::data(&tree::text(&list.steps, color))?;
    let tasks = list.steps.iter().filter_map(|view| view.task.as_ref());
    decide::advise(service, tasks, &options.object.store.flag()).await?;
    if list.next.is_some() {
        output::say(&format!(
            "the first {} are shown; `--all` shows every step\n",
            count(list.steps.len(), "step")
        ));
    }
    Ok(())
}

fn heading(run: &Run) -> Vec<String> {
    let steps = count(usize::try_from(run.counts.steps).unwrap_or(usize::MAX), "step");
    let iterations = count(usize::try_from(run.iterations).unwrap_or(usize::MAX), "iteration");
    let (started, ago) = (Moment(run.created).local(), Moment(run.created).from(Moment::now()));
    let took = shown::took(run.created, run.ended).map(|took| format!(", took {took}")).unwrap_or_default();
    let mut lines = vec![
        format!("run {} of {}: {}", run.id, run.workflow, runs::state(run)),
        format!("started {started} ({ago}){took}; {steps}, {iterations}"),
    ];
    lines.extend(run.error.iter().map(|error| format!("error: {}", shown::indented(&error.to_string()))));
    let labels = run.labels.iter().map(|(name, value)| shown::inert(&format!("label {name}={value}")));
    lines.extend(labels.chain([String::new()]));
    lines
}

async fn show_iteration(service: &Service, id: &RunId, iteration: u64, as_json: bool) -> Result<(), Failure> {
    let run = service.run(id).await?;
    if iteration == 0 || iteration > run.iterations {
        let had = usize::try_from(run.iterations).unwrap_or(usize::MAX);
        return Err(Failure::NoIteration { run: id.to_string(), iteration, had });
    }
    let moved = service.iteration(id, iteration).await?;
    if as_json {
        return output::json(&json!({"run": id, "iteration": iteration, "changed": moved}));
    }
    if moved.is_empty() {
        output::say("nothing changed: the run had come to a fixed point\n");
        return Ok(());
    }
    let rows = moved
        .into_iter()
        .map(|StepMove { path, state, .. }| vec![path, states::phrase(state).into(), state.to_string()]);
    output::table(&["STEP", "THEN", "STATE"], rows)
}

//! `afl start`: starts a workflow and leaves it to others.

use afl_engine::run::RunStatus;
use afl_engine::task::DEFAULT_TASK_LIST;
use afl_lang::render::Color;
use afl_runtime::{EXECUTE, Service, StartResult};
use clap::Args;

use crate::failure::Failure;
use crate::launch::{self, MessageFilter};
use crate::output;
use crate::progress::{ProgressLine, Talk};
use crate::store::{self, IfMissing};
use crate::telemetry;

const EXAMPLES: &str = "\
Examples:
  afl start pay.afl -i amount=30             print the id of the new run
  afl start pay.afl --key order-17 -i …      start it once, however often this is called
  afl start pay.afl --enqueue                leave the start itself to a runner, too
  afl resume $(afl start pay.afl) --mock m.json";

/// Start a workflow and leave it to agents
///
/// When it returns, the run is durable, and evaluated until it needs work from outside. With `--enqueue`, the request is
/// durable and nothing has begun. The id of the run goes to standard output.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(flatten)]
    launch: launch::Options,
    /// Only ask for the start: `afl agent --profile service` begins the run, which has the id printed here
    #[arg(long)]
    enqueue: bool,
    /// Print one JSON object with the run and its status
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    telemetry: telemetry::Options,
    #[command(flatten)]
    store: store::Options,
}

pub(crate) async fn run(options: &Options, color: Color) -> Result<(), Failure> {
    if !options.store.is_kept() {
        return Err(Failure::StartedInMemory);
    }
    let shown = if options.json { MessageFilter::Errors } else { MessageFilter::All };
    let launch = options.launch.prepare(None, color, shown)?;
    let service = options.store.open(IfMissing::Create).await?;
    let (service, telemetry) = options.telemetry.begin(service, &ProgressLine::new(Talk::LogsOnly), color);
    let started =
        if options.enqueue { launch.hand_over(&service).await } else { launch.start(&service).await };
    telemetry.finish().await;
    let started = started?;
    let is_new = started.is_new;
    if options.json {
        return output::view(&started);
    }
    let (did, now) = if (options.enqueue && is_new) || is_waiting(&service, &started).await? {
        let served = service.online_servers().await?.can_do(EXECUTE, DEFAULT_TASK_LIST, &[]);
        let now = if served {
            "a runner starts it".to_owned()
        } else {
            format!("no runner is online: start {}", options.store.command("agent --profile service"))
        };
        (if is_new { "handed over" } else { "was handed over before with this key" }, now)
    } else {
        let command = |verb: &str| options.store.command(&format!("{verb} {}", started.run));
        let now = match started.status {
            RunStatus::Paused => format!("it waits, and {} shows for what", command("why")),
            RunStatus::Running => format!("it is not at its end, and {} continues it", command("resume")),
            RunStatus::Failed => format!("it failed, and {} shows why", command("why")),
            RunStatus::Completed => "it is complete".into(),
            RunStatus::Canceled => "it was canceled".into(),
        };
        (if is_new { "started" } else { "was started before with this key" }, now)
    };
    output::say(&format!("{did}; {now}\n"));
    output::data(&format!("{}\n", started.run))
}

/// Whether the id is only reserved, and the run left to a runner that has not begun it.
async fn is_waiting(service: &Service, started: &StartResult) -> Result<bool, Failure> {
    match started.status {
        RunStatus::Running => Ok(!service.has_begun(&started.run).await?),
        RunStatus::Paused | RunStatus::Failed | RunStatus::Completed | RunStatus::Canceled => Ok(false),
    }
}

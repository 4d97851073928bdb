//! `afl run`: starts a workflow and drives it to its end.

use afl_lang::render::Color;
use clap::Args;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::foreground::{self, Foreground};
use crate::launch::{self, Launch, MessageFilter};
use crate::local_handlers::LocalHandlers;
use crate::mock::Mock;
use crate::store::{self, IfMissing};

const EXAMPLES: &str = "\
Examples:
  afl run hello.afl                                       run the only workflow
  afl run pay.afl -w shop.Pay -i amount=30 -i cur=EUR     choose one and give inputs
  afl run pay.afl --handlers handlers/                    do event facets with Python functions
  afl run pay.afl --inputs order.json --mock answers.json answer event facets from a file
  afl run pay.afl --json --store memory:                  keep nothing, print one object";

/// Start a workflow and drive it to its end
///
/// Outputs go to standard output as JSON. Event facets are done by the handlers of `--handlers`, or of a handlers.toml
/// beside the program; `--mock` goes before them. Those that have none wait for agents: the run is kept, and the command
/// ends with code 4 and says how to go on. So does a run whose next timer is further off than `--wait`. Ctrl-C and
/// SIGTERM keep the run too.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(flatten)]
    launch: launch::Options,
    #[command(flatten)]
    pub(crate) foreground: foreground::Options,
    #[command(flatten)]
    pub(crate) store: store::Options,
}

pub(crate) async fn run(options: &Options, color: Color) -> Result<Exit, Failure> {
    let (launch, mock) = prepare(options, color)?;
    Box::pin(start(options, launch, mock.as_ref(), color)).await
}

/// All that can be wrong before a store is touched.
pub(crate) fn prepare(options: &Options, color: Color) -> Result<(Launch, Option<Mock>), Failure> {
    let mock = options.foreground.mock()?;
    let shown = if options.foreground.json { MessageFilter::Errors } else { MessageFilter::All };
    let launch = options.launch.prepare(mock.as_ref(), color, shown)?;
    Ok((launch, mock))
}

async fn start(
    options: &Options,
    launch: Launch,
    mock: Option<&Mock>,
    color: Color,
) -> Result<Exit, Failure> {
    let doing = options.foreground.or_handlers(options.launch.handlers_beside());
    let given = doing.handlers().await?;
    let (program, workflow) = (&launch.program, &launch.workflow);
    let handlers = LocalHandlers::new(mock, given, &doing.capabilities, program, workflow, color)?;
    let service = options.store.open(IfMissing::Create).await?;
    let foreground = Foreground::new(service, handlers, &doing, &options.store, color);
    let workflow = launch.workflow.clone();
    let started = foreground.unless_stopped(launch.start(&foreground.service)).await;
    let started = started.unwrap_or_else(|signal| {
        foreground.progress.clear();
        Err(Failure::StoppedStarting { signal })
    })?;
    foreground.progress.say(&format!("run {} of {workflow}", started.run));
    foreground.drive(&started.run).await
}

//! `afl resume` and `afl retry`: let a run go on, or try its failures again, and drive it here.

use afl_engine::run::Control;
use afl_lang::render::Color;
use afl_runtime::Again;
use clap::Args;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::foreground::{self, Foreground};
use crate::report::count;
use crate::store;

/// Let a run go on, and drive it to its end
///
/// Takes up a run that was paused, that waits, or whose process was stopped or died. Ends as `afl run` does.
#[derive(Args)]
pub(crate) struct ResumeRun {
    /// The run, by its id or the beginning of it
    run: String,
    #[command(flatten)]
    foreground: foreground::Options,
    #[command(flatten)]
    store: store::Options,
}

pub(crate) async fn resume(options: &ResumeRun, color: Color) -> Result<Exit, Failure> {
    let (foreground, id) = Foreground::of(&options.run, &options.foreground, &options.store, color).await?;
    let run = foreground.service.run(&id).await?;
    match run.control {
        Control::Hold if !run.status.is_terminal() => foreground.service.resume(&id).await?,
        Control::Hold | Control::Go | Control::Cancel => {}
    }
    foreground.drive(&id).await
}

const RETRY_EXAMPLES: &str = "\
Examples:
  afl retry 06ebz                        try again all that failed in this run
  afl retry 06ebz 'Pay.items[3].charge'  try one step, or what failed within it";

/// Try again what failed in a run, keeping all that is complete
///
/// Then drives the run to its end, as `afl resume` does.
#[derive(Args)]
#[command(after_help = RETRY_EXAMPLES)]
pub(crate) struct RetryRun {
    /// The run, by its id or the beginning of it
    run: String,
    /// The step, by its path as `afl show` prints it, or by its id; without it, all that failed
    step: Option<String>,
    #[command(flatten)]
    foreground: foreground::Options,
    #[command(flatten)]
    store: store::Options,
}

pub(crate) async fn retry(options: &RetryRun, color: Color) -> Result<Exit, Failure> {
    let (foreground, id) = Foreground::of(&options.run, &options.foreground, &options.store, color).await?;
    let again = match &options.step {
        Some(step) => Again::Within(foreground.service.find_step(&id, step).await?),
        None => Again::Run,
    };
    let opened = foreground.service.retry(&id, &again).await?;
    foreground.progress.say(&format!("trying {} of run {id} again", count(opened.len(), "step")));
    foreground.drive(&id).await
}

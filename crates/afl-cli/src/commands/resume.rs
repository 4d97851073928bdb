//! `afl resume`: lets a run go on and drives it here.

use afl_engine::run::Control;
use afl_lang::render::Color;
use clap::Args;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::foreground::{self, Foreground};
use crate::store;

/// Let a run go on, and drive it to its end
///
/// Takes up a run that was paused, that waits, or whose process was stopped or died. Ends as `afl run` does.
#[derive(Args)]
pub(crate) struct Options {
    /// The run, by its id or the beginning of it
    run: String,
    #[command(flatten)]
    foreground: foreground::Options,
    #[command(flatten)]
    store: store::Options,
}

pub(crate) async fn run(options: &Options, color: Color) -> Result<Exit, Failure> {
    let (foreground, id) = Foreground::of(&options.run, &options.foreground, &options.store, color).await?;
    let run = foreground.service.run(&id).await?;
    match run.control {
        Control::Hold if !run.status.is_terminal() => foreground.service.resume(&id).await?,
        Control::Hold | Control::Go | Control::Cancel => {}
    }
    foreground.drive(&id).await
}

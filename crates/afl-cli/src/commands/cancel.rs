//! `afl cancel`: ends a run.

use afl_runtime::CancelResult;
use clap::Args;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::one_run::RunTarget;

/// End a run: no work of it is handed out any more, late results are refused
///
/// What the run has done stays readable. A canceled run cannot be resumed. One that was started with `--enqueue` and has not
/// begun will not begin.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    run: RunTarget,
}

pub(crate) async fn run(options: &Options) -> Result<Exit, Failure> {
    let (service, id) = options.run.find_begun_or_not().await?;
    match service.cancel(&id).await? {
        CancelResult::Run => options.run.tell(&service, &id, &format!("run {id} is canceled")).await,
        CancelResult::Start => options.run.tell_taken_back(&id),
    }
}

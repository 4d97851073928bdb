//! `afl pause`: holds a run.

use clap::Args;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::one_run::RunTarget;

/// Hold a run: nothing of it is evaluated or handed out until `afl resume`
///
/// Work that agents have already may be finished; its results wait.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    run: RunTarget,
}

pub(crate) async fn run(options: &Options) -> Result<Exit, Failure> {
    let (service, id) = options.run.find().await?;
    service.pause(&id).await?;
    let resume = options.run.store.command(&format!("resume {id}"));
    options.run.tell(&service, &id, &format!("run {id} is held; {resume} lets it go on")).await
}

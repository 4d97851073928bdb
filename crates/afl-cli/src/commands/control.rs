//! `afl pause` and `afl cancel`: hold a run, or end it.

use afl_engine::id::RunId;
use afl_engine::run::{Control, Run, RunStatus};
use afl_runtime::view::RunControl;
use afl_runtime::{CancelResult, Error, Service, StateRefusal};
use clap::Args;

use crate::failure::Failure;
use crate::output;
use crate::store::{self, IfMissing};

#[derive(Args)]
pub(crate) struct RunTarget {
    /// The run, by its id or the beginning of it
    run: String,
    /// Print one JSON object with the run and its status
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: store::Options,
}

pub(crate) async fn pause(target: &RunTarget) -> Result<(), Failure> {
    let service = target.store.open(IfMissing::Refuse).await?;
    let id = service.find(&target.run).await?;
    service.pause(&id).await?;
    let resume = target.store.command(&format!("resume {id}"));
    target.tell(&service, &id, &format!("run {id} is held; {resume} lets it go on")).await
}

pub(crate) async fn cancel(target: &RunTarget) -> Result<(), Failure> {
    let service = target.store.open(IfMissing::Refuse).await?;
    let id = match service.find(&target.run).await {
        Err(Error::Refused(StateRefusal::NotBegun { run, .. })) => run,
        found => found?,
    };
    match service.cancel(&id).await? {
        CancelResult::Run => return target.tell(&service, &id, &format!("run {id} is canceled")).await,
        CancelResult::Start if target.json => {
            output::view(&RunControl { run: id, status: RunStatus::Canceled, control: Control::Cancel })?;
        }
        CancelResult::Start => {
            output::say(&format!("run {id} had not begun, and will not: its start is taken back\n"));
        }
    }
    Ok(())
}

impl RunTarget {
    /// How the run stands now: an object for programs, this sentence for people.
    async fn tell(&self, service: &Service, id: &RunId, sentence: &str) -> Result<(), Failure> {
        if self.json {
            let Run { status, control, .. } = service.run(id).await?;
            output::view(&RunControl { run: id.clone(), status, control })?;
        } else {
            output::say(&format!("{sentence}\n"));
        }
        Ok(())
    }
}

//! Shared by commands about one run.

use afl_engine::id::RunId;
use afl_engine::run::{Control, RunStatus};
use afl_runtime::{Error, Service, StateRefusal};
use clap::Args;
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::store::{self, IfMissing};

#[derive(Args)]
#[group(skip)]
pub(crate) struct RunTarget {
    /// The run, by its id or the beginning of it
    run: String,
    /// Print one JSON object with the run and its status
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) store: store::Options,
}

impl RunTarget {
    pub(crate) async fn find(&self) -> Result<(Service, RunId), Failure> {
        let service = self.store.open(IfMissing::Refuse).await?;
        let id = service.find(&self.run).await?;
        Ok((service, id))
    }

    /// The same for a run that may not have begun.
    pub(crate) async fn find_begun_or_not(&self) -> Result<(Service, RunId), Failure> {
        let service = self.store.open(IfMissing::Refuse).await?;
        match service.find(&self.run).await {
            Err(Error::Refused(StateRefusal::NotBegun { run, .. })) => Ok((service, run)),
            found => Ok((service, found?)),
        }
    }

    /// That there will be no such run.
    pub(crate) fn tell_taken_back(&self, id: &RunId) -> Result<Exit, Failure> {
        if self.json {
            output::json(&json!({"run": id, "status": RunStatus::Canceled, "control": Control::Cancel}))?;
        } else {
            output::say(&format!("run {id} had not begun, and will not: its start is taken back\n"));
        }
        Ok(Exit::Fine)
    }

    /// How the run stands now: an object for programs, this sentence for people.
    pub(crate) async fn tell(&self, service: &Service, id: &RunId, sentence: &str) -> Result<Exit, Failure> {
        if self.json {
            let run = service.run(id).await?;
            output::json(&json!({"run": id, "status": run.status, "control": run.control}))?;
        } else {
            output::say(&format!("{sentence}\n"));
        }
        Ok(Exit::Fine)
    }
}

//! What commands that ask something of one run share.

use afl_engine::id::RunId;
use afl_runtime::Service;
use clap::Args;
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::store::{self, Missing};

#[derive(Args)]
#[group(skip)]
pub(crate) struct OneRun {
    /// The run, by its id or the beginning of it
    run: String,
    /// Print one JSON object with the run and its status
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: store::Options,
}

impl OneRun {
    pub(crate) async fn find(&self) -> Result<(Service, RunId), Failure> {
        let service = self.store.open(Missing::Refuse).await?;
        let id = service.find(&self.run).await?;
        Ok((service, id))
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

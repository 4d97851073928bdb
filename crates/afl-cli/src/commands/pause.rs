//! `afl pause`: holds a run.

use clap::Args;
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::store::{self, Missing};

/// Hold a run: nothing of it is evaluated or handed out until `afl resume`
///
/// Work that agents have already may be finished; its results wait.
#[derive(Args)]
pub(crate) struct Options {
    /// The run, by its id or the beginning of it
    run: String,
    /// Print one JSON object with the run and its status
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: store::Options,
}

pub(crate) async fn run(options: &Options) -> Result<Exit, Failure> {
    let service = options.store.open(Missing::Refuse).await?;
    let id = service.find(&options.run).await?;
    service.pause(&id).await?;
    if options.json {
        let run = service.run(&id).await?;
        output::json(&json!({"run": id, "status": run.status, "control": run.control}))?;
    } else {
        output::say(&format!("run {id} is held; `afl resume {id}` lets it go on\n"));
    }
    Ok(Exit::Fine)
}

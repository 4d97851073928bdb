//! `afl servers`: who does the work of this store.

use afl_runtime::Millis;
use afl_runtime::view::ServerView;
use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::output;
use crate::shown::{self, Moment};
use crate::store::{IfMissing, ListOptions};

/// List the agents of a store: their state, their handlers, and their tasks
///
/// An agent is stale when it was silent for 30 s, offline after 60 s or when it said that it ends, and forgotten after an
/// hour.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    list: ListOptions,
}

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let service = options.list.store.open(IfMissing::Refuse).await?;
    let servers = service.servers().await?;
    if options.list.json {
        output::json(&json!({ "servers": servers }))?;
    } else if servers.is_empty() {
        output::say(&format!("no servers; {} starts one\n", options.list.store.command("agent")));
    } else {
        let now = service.now().await?;
        let header: Vec<&str> = HEADER.split(", ").collect();
        output::table(&header, servers.iter().map(|server| row(server, now)))?;
    }
    Ok(())
}

const HEADER: &str = "SERVER, SERVICE, STATUS, HEARD OF, DONE, FAILED, DOES NOW, TASK LISTS, CAN DO, HTTP";

fn row(ServerView { server, status }: &ServerView, now: Millis) -> Vec<String> {
    let handled = server.handled.values();
    let (done, failed) =
        handled.fold((0, 0), |(done, failed), one| (done + one.completed, failed + one.failed));
    vec![
        shown::inert(&format!("{} ({})", server.server_name, server.pid)),
        shown::inert(&server.service_name),
        status.name().to_owned(),
        Moment(server.ping_time).from(Moment(now)),
        done.to_string(),
        failed.to_string(),
        shown::inert(&shown::cut(&server.current.join(", "), COLUMN_CHARS)),
        shown::inert(&shown::cut(&server.task_lists.join(", "), COLUMN_CHARS)),
        shown::inert(&shown::cut(&server.handlers.join(", "), COLUMN_CHARS)),
        shown::inert(server.http.as_deref().unwrap_or_default()),
    ]
}

const COLUMN_CHARS: usize = 60;

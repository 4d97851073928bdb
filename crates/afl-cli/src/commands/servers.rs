//! `afl servers`: who does the work of this store.

use afl_runtime::Millis;
use afl_runtime::server::{Server, ServerStatus};
use clap::Args;
use serde_json::{Value, json};

use crate::exit::Exit;
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

pub(crate) async fn run(options: &Options) -> Result<Exit, Failure> {
    let service = options.list.store.open(IfMissing::Refuse).await?;
    let now = service.now().await?;
    let mut servers: Vec<Server> =
        service.collection::<Server>().readable().await?.into_iter().map(|(_, stored)| stored.item).collect();
    servers.sort_by_key(|server| (place(server.status(now)), -server.start_time.0));
    if options.list.json {
        let servers: Vec<Value> = servers.iter().map(|server| entry(server, now)).collect();
        output::json(&json!({ "servers": servers }))?;
    } else if servers.is_empty() {
        output::say(&format!("no servers; {} starts one\n", options.list.store.command("agent")));
    } else {
        let header: Vec<&str> = HEADER.split(", ").collect();
        output::data(&shown::table(&header, servers.iter().map(|server| row(server, now))))?;
    }
    Ok(Exit::Fine)
}

fn place(status: ServerStatus) -> u8 {
    match status {
        ServerStatus::Online => 0,
        ServerStatus::Stale => 1,
        ServerStatus::Offline => 2,
    }
}

const HEADER: &str = "SERVER, SERVICE, STATUS, HEARD OF, DONE, FAILED, DOES NOW, TASK LISTS, CAN DO, HTTP";

fn row(server: &Server, now: Millis) -> Vec<String> {
    let handled = server.handled.values();
    let (done, failed) =
        handled.fold((0, 0), |(done, failed), one| (done + one.completed, failed + one.failed));
    vec![
        shown::inert(&format!("{} ({})", server.server_name, server.pid)),
        shown::inert(&server.service_name),
        server.status(now).name().to_owned(),
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

fn entry(server: &Server, now: Millis) -> Value {
    let mut entry = serde_json::to_value(server).expect("a server has a JSON form");
    entry["status"] = json!(server.status(now));
    entry
}

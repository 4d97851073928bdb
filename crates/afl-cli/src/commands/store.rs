//! `afl store`: looks after the store itself.

use afl_runtime::{COUNTED, Stats};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::failure::Failure;
use crate::output;
use crate::report::count;
use crate::shown;
use crate::store::{IfMissing, ObjectOptions};
use crate::when;

const EXAMPLES: &str = "\
Examples:
  afl store stats                      count runs and tasks
  afl store gc --older-than 30d        delete runs that ended a month ago
  afl store migrate --store postgres://me@host/db";

/// Look after the store: bring it up to date, count its records, delete old runs
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: StoreAction,
}

#[derive(Subcommand)]
enum StoreAction {
    /// Make the store, or bring its layout up to date
    ///
    /// Every command does this by itself; here it is alone, for a deployment.
    Migrate(ObjectOptions),
    /// Count runs and tasks
    Stats(ObjectOptions),
    /// Delete runs that ended long ago, with everything of theirs
    Gc(Gc),
}

#[derive(Args)]
struct Gc {
    /// How long ago a run must have ended: a span, such as 30d, or a date
    #[arg(long, value_name = "WHEN")]
    older_than: String,
    #[command(flatten)]
    object: ObjectOptions,
}

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    match &options.action {
        StoreAction::Migrate(plain) => migrate(plain).await,
        StoreAction::Stats(plain) => stats(plain).await,
        StoreAction::Gc(gc) => collect(gc).await,
    }
}

async fn migrate(options: &ObjectOptions) -> Result<(), Failure> {
    options.store.open(IfMissing::Create).await?;
    if options.json {
        output::json(&json!({"current": true}))?;
    } else {
        output::say("the store is up to date\n");
    }
    Ok(())
}

async fn stats(options: &ObjectOptions) -> Result<(), Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    let stats = service.stats().await?;
    if options.json { output::json(&stats) } else { output::data(&table(&stats)) }
}

async fn collect(options: &Gc) -> Result<(), Failure> {
    let before = when::past(&options.older_than)?;
    let service = options.object.store.open(IfMissing::Refuse).await?;
    let deleted = service.collect(before).await?;
    if options.object.json {
        output::json(&json!({"deleted": deleted}))?;
    } else {
        output::say(&format!("deleted {}\n", count(deleted.len(), "run")));
    }
    Ok(())
}

fn table(stats: &Stats) -> String {
    let mut rows = Vec::new();
    let mut add = |what: &str, name: &str, number: usize| {
        let number = if number >= COUNTED { format!("{COUNTED} or more") } else { number.to_string() };
        rows.push(vec![what.to_owned(), name.to_owned(), number]);
    };
    stats.runs.iter().for_each(|(shelf, number)| add("runs", shelf, *number));
    stats.pending.iter().for_each(|(name, number)| add("tasks that wait", name, *number));
    stats.running.iter().for_each(|(name, number)| add("tasks in work", name, *number));
    stats.outbox.iter().for_each(|(name, number)| add("messages that wait", name, *number));
    stats.outbox_dead.iter().for_each(|(name, number)| add("messages given up", name, *number));
    add("retries", "that wait for their time", stats.retries);
    add("answers", "not taken in yet", stats.arrived);
    shown::table(&["WHAT", "WHICH", "HOW MANY"], rows)
}

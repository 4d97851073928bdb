//! `afl notifications`: lists events that a person should know of, and marks them as read.

use afl_runtime::{Mark, Notice};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::failure::Failure;
use crate::output;
use crate::report::count;
use crate::shown::{self, Moment};
use crate::store::{self, IfMissing, ListOptions, limit};

const EXAMPLES: &str = "\
Examples:
  afl notifications --unread      list those that are not read yet
  afl notifications read --all    mark all of them as read";

/// List events that a person should know: failures, uncertain work, silent agents, stuck tasks
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Option<NotificationsAction>,
    /// Only those that are not read yet
    #[arg(long)]
    unread: bool,
    /// How many to list, the newest first
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = limit)]
    limit: usize,
    #[command(flatten)]
    list: ListOptions,
}

#[derive(Subcommand)]
enum NotificationsAction {
    /// Mark notifications as read
    Read(MarkRead),
}

#[derive(Args)]
struct MarkRead {
    /// The notification, by its id
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    id: Option<String>,
    /// All of them
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    store: store::Options,
}

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    match &options.action {
        Some(NotificationsAction::Read(read)) => {
            let service = read.store.open(IfMissing::Refuse).await?;
            let which = read.id.clone().map_or(Mark::All, Mark::One);
            let marked = service.mark_read(&which).await?;
            output::say(&format!("marked {} as read\n", count(marked, "notification")));
        }
        None => list(options).await?,
    }
    Ok(())
}

async fn list(options: &Options) -> Result<(), Failure> {
    let service = options.list.store.open(IfMissing::Refuse).await?;
    let mut unread = service.unread().await?;
    let unread_count = unread.len();
    let notices = if options.unread {
        unread.truncate(options.limit);
        unread
    } else {
        service.notifications(options.limit).await?
    };
    if options.list.json {
        return output::json(&json!({"notifications": notices, "unread": unread_count}));
    }
    if notices.is_empty() {
        output::say("no notifications\n");
        return Ok(());
    }
    output::table(&["WHEN", "SEVERITY", "TYPE", "WHAT", "ID"], notices.iter().map(row))
}

fn row(notice: &Notice) -> Vec<String> {
    let Notice { id, notification } = notice;
    let what = match &*notification.message {
        "" => notification.title.clone(),
        message => format!("{}: {message}", notification.title),
    };
    vec![
        Moment(notification.created).from(Moment::now()),
        notification.severity.name().to_owned(),
        notification.notification_type.name().to_owned(),
        shown::inert(&shown::cut(&what.replace('\n', " "), WHAT_CHARS)),
        id.clone(),
    ]
}

const WHAT_CHARS: usize = 100;

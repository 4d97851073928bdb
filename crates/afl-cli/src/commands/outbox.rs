//! `afl outbox`: the channels to systems outside, and the messages that wait for delivery.

use afl_engine::time::Millis;
use afl_runtime::COUNTED;
use afl_runtime::outbox::{Channel, ChannelTarget};
use afl_runtime::view::ChannelView;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::failure::Failure;
use crate::output;
use crate::report::count;
use crate::shell::word;
use crate::shown::{self, Moment};
use crate::store::{self, IfMissing, ListOptions, ObjectOptions, limit};

const EXAMPLES: &str = "\
Examples:
  afl outbox add audit --to feed                     keep a message of every end, to be read here
  afl outbox add billing --to https://example.org/hook --topic 'task.*' --facet 'billing.*'
  afl outbox read audit --limit 10 --ack             take the ten oldest messages
  afl outbox show billing                            list waiting messages, and why they wait";

/// Send messages to systems outside when tasks and runs end
///
/// A message is stored in the commit of the end that it reports. Agents post it to the address of its channel until it
/// is accepted; a message of a feed waits until it is read.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: OutboxAction,
}

#[derive(Subcommand)]
enum OutboxAction {
    /// Add a channel, in place of the one that had its name
    Add(AddChannel),
    /// List the channels
    List(ListOptions),
    /// Show a channel, and its waiting messages
    Show(ShowChannel),
    /// Remove a channel
    Remove(RemoveChannel),
    /// Print the messages of a feed, the oldest first, each as a line of JSON
    Read(ReadFeed),
    /// Deliver dead messages again
    Retry(RetryDead),
}

pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    match &options.action {
        OutboxAction::Add(options) => add(options).await,
        OutboxAction::List(options) => list(options).await,
        OutboxAction::Show(options) => show(options).await,
        OutboxAction::Remove(options) => remove(options).await,
        OutboxAction::Read(options) => read(options).await,
        OutboxAction::Retry(options) => retry(options).await,
    }
}

#[derive(Args)]
struct AddChannel {
    /// The name of the channel
    name: String,
    /// Where messages go: an address that agents post them to, or `feed` for messages that are read here
    #[arg(long, value_name = "URL|feed")]
    to: String,
    /// Which ends to send: task.completed, task.failed, task.canceled, task.ignored, run.completed, run.failed,
    /// run.canceled, or a pattern such as `task.*`; can be repeated. Without it, all
    #[arg(long = "topic", value_name = "PATTERN", default_value = "*")]
    topics: Vec<String>,
    /// Send only ends of tasks whose facet, and runs whose workflow, matches, such as `billing.*`; can be repeated
    #[arg(long = "facet", value_name = "PATTERN")]
    facets: Vec<String>,
    /// The secret of the agents, by its name, to sign messages with
    #[arg(long, value_name = "NAME")]
    secret: Option<String>,
    /// Keep the channel, but send it no messages for now
    #[arg(long)]
    disabled: bool,
    #[command(flatten)]
    store: store::Options,
}

async fn add(options: &AddChannel) -> Result<(), Failure> {
    let to: ChannelTarget = options.to.parse().map_err(afl_runtime::Error::from)?;
    let channel = Channel {
        to,
        topics: options.topics.clone(),
        facets: options.facets.clone(),
        secret: options.secret.clone(),
        enabled: !options.disabled,
        created: Millis(0),
        updated: Millis(0),
    };
    let service = options.store.open(IfMissing::Create).await?;
    let kept = service.open_channel(&options.name, channel).await?;
    let name = &options.name;
    output::say(&match (&kept.to, kept.enabled) {
        (_, false) => format!("{name} is kept, and gets no messages\n"),
        (ChannelTarget::Feed, true) => {
            let read = options.store.command(&format!("outbox read {}", word(name)));
            format!("{read} prints the ends of tasks and runs from now on\n")
        }
        (ChannelTarget::Url(_), true) => format!("ends of tasks and runs go to {} from now on\n", kept.to),
    });
    Ok(())
}

#[derive(Args)]
struct RemoveChannel {
    /// The channel
    name: String,
    /// Delete the messages that wait for it, too
    #[arg(long)]
    drop: bool,
    #[command(flatten)]
    store: store::Options,
}

async fn remove(options: &RemoveChannel) -> Result<(), Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    let dropped = if options.drop {
        service.drop_channel(&options.name).await?
    } else {
        service.close_channel(&options.name).await?;
        0
    };
    let with = if dropped == 0 { String::new() } else { format!(" with {}", count(dropped, "message")) };
    output::say(&format!("{} is removed{with}\n", options.name));
    Ok(())
}

#[derive(Args)]
struct RetryDead {
    /// The channel
    name: String,
    #[command(flatten)]
    store: store::Options,
}

async fn retry(options: &RetryDead) -> Result<(), Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    let revived = service.revive_channel(&options.name).await?;
    output::say(&format!("{} will be delivered after all\n", count(revived, "message")));
    Ok(())
}

async fn list(options: &ListOptions) -> Result<(), Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    let all = service.channel_views().await?;
    if options.json {
        output::json(&json!({ "channels": all }))?;
    } else if all.is_empty() {
        let add = options.store.command("outbox add");
        output::say(&format!("there are no channels; {add} adds one\n"));
    } else {
        let rows = all.iter().map(|one| row(one).into());
        output::table(&["CHANNEL", "TO", "TOPICS", "FACETS", "WAITING", "DEAD"], rows)?;
    }
    Ok(())
}

fn row(ChannelView { name, channel, status }: &ChannelView) -> [String; 6] {
    let to = if channel.enabled { channel.to.to_string() } else { format!("{} (disabled)", channel.to) };
    [
        name.clone(),
        shown::inert(&to),
        channel.topics.join(" "),
        if channel.facets.is_empty() { "*".to_owned() } else { channel.facets.join(" ") },
        number(status.waiting),
        number(status.dead),
    ]
}

fn number(number: usize) -> String {
    if number >= COUNTED { format!("{COUNTED} or more") } else { number.to_string() }
}

#[derive(Args)]
struct ShowChannel {
    /// The channel
    name: String,
    #[command(flatten)]
    object: ObjectOptions,
}

async fn show(options: &ShowChannel) -> Result<(), Failure> {
    let service = options.object.store.open(IfMissing::Refuse).await?;
    let view = service.channel_view(&options.name).await?;
    if options.object.json {
        return output::view(&view);
    }
    let [name, to, topics, facets, waiting, dead] = row(&view);
    let ChannelView { channel, status, .. } = view;
    let oldest = status.oldest.map_or_else(String::new, |at| Moment(at).local());
    let fields = [
        ("name", name),
        ("to", to),
        ("topics", topics),
        ("facets", facets),
        ("secret", channel.secret.unwrap_or_default()),
        ("created", Moment(channel.created).local()),
        ("waiting", waiting),
        ("dead", dead),
        ("oldest", oldest),
        ("last error", shown::inert(status.last_error.as_deref().unwrap_or_default())),
    ];
    let kept = fields.into_iter().filter(|(_, value)| !value.is_empty());
    let rows = kept.map(|(field, value)| vec![field.to_owned(), value]);
    output::table(&["FIELD", "VALUE"], rows)
}

#[derive(Args)]
struct ReadFeed {
    /// The channel, which must be a feed
    name: String,
    /// How many to print
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = limit)]
    limit: usize,
    /// Delete the printed messages; otherwise they come again
    #[arg(long)]
    ack: bool,
    #[command(flatten)]
    store: store::Options,
}

async fn read(options: &ReadFeed) -> Result<(), Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    let messages = service.feed(&options.name, options.limit).await?;
    let line = |message| serde_json::to_string(message).expect("a message has a JSON form") + "\n";
    output::data(&messages.iter().map(line).collect::<String>())?;
    // A message is deleted only after it was printed.
    if options.ack {
        let ids: Vec<String> = messages.into_iter().map(|message| message.id).collect();
        service.acknowledge(&options.name, &ids).await?;
    }
    Ok(())
}

//! `afl outbox list`, `show` and `read`.

use afl_runtime::COUNTED;
use afl_runtime::outbox::{Channel, ChannelStatus};
use clap::Args;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::limit::limit;
use crate::output;
use crate::shown::{self, Moment};
use crate::store::{self, IfMissing};

#[derive(Args)]
pub(super) struct ListChannels {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: store::Options,
}

pub(super) async fn list(options: &ListChannels) -> Result<Exit, Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    let mut all = Vec::new();
    for (name, channel) in service.channels().await? {
        let status = service.outbox().status(&name, COUNTED).await?;
        all.push((name, channel, status));
    }
    if options.json {
        let channels: Vec<Value> = all.iter().map(entry).collect();
        output::json(&json!({ "channels": channels }))?;
    } else if all.is_empty() {
        let add = options.store.command("outbox add");
        output::say(&format!("there are no channels; {add} adds one\n"));
    } else {
        let rows: Vec<Vec<String>> = all.iter().map(row).collect();
        output::data(&shown::table(&["CHANNEL", "TO", "TOPICS", "FACETS", "WAITING", "DEAD"], &rows))?;
    }
    Ok(Exit::Fine)
}

type Listed = (String, Channel, ChannelStatus);

fn entry((name, channel, status): &Listed) -> Value {
    let mut object = serde_json::to_value(channel).expect("a channel has a JSON form");
    object["name"] = name.clone().into();
    object["to"] = channel.to.to_string().into();
    for (field, value) in json!(status).as_object().into_iter().flatten() {
        object[field] = value.clone();
    }
    object
}

fn row((name, channel, status): &Listed) -> Vec<String> {
    let to = if channel.enabled { channel.to.to_string() } else { format!("{} (disabled)", channel.to) };
    vec![
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
pub(super) struct ShowChannel {
    /// The channel
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: store::Options,
}

pub(super) async fn show(options: &ShowChannel) -> Result<Exit, Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    let channel = service.channel(&options.name).await?.item;
    let status = service.outbox().status(&options.name, COUNTED).await?;
    let shown = (options.name.clone(), channel, status);
    if options.json {
        output::json(&entry(&shown))?;
        return Ok(Exit::Fine);
    }
    let [name, to, topics, facets, waiting, dead] = &row(&shown)[..] else {
        unreachable!("a row has a cell for each heading")
    };
    let (_, channel, status) = &shown;
    let oldest = status.oldest.map_or_else(String::new, |at| Moment(at).local());
    let fields = [
        ("name", name.clone()),
        ("to", to.clone()),
        ("topics", topics.clone()),
        ("facets", facets.clone()),
        ("secret", channel.secret.clone().unwrap_or_default()),
        ("created", Moment(channel.created).local()),
        ("waiting", waiting.clone()),
        ("dead", dead.clone()),
        ("oldest", oldest),
        ("last error", shown::inert(status.last_error.as_deref().unwrap_or_default())),
    ];
    let kept = fields.into_iter().filter(|(_, value)| !value.is_empty());
    let rows: Vec<Vec<String>> = kept.map(|(field, value)| vec![field.to_owned(), value]).collect();
    output::data(&shown::table(&["FIELD", "VALUE"], &rows))?;
    Ok(Exit::Fine)
}

#[derive(Args)]
pub(super) struct ReadFeed {
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

pub(super) async fn read(options: &ReadFeed) -> Result<Exit, Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    let messages = service.feed(&options.name, options.limit).await?;
    let line = |message| serde_json::to_string(message).expect("a message has a JSON form") + "\n";
    output::data(&messages.iter().map(line).collect::<String>())?;
    // A message is deleted only after it was printed.
    if options.ack {
        let ids: Vec<String> = messages.into_iter().map(|message| message.id).collect();
        service.acknowledge(&options.name, &ids).await?;
    }
    Ok(Exit::Fine)
}

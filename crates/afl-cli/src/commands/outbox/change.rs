//! `afl outbox add`, `remove` and `retry`.

use afl_engine::time::Millis;
use afl_runtime::outbox::{Channel, ChannelTarget};
use clap::Args;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::report::count;
use crate::shell::word;
use crate::store::{self, IfMissing};

#[derive(Args)]
pub(super) struct AddChannel {
    /// What to call the channel
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

pub(super) async fn add(options: &AddChannel) -> Result<Exit, Failure> {
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
    Ok(Exit::Fine)
}

#[derive(Args)]
pub(super) struct RemoveChannel {
    /// The channel
    name: String,
    /// Delete the messages that wait for it, too
    #[arg(long)]
    drop: bool,
    #[command(flatten)]
    store: store::Options,
}

pub(super) async fn remove(options: &RemoveChannel) -> Result<Exit, Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    let dropped = if options.drop {
        service.drop_channel(&options.name).await?
    } else {
        service.close_channel(&options.name).await?;
        0
    };
    let with = if dropped == 0 { String::new() } else { format!(" with {}", count(dropped, "message")) };
    output::say(&format!("{} is removed{with}\n", options.name));
    Ok(Exit::Fine)
}

#[derive(Args)]
pub(super) struct RetryDead {
    /// The channel
    name: String,
    #[command(flatten)]
    store: store::Options,
}

pub(super) async fn retry(options: &RetryDead) -> Result<Exit, Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    service.channel(&options.name).await?;
    let revived = service.outbox().revive(&options.name).await?;
    output::say(&format!("{} will be delivered after all\n", count(revived, "message")));
    Ok(Exit::Fine)
}

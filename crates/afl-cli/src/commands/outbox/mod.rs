//! `afl outbox`: the channels to systems outside, and the messages that wait for delivery.

mod change;
mod inspect;

use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::failure::Failure;

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
    Add(change::AddChannel),
    /// List the channels
    List(inspect::ListChannels),
    /// Show a channel, and its waiting messages
    Show(inspect::ShowChannel),
    /// Remove a channel
    Remove(change::RemoveChannel),
    /// Print the messages of a feed, the oldest first, each as a line of JSON
    Read(inspect::ReadFeed),
    /// Deliver dead messages again
    Retry(change::RetryDead),
}

pub(crate) async fn run(options: &Options) -> Result<Exit, Failure> {
    match &options.action {
        OutboxAction::Add(options) => change::add(options).await,
        OutboxAction::List(options) => inspect::list(options).await,
        OutboxAction::Show(options) => inspect::show(options).await,
        OutboxAction::Remove(options) => change::remove(options).await,
        OutboxAction::Read(options) => inspect::read(options).await,
        OutboxAction::Retry(options) => change::retry(options).await,
    }
}

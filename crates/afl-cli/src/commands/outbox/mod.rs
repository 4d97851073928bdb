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
  afl outbox show billing                            say what waits, and why";

/// Tell systems outside how tasks and runs end
///
/// A message is stored in the commit of the end it tells of. Agents post it to the address of its channel until it is
/// taken; that of a feed waits until it is read.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Add a channel, in place of the one that had its name
    Add(change::Add),
    /// List the channels
    List(inspect::List),
    /// Show a channel, and what waits for it
    Show(inspect::Show),
    /// Remove a channel
    Remove(change::Remove),
    /// Print the messages of a feed, the oldest first, each as a line of JSON
    Read(inspect::Read),
    /// Deliver messages that were given up after all
    Retry(change::Retry),
}

pub(crate) async fn run(options: &Options) -> Result<Exit, Failure> {
    match &options.action {
        Action::Add(options) => change::add(options).await,
        Action::List(options) => inspect::list(options).await,
        Action::Show(options) => inspect::show(options).await,
        Action::Remove(options) => change::remove(options).await,
        Action::Read(options) => inspect::read(options).await,
        Action::Retry(options) => change::retry(options).await,
    }
}

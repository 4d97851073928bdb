//! `afl handlers`: which handler does the work of which event facet.

mod change;
mod inspect;
mod scaffold;

use afl_lang::render::Color;
use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  afl handlers scaffold billing.afl -o handlers.py   write a Python function for every event facet
  afl handlers register billing.Charge handlers.py --entrypoint charge
  afl handlers register --from handlers.toml         register all that a file lists
  afl handlers check                                 load each one, and list missing parts";

/// Look after the handlers that are registered in the store, for all agents of it
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: HandlersAction,
}

#[derive(Subcommand)]
enum HandlersAction {
    /// Register the handler of a facet, in place of the one it had
    Register(change::RegisterHandler),
    /// List the registered handlers
    List(inspect::ListHandlers),
    /// Show one registered handler
    Show(inspect::ShowHandler),
    /// Remove the handler of a facet; tasks of it wait from then on
    Remove(change::RemoveHandler),
    /// Load each registered handler as an agent here would, without calling it, and list missing parts
    Check(inspect::CheckHandlers),
    /// Write a Python file with a function for every event facet of a program
    Scaffold(scaffold::Options),
}

pub(crate) async fn run(options: &Options, color: Color) -> Result<Exit, Failure> {
    match &options.action {
        HandlersAction::Register(options) => change::register(options).await,
        HandlersAction::List(options) => inspect::list(options).await,
        HandlersAction::Show(options) => inspect::show(options).await,
        HandlersAction::Remove(options) => change::remove(options).await,
        HandlersAction::Check(options) => inspect::check(options, color).await,
        HandlersAction::Scaffold(options) => scaffold::run(options, color),
    }
}

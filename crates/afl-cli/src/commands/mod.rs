//! The commands, a file each.

pub(crate) mod agent;
pub(crate) mod check;
pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod control;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod fmt;
pub(crate) mod graph;
pub(crate) mod handlers;
pub(crate) mod notifications;
pub(crate) mod outbox;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod servers;
pub(crate) mod show;
pub(crate) mod start;
pub(crate) mod store;
pub(crate) mod task;
pub(crate) mod tasks;
pub(crate) mod why;

use afl_lang::render::Color;
use tokio::runtime::Builder;

use crate::cli::Command;
use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) fn run(command: Command, color: Color) -> Result<Exit, Failure> {
    match command {
        Command::Run(options) => wait(run::run(&options, color)),
        Command::Start(options) => wait(start::run(&options, color)),
        Command::Agent(options) => wait(agent::run(&options, color)),
        Command::Handlers(options) => wait(handlers::run(&options, color)),
        Command::Runs(options) => wait(runs::run(&options)),
        Command::Show(options) => wait(show::run(&options, color)),
        Command::Why(options) => wait(why::run(&options, color)),
        Command::Resume(options) => wait(resume::resume(&options, color)),
        Command::Retry(options) => wait(resume::retry(&options, color)),
        Command::Pause(options) => wait(control::pause(&options)),
        Command::Cancel(options) => wait(control::cancel(&options)),
        Command::Tasks(options) => wait(tasks::run(&options)),
        Command::Task(options) => wait(task::run(&options)),
        Command::Servers(options) => wait(servers::run(&options)),
        Command::Notifications(options) => wait(notifications::run(&options)),
        Command::Outbox(options) => wait(outbox::run(&options)),
        Command::Doctor(options) => wait(doctor::run(&options, color)),
        Command::Store(options) => wait(store::run(&options)),
        Command::Check(options) => check::run(&options, color),
        Command::Compile(options) => compile::run(&options, color).map(Exit::from),
        Command::Fmt(options) => fmt::run(&options, color),
        Command::Graph(options) => graph::run(&options, color).map(Exit::from),
        Command::Explain(options) => explain::run(&options).map(Exit::from),
        Command::Schema(options) => schema::run(&options).map(Exit::from),
        Command::Completions(options) => completions::run(&options).map(Exit::from),
    }
}

/// Only commands that use a store pay for what it needs.
fn wait<E: Into<Exit>>(command: impl Future<Output = Result<E, Failure>>) -> Result<Exit, Failure> {
    let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build();
    let runtime = runtime.map_err(|source| Failure::NoThreads { source })?;
    runtime.block_on(command).map(Into::into)
}

/// The command itself runs on the first thread; these show what happens and talk to the store meanwhile.
const WORKERS: usize = 2;

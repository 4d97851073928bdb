//! The command line of `afl`.

use clap::builder::styling::{AnsiColor, Styles};
use clap::{ColorChoice, Parser, Subcommand};

use crate::commands::{
    agent, check, compile, completions, control, doctor, explain, fmt, graph, handlers, notifications,
    outbox, resume, run, runs, schema, servers, show, start, store, task, tasks, why,
};

const EXIT_CODES: &str = "\
Exit codes:
  0    all is well
  1    the program has mistakes, or a run failed or was canceled
  2    the command line is wrong, or inputs are refused
  3    a file or the store cannot be read or written
  4    a run waits, and no handler here can do its work
  130  Ctrl-C stopped it
  143  SIGTERM stopped it";

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Check, run and watch over workflows written in AFL
#[derive(Parser)]
#[command(name = "afl", version, styles = STYLES, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    /// When to use colour; `auto` means on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, display_order = 900, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Run(run::Options),
    Start(start::Options),
    Agent(agent::Options),
    Handlers(handlers::Options),
    Runs(runs::Options),
    Show(show::Options),
    Why(why::Options),
    Resume(resume::ResumeRun),
    Retry(resume::RetryRun),
    /// Hold a run: nothing of it is evaluated or handed out until `afl resume`
    ///
    /// Work that agents have already may be finished; its results wait.
    Pause(control::RunTarget),
    /// End a run: no work of it is handed out any more, late results are refused
    ///
    /// The record of the run stays readable. A canceled run cannot be resumed. One that was started with `--enqueue` and has not
    /// begun will not begin.
    Cancel(control::RunTarget),
    Tasks(tasks::Options),
    Task(task::Options),
    Servers(servers::Options),
    Notifications(notifications::Options),
    Outbox(outbox::Options),
    Doctor(doctor::Options),
    Store(store::Options),
    Check(check::Options),
    Compile(compile::Options),
    Fmt(fmt::Options),
    Graph(graph::Options),
    Explain(explain::Options),
    Schema(schema::Options),
    Completions(completions::Options),
}

//! `afl agent`: does the work of tasks, and drives the runs of a store.

use std::net::IpAddr;
use std::path::PathBuf;

use afl_agents::worker::{AttemptEnd, Config, Profile, Worker, WorkerEvent, reachable};
use afl_lang::render::Color;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tokio::sync::mpsc;

use crate::color::{self, paint};
use crate::failure::Failure;
use crate::handlers::{HandlerSet, Trouble};
use crate::local_handlers::capability;
use crate::output;
use crate::progress::{ProgressLine, Talk};
use crate::report::count;
use crate::shown::{self, Moment};
use crate::stop::StopSignals;
use crate::store::{self, IfMissing};
use crate::telemetry;

const EXAMPLES: &str = "\
Examples:
  afl agent                                do the work that handlers are registered for
  afl agent --handlers handlers/           with handlers of this process alone, too
  afl agent --topic 'billing.*' --max-concurrent 20
  afl agent --once                         do the waiting tasks, then end";

/// Do the work of event facets, and drive all runs of the store
///
/// Handlers are those that `afl handlers register` put into the store, and those given here. It also posts the messages of
/// `afl outbox` to their receivers. SIGTERM or Ctrl-C lets it finish its running tasks and end with code 0; a task that
/// takes longer than 30 s is given back to other agents. A second signal ends it at once.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Where handlers come from, and further duties: `registry` takes those of the store and those given, `poller` only
    /// those given; `service` does so too, begins runs that were started with `--enqueue`, locks each item it works on, and
    /// serves its status over HTTP
    #[arg(long, value_name = "PROFILE", default_value = Profile::Registry.name(), value_parser = profiles())]
    profile: Profile,
    #[arg(long, value_name = "FILE|DIR")]
    #[arg(help = format!("The handlers: {}; can be repeated", crate::handlers::sources()))]
    handlers: Vec<PathBuf>,
    /// A folder that registered handlers may come from, beside this one; can be repeated
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,
    /// Take only facets whose name matches, such as `billing.*`; can be repeated
    #[arg(long = "topic", value_name = "PATTERN")]
    topics: Vec<String>,
    /// Something that this agent has, such as `gpu`, for facets `with Needs`; can be repeated
    #[arg(long = "capability", value_name = "NAME", value_parser = capability)]
    capabilities: Vec<String>,
    /// A task list to take work from; can be repeated. Without it, `default` alone
    #[arg(long = "task-list", value_name = "NAME")]
    task_lists: Vec<String>,
    /// How many tasks may be in work at once
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    max_concurrent: Option<u16>,
    /// The name of this agent in `afl servers`; without it, the name of the machine
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// After how much silence of this agent another one gets its tasks; without it, 60000. At least twice the time to stop a
    /// handler and a second: 4000 with Python, 14000 with programs
    #[arg(long, value_name = "MILLIS", value_parser = clap::value_parser!(u64).range(100..))]
    lease_ms: Option<u64>,
    /// How long running tasks may take after a signal to end; then they are stopped and given back. Without it, 30000
    #[arg(long, value_name = "MILLIS")]
    shutdown_timeout_ms: Option<u64>,
    /// Serve the status over HTTP (/health, /status, /metrics) on this port, or the first free one of the 20 from there; 0
    /// takes any. Without it, `service` begins at 8080 and the others serve none
    #[arg(long, value_name = "PORT")]
    http_port: Option<u16>,
    /// The address to serve the status on; name one to reach it from other machines
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    http_host: IpAddr,
    /// Do the waiting tasks, one after the other, and end
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    telemetry: telemetry::Options,
    #[command(flatten)]
    store: store::Options,
}

/// The most lines that a slow listener may miss.
const LINES: usize = 10_000;

pub(crate) async fn run(options: &Options, color: Color) -> Result<(), Failure> {
    if !options.store.is_kept() {
        return Err(Trouble::AgentInMemory.into());
    }
    let given = HandlerSet::read(&options.handlers).await?;
    let hosts = given.hosts(&options.roots)?;
    let service = options.store.open(IfMissing::Create).await?;
    let (service, telemetry) = options.telemetry.begin(service, &ProgressLine::new(Talk::LogsOnly), color);
    let (tell, told) = mpsc::channel(LINES);
    let worker = Worker::new(service, options.config())?
        .with_hosts(hosts.clone())
        .with_registrations(given.registrations)
        .with_listener(tell);
    let showing = tokio::spawn(show(told, worker.config().clone(), options.store.flag(), color));
    let stop = StopSignals::on_signals();
    let ended = if options.once {
        once(&worker, &stop).await
    } else {
        worker.start(stopped(stop)).await.map_err(Failure::from)
    };
    drop(worker);
    showing.await.expect("showing lines does not panic");
    hosts.close().await;
    telemetry.finish().await;
    ended?;
    if !options.once {
        output::say("stopped\n");
    }
    Ok(())
}

/// A signal lets it finish the task in work.
async fn once(worker: &Worker, stop: &StopSignals) -> Result<(), Failure> {
    let telling = tokio::spawn(stopped(stop.clone()));
    let mut done = 0;
    while !stop.is_asked()
        && let Some(ended) = worker.poll_one().await?
    {
        done += usize::from(ended.is_done());
    }
    worker
        .relay_once(async {
            stop.asked().await;
        })
        .await?;
    telling.abort();
    output::say(&format!("did {}\n", count(done, "task")));
    Ok(())
}

async fn stopped(stop: StopSignals) {
    stop.asked().await;
    output::say("stopping: running tasks are finished first; a second signal ends it at once\n");
}

impl Options {
    fn config(&self) -> Config {
        let defaults = Config::of(self.profile);
        let lists = Some(self.task_lists.clone()).filter(|lists| !lists.is_empty());
        Config {
            topics: self.topics.clone(),
            capabilities: self.capabilities.clone(),
            task_lists: lists.unwrap_or(defaults.task_lists),
            max_concurrent: self.max_concurrent.map_or(defaults.max_concurrent, usize::from),
            server_name: self.name.clone().unwrap_or(defaults.server_name),
            lock_duration_ms: self.lease_ms.unwrap_or(defaults.lock_duration_ms),
            shutdown_timeout_ms: self.shutdown_timeout_ms.unwrap_or(defaults.shutdown_timeout_ms),
            http_host: self.http_host,
            http_port: self.http_port.or(defaults.http_port),
            ..defaults
        }
    }
}

fn profiles() -> impl TypedValueParser<Value = Profile> {
    let names = Profile::ALL.iter().map(|profile| profile.name());
    PossibleValuesParser::new(names).map(|name| name.parse().expect("only these names are taken"))
}

/// A line for each thing that happens, until the worker is gone.
async fn show(mut told: mpsc::Receiver<WorkerEvent>, config: Config, flag: String, color: Color) {
    while let Some(told) = told.recv().await {
        output::say(&lines(&told, &config, &flag, color));
    }
}

fn lines(told: &WorkerEvent, config: &Config, flag: &str, color: Color) -> String {
    match told {
        WorkerEvent::Ready { names, http } => {
            let lists = lists(&config.task_lists);
            let mut text = format!(
                "{} takes work from the task {lists}, {} at once\n",
                config.server_name, config.max_concurrent
            );
            text.extend(http.map(|address| format!("status: {}/status\n", reachable(address))));
            text.push_str(&handlers(names));
            if names.is_empty() {
                let help = paint("help:", color::HELP, color);
                let to_do = match config.profile {
                    Profile::Registry => {
                        "register one with `afl handlers register`, or give some with `--handlers`"
                    }
                    Profile::Poller | Profile::Service => {
                        "give some with `--handlers`; registered ones are for `--profile registry`"
                    }
                };
                text.extend([format!("{help} {to_do}{}\n", in_store(flag))]);
            }
            text
        }
        WorkerEvent::Handlers { names } => handlers(names),
        WorkerEvent::Unfit(short) => {
            let warning = paint("warning:", color::HELP, color);
            format!("{warning} {}; other agents must do that work\n", shown::inert(&short.to_string()))
        }
        WorkerEvent::ClockAhead { by } => {
            let warning = paint("warning:", color::HELP, color);
            let by = shown::span(*by);
            format!("{warning} the store's clock jumped ahead by {by}; no lease ends for its whole length\n")
        }
        WorkerEvent::Began(work) => format!("{} of run {}: begun\n", work.path, work.run),
        WorkerEvent::Ended { work, ended, took } => {
            let took = shown::span((*took).into());
            format!("{} of run {}: {}\n", work.path, work.run, outcome(ended, &took))
        }
    }
}

fn lists(names: &[String]) -> String {
    let noun = if names.len() == 1 { "list" } else { "lists" };
    format!("{noun} `{}`", names.join("`, `"))
}

fn in_store(flag: &str) -> String {
    if flag.is_empty() { String::new() } else { format!(" (with `{}`)", flag.trim_start()) }
}

fn handlers(names: &[String]) -> String {
    match names {
        [] => "no handlers\n".to_owned(),
        names => format!("handlers: {}\n", names.join(", ")),
    }
}

fn outcome(ended: &AttemptEnd, took: &str) -> String {
    match ended {
        AttemptEnd::Completed => format!("done after {took}"),
        AttemptEnd::Failed { message, again } => {
            let again = again.map(|at| format!("; tried again {}", Moment(at).from(Moment::now())));
            shown::inert(&format!("failed after {took}: {message}{}", again.unwrap_or_default()))
        }
        AttemptEnd::GivenBack => format!("given back undone after {took}"),
        AttemptEnd::Lost => format!("lost to another agent after {took}: the lease was over"),
        AttemptEnd::Canceled => format!("canceled after {took}"),
        AttemptEnd::Locked => "left to the agent that has its lock".to_owned(),
    }
}

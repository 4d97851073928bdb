//! Shared by `run`, `resume` and `retry`: drives one run until it rests, and prints its outcome.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use afl_agents::worker::StopReason;
use afl_engine::id::RunId;
use afl_engine::run::Run;
use afl_engine::trace::Tracing;
use afl_lang::render::Color;
use afl_runtime::{Service, TraceSubscription};
use clap::Args;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::color::{self, paint};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::handlers::HandlerSet;
use crate::local_handlers::{LocalHandlers, capability};
use crate::mock::Mock;
use crate::outcome::{self, OutcomePrinter};
use crate::output;
use crate::progress::{self, ProgressLine, Talk};
use crate::shell::word;
use crate::stop::{Signal, StopSignals};
use crate::store::{self, IfMissing};
use crate::telemetry::{self, Telemetry};

#[derive(Args, Clone, Debug)]
#[group(skip)]
pub(crate) struct Options {
    /// Answer event facets from this JSON file, such as {"Ask": {"returns": {"answer": "yes"}}}; a conformance case does too
    #[arg(short, long, value_name = "FILE")]
    mock: Option<PathBuf>,
    #[arg(long, value_name = "FILE|DIR")]
    #[arg(help = format!("Do event facets with these handlers: {}; can be repeated", crate::handlers::sources()))]
    handlers: Vec<PathBuf>,
    /// Something that these handlers have, such as `gpu`, for facets `with Needs`; can be repeated
    #[arg(long = "capability", value_name = "NAME", value_parser = capability)]
    pub(crate) capabilities: Vec<String>,
    /// Wait for timers that fire within this time, such as 30s or 5m, when nothing else is left to do
    #[arg(long, value_name = "SPAN", default_value = "1m", value_parser = crate::when::wait)]
    wait: Duration,
    /// Print one JSON object with the run, its status, its outputs or its error
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    telemetry: telemetry::Options,
}

impl Options {
    pub(crate) fn mock(&self) -> Result<Option<Mock>, Failure> {
        self.mock.as_deref().map(Mock::read).transpose()
    }

    pub(crate) async fn handlers(&self) -> Result<HandlerSet, Failure> {
        HandlerSet::read(&self.handlers).await
    }

    /// With those that are there for the program, unless others are named.
    pub(crate) fn or_handlers(&self, beside: Vec<PathBuf>) -> Self {
        let handlers = if self.handlers.is_empty() { beside } else { self.handlers.clone() };
        Self { handlers, ..self.clone() }
    }

    /// The flags that make another command answer event facets as this one does.
    fn flags(&self) -> String {
        let path = |path: &PathBuf| word(&path.display().to_string());
        let mock = self.mock.iter().map(|file| format!(" --mock {}", path(file)));
        let handlers = self.handlers.iter().map(|given| format!(" --handlers {}", path(given)));
        let capabilities = self.capabilities.iter().map(|name| format!(" --capability {}", word(name)));
        mock.chain(handlers).chain(capabilities).collect()
    }
}

/// How long a start may take after a signal: with the id of the run, the command can print how to resume it.
const GRACE: Duration = Duration::from_secs(3);

/// A service and all that is around it while it drives one run.
pub(crate) struct Foreground {
    pub(crate) service: Service,
    /// The same without the logs of the program, for the outcome.
    quiet: Service,
    pub(crate) progress: ProgressLine,
    logs: TraceSubscription,
    telemetry: Telemetry,
    handlers: LocalHandlers,
    stop: StopSignals,
    store: store::Options,
    options: Options,
    color: Color,
}

impl Foreground {
    pub(crate) fn new(
        service: Service,
        handlers: LocalHandlers,
        options: &Options,
        store: &store::Options,
        color: Color,
    ) -> Self {
        let progress = ProgressLine::new(if options.json { Talk::LogsOnly } else { Talk::All });
        let (service, telemetry) = options.telemetry.begin(service, &progress, color);
        let quiet = service.clone();
        let (service, logs) = service.starting_only().subscribe(Tracing::LogsOnly, progress::LOGS);
        let (stop, store, options) = (StopSignals::on_signals(), store.clone(), options.clone());
        Self { service, quiet, progress, logs, telemetry, handlers, stop, store, options, color }
    }

    /// For a run that is there already, by what the user calls it.
    pub(crate) async fn of(
        run: &str,
        options: &Options,
        store: &store::Options,
        color: Color,
    ) -> Result<(Self, RunId), Failure> {
        let mock = options.mock()?;
        let service = store.open(IfMissing::Refuse).await?;
        let id = service.find(run).await?;
        let given = options.handlers().await?;
        let stored = service.run(&id).await?;
        let program = service.program(&stored.workflow_version).await?;
        let (needs, workflow) = (&options.capabilities, &stored.workflow);
        let handlers = LocalHandlers::new(mock.as_ref(), given, needs, &program, workflow, color)?;
        Ok((Self::new(service, handlers, options, store, color), id))
    }

    /// The result of a call, unless a signal arrives and the call takes long even then.
    pub(crate) async fn unless_stopped<T>(&self, call: impl Future<Output = T>) -> Result<T, Signal> {
        let mut call = pin!(call);
        tokio::select! {
            done = &mut call => Ok(done),
            signal = self.stop.asked() => timeout(GRACE, call).await.map_err(|_| signal),
        }
    }

    /// Drives the run until it rests, then prints its outcome.
    pub(crate) async fn drive(mut self, run: &RunId) -> Result<Exit, Failure> {
        self.answer_signals(run);
        let resume = self.resume(run);
        let is_kept = self.store.is_kept();
        let telemetry = std::mem::take(&mut self.telemetry);
        let driven = self.drive_to_rest(run, &resume).await;
        telemetry.finish().await;
        match driven {
            Err(failure) if is_kept => {
                Err(Failure::OfRun { run: run.clone(), resume, failure: Box::new(failure) })
            }
            driven => driven,
        }
    }

    async fn drive_to_rest(self, run: &RunId, resume: &str) -> Result<Exit, Failure> {
        let (json, store, color) = (self.options.json, self.store.clone(), self.color);
        let FollowResult { service, reason, run } = self.follow(run).await?;
        if json {
            output::json(&service.outcome(&run).await?)?;
        } else {
            let printer = OutcomePrinter { service: &service, store: &store, resume, color };
            printer.print(reason, &run).await?;
        }
        Ok(outcome::exit(reason, run.status))
    }

    /// Prints how to resume the run as soon as a signal stops this command.
    fn answer_signals(&self, run: &RunId) {
        let help = paint("help:", color::HELP, self.color);
        let farewell = if self.store.is_kept() {
            format!("stopping; run {run} is kept\n{help} {} continues it", self.resume(run))
        } else {
            "stopping; the store is in memory, so the run is gone".to_owned()
        };
        let progress = self.progress.clone();
        self.stop.say_when_asked(move || progress.print(&farewell));
    }

    /// The command that continues a run with the same handlers.
    fn resume(&self, run: &RunId) -> String {
        self.store.command(&format!("resume {run}{}", self.options.flags()))
    }

    pub(crate) async fn follow(self, run: &RunId) -> Result<FollowResult, Failure> {
        let Self { service, quiet, progress, logs, handlers, stop, options, .. } = self;
        let watching = progress.watch_counts(&quiet, run);
        let (tell, events) = mpsc::channel(WORK_SHOWN);
        let showing = [
            tokio::spawn(progress::show_work(events, progress.clone())),
            tokio::spawn(progress::show_logs(logs, progress.clone())),
        ];
        let stopped: Result<_, Failure> = async {
            let worker = handlers.worker(service)?.with_listener(tell);
            Ok(worker.finish(run, options.wait, stop.asked()).await?)
        }
        .await;
        // The worker is gone: the logs of the program come before the outcome.
        for shown in showing {
            shown.await.expect("showing lines does not panic");
        }
        if let Some(watching) = watching {
            watching.abort();
        }
        progress.clear();
        Ok(FollowResult { reason: stopped?, run: quiet.run(run).await?, service: quiet })
    }
}

/// How many events of a worker may wait to be shown; more are dropped.
const WORK_SHOWN: usize = 65_536;

/// A run that this command can do no more for.
pub(crate) struct FollowResult {
    pub(crate) service: Service,
    pub(crate) reason: StopReason<Signal>,
    pub(crate) run: Run,
}

//! Shows the progress of a run: a live line on a terminal, few plain lines elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use afl_agents::worker::{AttemptEnd, AttemptInfo, WorkerEvent};
use afl_engine::id::RunId;
use afl_engine::run::Counts;
use afl_engine::time::Millis;
use afl_engine::trace::Trace;
use afl_runtime::{Service, TraceRecord, TraceSubscription};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::output;
use crate::shown::{self, Moment};

const TICK: Duration = Duration::from_millis(100);
/// How often the counts of a long evaluation are read.
const LOOK: Duration = Duration::from_millis(250);
/// How many lines an evaluation may log between two commits; more are not shown.
pub(crate) const LOGS: usize = 65_536;

#[derive(Clone, Debug)]
pub(crate) struct ProgressLine {
    bar: Option<ProgressBar>,
    talk: Talk,
}

/// Which lines a command prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Talk {
    All,
    /// Only the logs of the program: another program reads the result as data.
    LogsOnly,
}

impl ProgressLine {
    pub(crate) fn new(talk: Talk) -> Self {
        let live = talk == Talk::All && io::stderr().is_terminal();
        Self { bar: live.then(spinner), talk }
    }

    pub(crate) fn say(&self, line: &str) {
        match self.talk {
            Talk::All => self.print(line),
            Talk::LogsOnly => {}
        }
    }

    fn working_on(&self, path: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(path.to_owned());
        }
    }

    fn failed_attempt(&self, work: &AttemptInfo, error: &str, next: Millis) {
        let AttemptInfo { path, attempt, of_attempts, .. } = work;
        let of = of_attempts.map(|most| format!(" of {most}")).unwrap_or_default();
        let next = Moment(next).from(Moment::now());
        let error = shown::inert(error);
        self.say(&format!("{path}: attempt {attempt}{of} failed: {error}; the next one {next}"));
    }

    fn counts(&self, counts: Counts) {
        let Some(bar) = &self.bar else { return };
        let open = counts.steps - counts.complete - counts.failed;
        let running = open.saturating_sub(counts.waiting);
        bar.set_prefix(format!("{} done, {running} running, {} waiting", counts.complete, counts.waiting));
    }

    /// Reads the counts of a run now and then, if the line is live.
    pub(crate) fn watch_counts(&self, service: &Service, run: &RunId) -> Option<JoinHandle<()>> {
        self.bar.as_ref()?;
        let (service, run, progress) = (service.clone(), run.clone(), self.clone());
        Some(tokio::spawn(async move {
            while let Ok(run) = service.run(&run).await {
                progress.counts(run.counts);
                tokio::time::sleep(LOOK).await;
            }
        }))
    }

    /// Nothing of the live line stays.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Whether or not the command talks.
    pub(crate) fn print(&self, line: &str) {
        let text = format!("{line}\n");
        match &self.bar {
            Some(bar) => bar.suspend(|| output::say(&text)),
            None => output::say(&text),
        }
    }
}

fn spinner() -> ProgressBar {
    let style =
        ProgressStyle::with_template("{spinner} {prefix}  {wide_msg}").expect("the template is right");
    let bar = ProgressBar::new_spinner().with_style(style);
    bar.enable_steady_tick(TICK);
    bar
}

/// Shows the logs of a service's runs, until the service is gone.
pub(crate) async fn show_logs(mut records: TraceSubscription, progress: ProgressLine) {
    while let Some(TraceRecord { trace, .. }) = records.next().await {
        match trace {
            Trace::Logged { path, values, .. } => {
                let place = path.strip_suffix(LOG_STATEMENT).unwrap_or(&path);
                progress.print(&format!("{place}: {}", shown::pairs(&values)));
            }
            Trace::Undeclared { path, key, .. } => {
                let key = shown::inert(&key);
                progress.say(&format!("{path}: the result has `{key}`, which its facet does not declare"));
            }
            Trace::IterationBegan { .. }
            | Trace::IterationEnded { .. }
            | Trace::Rested { .. }
            | Trace::Created { .. }
            | Trace::Transition { .. }
            | Trace::Stayed { .. }
            | Trace::Failed { .. }
            | Trace::Resolved { .. }
            | Trace::Published { .. } => {}
        }
    }
    // A run does not wait for a slow terminal; lines beyond the limit are dropped.
    match records.take_missed() {
        0 => {}
        missed => progress.print(&format!("{missed} lines more were logged at once than can be shown")),
    }
}

/// Shows what a worker does, until it is gone.
pub(crate) async fn show_work(mut events: mpsc::Receiver<WorkerEvent>, progress: ProgressLine) {
    while let Some(event) = events.recv().await {
        match event {
            WorkerEvent::Began(work) => progress.working_on(&work.path),
            WorkerEvent::Ended { work, ended: AttemptEnd::Failed { message, again: Some(at) }, .. } => {
                progress.failed_attempt(&work, &message, at);
            }
            WorkerEvent::Ready { .. }
            | WorkerEvent::Handlers { .. }
            | WorkerEvent::Unfit(_)
            | WorkerEvent::ClockAhead { .. }
            | WorkerEvent::Ended { .. } => {}
        }
    }
}

/// How paths name `sys.log` itself, which is not where it happened.
const LOG_STATEMENT: &str = ".sys.log";

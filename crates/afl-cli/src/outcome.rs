//! The outcome of a run for people, and that of a command without a run.

use afl_agents::worker::StopReason;
use afl_engine::run::{Run, RunStatus};
use afl_engine::time::Millis;
use afl_engine::value::Map;
use afl_lang::render::Color;
use afl_runtime::view::{OutcomeError, OutcomeStatus, RunOutcome};
use afl_runtime::{LeftTo, On, Service, Wait};

use crate::color::{self, paint};
use crate::decide::UncertainStep;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::report::count;
use crate::shown::{self, Moment};
use crate::stop::Signal;
use crate::store;

/// The outcome of a command that failed before the run ended. A run that it was driving when the store was lost is kept.
pub(crate) fn without_end(failure: &Failure, store: &store::Options) -> RunOutcome {
    let (run, is_lost) = (failure.run().cloned(), failure.exit() == Exit::Inaccessible);
    let status = if is_lost && run.is_some() { OutcomeStatus::Paused } else { OutcomeStatus::Rejected };
    let kind = if is_lost { "Inaccessible" } else { "Rejected" };
    let (message, help) = (failure.to_string(), failure.help(store));
    RunOutcome {
        run,
        status,
        outputs: Map::new(),
        error: Some(OutcomeError { message, path: None, help, kind: kind.into() }),
        iterations_per_run: Vec::new(),
    }
}

/// Prints the outcome of a run for people.
pub(crate) struct OutcomePrinter<'a> {
    pub(crate) service: &'a Service,
    pub(crate) store: &'a store::Options,
    /// The command that continues the run with the same handlers.
    pub(crate) resume: &'a str,
    pub(crate) color: Color,
}

impl OutcomePrinter<'_> {
    /// Results to standard output, the rest to standard error.
    pub(crate) async fn print(&self, reason: StopReason<Signal>, run: &Run) -> Result<(), Failure> {
        let steps = count(usize::try_from(run.counts.steps).unwrap_or(usize::MAX), "step");
        match (reason, run.status) {
            (_, RunStatus::Completed) => {
                let took = shown::took(run.created, run.ended).map(|took| format!(" in {took}"));
                output::say(&format!("completed: {steps}{}\n", took.unwrap_or_default()));
                output::json(&self.service.outputs(&run.id).await?)?;
            }
            (_, RunStatus::Failed) => self.print_failed(run).await?,
            (_, RunStatus::Canceled) => output::say(&format!("run {} was canceled\n", run.id)),
            (StopReason::Held, _) => {
                let reason = run.quarantine.as_ref();
                let reason = reason.map(|quarantine| shown::headline(&quarantine.reason));
                let state = reason.map_or("is held".to_owned(), |reason| format!("is quarantined: {reason}"));
                output::say(&format!("run {} {state}\n", run.id));
                self.help(&format!("{} lets it go on", self.resume));
            }
            // The signal was answered when it came.
            (StopReason::Asked(_), _) => {}
            (StopReason::Waiting | StopReason::Ended, _) => self.print_waiting(run).await?,
        }
        Ok(())
    }

    async fn print_failed(&self, run: &Run) -> Result<(), Failure> {
        let Some(failure) = &run.error else { return Ok(()) };
        let message = shown::indented(&failure.to_string());
        output::say(&format!("{} {message}\n", paint("error:", color::ERROR, self.color)));
        if !self.store.is_kept() {
            return Ok(());
        }
        let task = self.service.task(&run.id, &failure.step).await?;
        let undecided = UncertainStep::among(self.service, &task).await?;
        for undecided in &undecided {
            self.help(&undecided.advice(&self.store.flag()));
        }
        if undecided.is_empty() {
            let [retry, show] = ["retry", "show"].map(|verb| self.command(verb, run));
            self.help(&format!("repair the cause, then {retry}; {show} shows every step"));
        }
        Ok(())
    }

    async fn print_waiting(&self, run: &Run) -> Result<(), Failure> {
        const SHOWN: usize = 5;
        let why = self.service.why(&run.id).await?;
        let waiting = usize::try_from(why.waiting).unwrap_or(usize::MAX);
        let is_timed = why.waits.iter().all(|wait| matches!(wait.on, On::Timer { .. }));
        let what = if is_timed {
            count(waiting, "timer")
        } else {
            format!("{} that no handler here gives", count(waiting, "answer"))
        };
        output::say(&format!("run {} waits for {what}:\n", run.id));
        for wait in why.waits.iter().take(SHOWN) {
            output::say(&format!("  {}: {}\n", wait.path, sentence(wait)));
        }
        if waiting > SHOWN {
            output::say(&format!("  … {} more\n", waiting - SHOWN));
        }
        self.help(&if self.store.is_kept() && is_timed {
            let (resume, agent) = (self.command("resume", run), self.store.command("agent"));
            format!("{resume} continues it then, and {agent} does so by itself")
        } else if is_timed {
            "wait for it with `--wait SPAN`; this store is in memory, so the run is gone".into()
        } else if self.store.is_kept() {
            format!(
                "{} continues it when agents have answered, with `--handlers DIR` or `--mock FILE` it answers itself",
                self.command("resume", run),
            )
        } else {
            "answer with `--handlers DIR` or `--mock FILE`; this store is in memory, so the run is gone".into()
        });
        Ok(())
    }

    pub(crate) fn help(&self, text: &str) {
        output::say(&format!("{} {text}\n", paint("help:", color::HELP, self.color)));
    }

    fn command(&self, verb: &str, run: &Run) -> String {
        self.store.command(&format!("{verb} {}", run.id))
    }
}

/// A shorter wait is not shown.
const A_WHILE: Millis = Millis(1_000);

/// The reason why a step waits, and when its timeout ends the wait.
pub(crate) fn sentence(wait: &Wait) -> String {
    let now = Moment::now();
    let timeout = wait.times_out.map(|at| format!("; it times out {}", Moment(at).from(now)));
    let sentence = match &wait.on {
        On::Agent { name, list, needs, since, left_to } => {
            let waited = now.0.since(*since);
            let waited =
                if waited < A_WHILE { String::new() } else { format!(", for {}", shown::span(waited)) };
            let needs = match &needs[..] {
                [] => String::new(),
                needs => format!(" that has {}", needs.join(", ")),
            };
            let left = left_to.as_ref().filter(|left| left.until > now.0);
            let left = left.map(|LeftTo { server, until }| {
                format!(
                    "; it is left to {server} first, then any agent may take it ({})",
                    Moment(*until).from(now)
                )
            });
            let left = left.unwrap_or_default();
            format!("no agent{needs} has taken `{name}` from the task list `{list}`{waited}{left}")
        }
        On::Holder { name, owner, heartbeat, .. } => {
            format!("{owner} works on `{name}` (last heartbeat {})", Moment(*heartbeat).from(now))
        }
        On::Retry { name, attempts, at, error } => {
            let error = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            let attempts = count(*attempts as usize, "attempt");
            format!("`{name}` is tried again {} ({attempts} failed{error})", Moment(*at).from(now))
        }
        On::Timer { name, at } => {
            format!("`{name}` goes on {}, at {}", Moment(*at).from(now), Moment(*at).local())
        }
        On::Driver => "its answer is there and has not been taken in yet".into(),
        On::Failure(failure) | On::Decision { failure, .. } => format!("failed: {}", failure.message),
    };
    shown::inert(&(sentence + &timeout.unwrap_or_default()))
}

pub(crate) fn exit(reason: StopReason<Signal>, status: RunStatus) -> Exit {
    match (reason, status) {
        (_, RunStatus::Completed) => Exit::Fine,
        (_, RunStatus::Failed | RunStatus::Canceled) => Exit::Mistakes,
        (StopReason::Asked(signal), RunStatus::Running | RunStatus::Paused) => signal.exit(),
        (
            StopReason::Ended | StopReason::Waiting | StopReason::Held,
            RunStatus::Running | RunStatus::Paused,
        ) => Exit::Waiting,
    }
}

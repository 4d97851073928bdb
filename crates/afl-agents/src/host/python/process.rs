//! One Python process that does one call at a time.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use serde::Serialize;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::{self, Instant};

use super::answer::{self, PythonAnswer};
use super::frame::{LinkCommand, LinkError, PythonFrame, PythonLink, READY};
use super::module::ModuleVersion;
use super::texts::BOOT;
use crate::handler::{CallStop, Context, HandlerFailure, LogStream, Outcome};
use crate::process::{Ending, Group, Guardian, Output, SpawnError};

#[derive(Debug)]
pub(super) struct PythonProcess {
    pub(super) group: Group,
    link: PythonLink,
    stdout: Output,
    stderr: Output,
    /// By URI.
    pub(super) loaded: BTreeMap<String, ModuleVersion>,
    pub(super) calls: u32,
    pub(super) idle_since: Instant,
}

/// How a call left its worker.
#[derive(Debug)]
pub(super) enum CallEnd {
    /// It may be used again.
    Answered(Outcome),
    /// The process is gone.
    Ended(Outcome),
    /// The process was gone before it got the call, so another one may do it.
    NotTaken(HandlerFailure),
}

/// A process that has not said that it is ready by then never will.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(30);
/// A process whose link is closed has this long to say by its exit code why.
const END_TIMEOUT: Duration = Duration::from_millis(500);
/// The last messages of a process are in the link before the process ends.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(100);
/// How long a process that is no longer needed may clean up.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);

impl PythonProcess {
    /// Starts the interpreter with our program and waits until it is ready.
    pub(super) async fn start(
        command: &mut Command,
        hello: &Value,
        guardian: &Arc<Guardian>,
        context: &Context,
    ) -> Result<Self, HandlerFailure> {
        let program = command.as_std().get_program().to_owned();
        let failed = |reason: &dyn std::fmt::Display| {
            let message = format!("cannot start {}: {reason}", program.display());
            HandlerFailure::unavailable(message)
        };
        let mut worker = Self::spawn(command, guardian).map_err(|error| failed(&error))?;
        match time::timeout(START_TIMEOUT, worker.greet(hello)).await {
            Ok(Ok(PythonFrame { kind: READY, .. })) => Ok(worker),
            Ok(Ok(_)) => Err(failed(&"it does not keep to the protocol")),
            Ok(Err(_)) => {
                let ending = worker.bury(context).await;
                let failure = failed(&format_args!("it ended with {ending}"));
                Err(ending.describe(failure).with("stderr", worker.stderr.tail()))
            }
            Err(_) => Err(failed(&"it does not answer")),
        }
    }

    fn spawn(command: &mut Command, guardian: &Arc<Guardian>) -> Result<Self, SpawnError> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (stdout, stdout_end) = Output::pipe(LogStream::Stdout)?;
        let (stderr, stderr_end) = Output::pipe(LogStream::Stderr)?;
        // The link is their standard input, in both directions, so that nothing printed can get into it.
        command
            .args(["-c", BOOT])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(stdout_end)
            .stderr(stderr_end);
        let group = Group::spawn(command, guardian)?;
        // Our copies of the ends must go, or the pipes never close.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let link = PythonLink::new(UnixStream::from_std(ours)?);
        Ok(Self {
            group,
            link,
            stdout,
            stderr,
            loaded: BTreeMap::new(),
            calls: 0,
            idle_since: Instant::now(),
        })
    }

    async fn greet(&mut self, hello: &Value) -> Result<PythonFrame, LinkError> {
        self.link.write(LinkCommand::Call, hello).await?;
        self.link.read().await
    }

    /// Does one call. A timeout kills the process at once. A cancel is sent to it first, and the caller
    /// drops us when that takes too long.
    pub(super) async fn call(&mut self, request: &impl Serialize, context: &Context) -> CallEnd {
        self.calls += 1;
        self.stdout.discard();
        self.stderr.discard();
        let written = tokio::select! {
            // A process begins a call when it has read it to its end. A call that is stopped must not begin.
            biased;
            stop = context.stopped() => {
                self.put_down(context).await;
                return CallEnd::Ended(Err(stop.failure().not_done()));
            }
            written = self.link.write(LinkCommand::Call, request) => written,
        };
        if written.is_err() {
            let ending = self.bury(context).await;
            return CallEnd::NotTaken(self.crash(ending).not_done());
        }
        let mut canceled = false;
        loop {
            tokio::select! {
                // A process that never stops talking must not be deaf to this.
                biased;
                stop = context.stopped(), if !canceled => match stop {
                    CallStop::TimedOut => {
                        self.put_down(context).await;
                        return CallEnd::Ended(Err(stop.failure()));
                    }
                    CallStop::Canceled(_) => {
                        canceled = true;
                        if let Err(error) = self.link.write(LinkCommand::Cancel, &Value::Null).await {
                            return self.lost(&error, context).await;
                        }
                    }
                },
                frame = self.link.read() => {
                    self.stdout.catch_up(context);
                    self.stderr.catch_up(context);
                    match frame.and_then(|frame| answer::take(&frame, context)) {
                        Ok(None) => {}
                        Ok(Some(answer)) => return self.answered(answer, context),
                        Err(error) => return self.lost(&error, context).await,
                    }
                }
                // The link may stay open in a process that it forked.
                _ = self.group.exited() => return self.after_exit(context).await,
                () = self.stdout.follow(context) => {}
                () = self.stderr.follow(context) => {}
            }
        }
    }

    /// Reads what it said last.
    async fn after_exit(&mut self, context: &Context) -> CallEnd {
        loop {
            let read = time::timeout(LAST_WORDS_TIMEOUT, self.link.read()).await;
            let read = read.unwrap_or(Err(LinkError::Closed));
            match read.and_then(|frame| answer::take(&frame, context)) {
                Ok(None) => {}
                Ok(Some(answer)) => return self.answered(answer, context),
                Err(error) => return self.lost(&error, context).await,
            }
        }
    }

    fn answered(&mut self, answer: PythonAnswer, context: &Context) -> CallEnd {
        self.stdout.finish(context);
        self.stderr.finish(context);
        match answer {
            PythonAnswer::Of(outcome) => CallEnd::Answered(outcome),
            PythonAnswer::NotLoaded(failure) => {
                self.group.signal(Signal::KILL);
                CallEnd::Ended(Err(failure))
            }
        }
    }

    /// Ends an idle process: it may clean up, and is killed if that takes long.
    pub(super) async fn retire(mut self) {
        let leaving = async {
            self.link.close().await?;
            self.group.wait().await
        };
        // Dropping it kills whatever is left.
        drop(time::timeout(EXIT_TIMEOUT, leaving).await);
    }

    async fn put_down(&mut self, context: &Context) {
        self.group.signal(Signal::KILL);
        self.bury(context).await;
    }

    async fn lost(&mut self, error: &LinkError, context: &Context) -> CallEnd {
        let ending = self.bury(context).await;
        let mut failure = self.crash(ending);
        if let LinkError::Broken(reason) = error {
            failure.message =
                format!("the Python process was ended because it broke the link to its agent: {reason}");
        }
        CallEnd::Ended(Err(failure))
    }

    /// Waits for the end, or kills the process, and logs the last output.
    async fn bury(&mut self, context: &Context) -> Ending {
        let status = match time::timeout(END_TIMEOUT, self.group.wait()).await {
            Ok(status) => status,
            Err(_) => self.group.kill().await,
        };
        self.stdout.finish(context);
        self.stderr.finish(context);
        status.map_or(Ending::Signaled(0), Ending::of)
    }

    fn crash(&self, ending: Ending) -> HandlerFailure {
        let message = format!("the Python interpreter ended with {ending} in the middle of the call");
        ending.describe(HandlerFailure::crash(message)).with("stderr", self.stderr.tail())
    }
}

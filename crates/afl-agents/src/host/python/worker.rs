//! One Python process that does one call at a time.

use std::collections::BTreeMap;
use std::io;
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

use super::frame::{Frame, Link, LinkError, Order};
use super::module::ModuleVersion;
use super::tell::{self, Answer};
use super::texts::BOOT;
use crate::handler::{Context, Failure, FailureKind, Outcome, Stop, Stream};
use crate::process::{Ending, Group, Guardian, Output};

#[derive(Debug)]
pub(super) struct Worker {
    group: Group,
    link: Link,
    stdout: Output,
    stderr: Output,
    /// By URI.
    pub(super) loaded: BTreeMap<String, ModuleVersion>,
    pub(super) calls: u32,
    pub(super) idle_since: Instant,
}

/// How a call left its worker.
#[derive(Debug)]
pub(super) enum Done {
    /// It may be used again.
    Answered(Outcome),
    /// The process is gone.
    Ended(Outcome),
    /// The process was gone before it got the call, so another one may do it.
    NotTaken(Failure),
}

/// A process that has not said that it is ready by then never will.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(30);
/// A process whose link is closed has this long to say by its exit code why.
const END_TIMEOUT: Duration = Duration::from_millis(500);
/// What a process said before its end is in the link already.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(100);
/// How long a process that is no longer needed may clean up.
const EXIT_TIMEOUT: Duration = Duration::from_secs(3);

impl Worker {
    /// Starts the interpreter with our program and waits until it is ready.
    pub(super) async fn start(
        command: &mut Command,
        hello: &Value,
        guardian: &Arc<Guardian>,
        context: &Context,
    ) -> Result<Self, Failure> {
        let program = command.as_std().get_program().to_owned();
        let failed = |reason: &dyn std::fmt::Display| {
            let message = format!("cannot start {}: {reason}", program.display());
            Failure::new(FailureKind::Unavailable, message)
        };
        let mut worker = Self::spawn(command, guardian).map_err(|error| failed(&error))?;
        match time::timeout(START_TIMEOUT, worker.greet(hello)).await {
            Ok(Ok(Frame::Ready)) => Ok(worker),
            Ok(Ok(_)) => Err(failed(&"it does not keep to the protocol")),
            Ok(Err(_)) => {
                let ending = worker.bury(context).await;
                let failure = failed(&format_args!("it ended with {ending}"));
                Err(ending.describe(failure).with("stderr", worker.stderr.tail()))
            }
            Err(_) => Err(failed(&"it does not answer")),
        }
    }

    fn spawn(command: &mut Command, guardian: &Arc<Guardian>) -> io::Result<Self> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (stdout, stdout_end) = Output::pipe(Stream::Stdout)?;
        let (stderr, stderr_end) = Output::pipe(Stream::Stderr)?;
        // The link is their standard input, in both directions, so that nothing printed can get into it.
        command
            .args(["-c", BOOT])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(stdout_end)
            .stderr(stderr_end);
        let group = Group::spawn(command, guardian)?;
        // Our copies of the ends must go, or the pipes never close.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let link = Link::new(UnixStream::from_std(ours)?);
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

    async fn greet(&mut self, hello: &Value) -> Result<Frame, LinkError> {
        self.link.write(Order::Call, hello).await?;
        self.link.read().await
    }

    pub(super) fn is_dead(&mut self) -> bool {
        self.group.has_exited()
    }

    /// Does one call. A stop for being overdue kills at once; a cancel is told first, and whoever asked
    /// drops us when that takes too long.
    pub(super) async fn call(&mut self, request: &impl Serialize, context: &Context) -> Done {
        self.calls += 1;
        self.stdout.discard();
        self.stderr.discard();
        let written = tokio::select! {
            written = self.link.write(Order::Call, request) => written,
            stop = context.stopped() => return self.put_down(stop, context).await,
        };
        if written.is_err() {
            let ending = self.bury(context).await;
            return Done::NotTaken(self.crash(ending));
        }
        let mut canceled = false;
        loop {
            tokio::select! {
                // A process that never stops talking must not be deaf to this.
                biased;
                stop = context.stopped(), if !canceled => match stop {
                    Stop::TimedOut => return self.put_down(stop, context).await,
                    Stop::Canceled(_) => {
                        canceled = true;
                        if let Err(error) = self.link.write(Order::Cancel, &Value::Null).await {
                            return self.lost(&error, context).await;
                        }
                    }
                },
                frame = self.link.read() => {
                    self.stdout.catch_up(context);
                    self.stderr.catch_up(context);
                    match frame {
                        Ok(frame) => if let Some(answer) = tell::take(frame, context) {
                            return self.answered(answer, context);
                        },
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
    async fn after_exit(&mut self, context: &Context) -> Done {
        loop {
            match time::timeout(LAST_WORDS_TIMEOUT, self.link.read()).await {
                Ok(Ok(frame)) => {
                    if let Some(answer) = tell::take(frame, context) {
                        return self.answered(answer, context);
                    }
                }
                Ok(Err(error)) => return self.lost(&error, context).await,
                Err(_) => return self.lost(&LinkError::Closed, context).await,
            }
        }
    }

    fn answered(&mut self, answer: Answer, context: &Context) -> Done {
        self.stdout.finish(context);
        self.stderr.finish(context);
        match answer {
            Answer::Of(outcome) => Done::Answered(outcome),
            Answer::NotLoaded(failure) => {
                self.group.signal(Signal::KILL);
                Done::Ended(Outcome::Failed(failure))
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

    /// Ends it at once.
    pub(super) async fn end(mut self) {
        // Whatever the kernel says, dropping it tries again.
        drop(self.group.kill().await);
    }

    async fn put_down(&mut self, stop: Stop, context: &Context) -> Done {
        self.group.signal(Signal::KILL);
        self.bury(context).await;
        Done::Ended(Outcome::Failed(stop.failure()))
    }

    async fn lost(&mut self, error: &LinkError, context: &Context) -> Done {
        let ending = self.bury(context).await;
        let mut failure = self.crash(ending);
        if let LinkError::Broken(reason) = error {
            failure.message =
                format!("the Python process was ended because it broke the link to its agent: {reason}");
        }
        Done::Ended(Outcome::Failed(failure))
    }

    /// Waits for the end, which is at hand or is brought about, and tells the last output.
    async fn bury(&mut self, context: &Context) -> Ending {
        let status = match time::timeout(END_TIMEOUT, self.group.wait()).await {
            Ok(status) => status,
            Err(_) => self.group.kill().await,
        };
        self.stdout.finish(context);
        self.stderr.finish(context);
        status.map_or(Ending::Signaled(0), Ending::of)
    }

    fn crash(&self, ending: Ending) -> Failure {
        let message = format!("the Python interpreter ended with {ending} in the middle of the call");
        ending.describe(Failure::new(FailureKind::Crash, message)).with("stderr", self.stderr.tail())
    }
}

//! A child process with all its descendants that stay in its group, and the environment it sees.

use std::env;
use std::ffi::OsString;
use std::io;
use std::mem;
use std::process::ExitStatus;
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdin, Command};

use super::Guardian;
use crate::handler::WorkEvidence;

/// Killed when dropped, and when this process ends in any way.
#[derive(Debug)]
pub(crate) struct Group {
    child: Child,
    id: Pid,
    guardian: Arc<Guardian>,
    /// The child is reaped and the rest killed: the number may belong to another process.
    has_ended: bool,
}

/// Why there is no process.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error(transparent)]
    NotStarted(#[from] io::Error),
    /// It was killed again, and may have done something before.
    #[error("the guardian of child processes does not answer: {0}")]
    Unguarded(#[source] io::Error),
}

impl SpawnError {
    pub(crate) fn evidence(&self) -> WorkEvidence {
        match self {
            Self::NotStarted(_) => WorkEvidence::NotDone,
            Self::Unguarded(_) => WorkEvidence::Unknown,
        }
    }
}

impl Group {
    pub(crate) fn spawn(command: &mut Command, guardian: &Arc<Guardian>) -> Result<Self, SpawnError> {
        let child = command.process_group(0).spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).expect("a new child has an id");
        let group = Self { child, id, guardian: guardian.clone(), has_ended: false };
        guardian.watch_over(group.number()).map_err(SpawnError::Unguarded)?;
        Ok(group)
    }

    pub(crate) fn number(&self) -> i32 {
        self.id.as_raw_nonzero().get()
    }

    /// Reaps the child if it has exited, and says so.
    pub(crate) fn try_reap(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if self.has_ended {
            return;
        }
        // Refused only if all are gone already, or have become another user, which the kernel protects from us.
        kill_process_group(self.id, signal).ok();
    }

    /// Waits for the child, then kills what it left behind.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.end();
        Ok(status)
    }

    /// Waits for the child alone; what it left behind is still there.
    pub(crate) async fn exited(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    pub(crate) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    pub(crate) async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.wait().await
    }

    /// Kills the processes that are left.
    pub(crate) fn end(&mut self) {
        self.signal(Signal::KILL);
        if !mem::replace(&mut self.has_ended, true) {
            self.guardian.forget(self.number());
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// What programs need to find other programs, files, languages and certificates, and nothing secret.
const HARMLESS: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Of our own variables the harmless ones and those that the operator names.
pub(crate) fn pass(chosen: &[String]) -> impl Iterator<Item = (String, OsString)> {
    let names = HARMLESS.iter().copied().chain(chosen.iter().map(String::as_str));
    names.filter_map(|name| Some((name.to_owned(), env::var_os(name)?)))
}

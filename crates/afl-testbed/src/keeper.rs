//! A shell beside this process that keeps a server: it starts and stops it on request, and cleans up when we are gone.
//!
//! Its standard input is a pipe from us. However we end, by return, panic, Ctrl-C or `kill -9`, the pipe closes, and
//! the keeper stops the server and removes its directory.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::{fs, thread};

#[derive(Debug)]
pub(crate) struct Keeper {
    child: Child,
    /// Closed to make the keeper clean up.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    directory: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot find PostgreSQL's `{program}`: {}", crate::postgres::HOW_TO_INSTALL)]
    Missing { program: &'static str },
    #[error("`{order}` of a server for tests failed; its log ends: {log}")]
    Refused { order: String, log: String },
    #[error("cannot {what} for a server of the tests")]
    Io { what: &'static str, source: io::Error },
}

/// The user that a server runs as; servers refuse to run as root.
#[derive(Clone, Copy, Debug)]
struct User {
    uid: u32,
    gid: u32,
}

impl Keeper {
    pub(crate) const LOG: &'static str = "log";
    const ANSWER_OK: &'static str = "ok";
    const LOG_LINES_SHOWN: usize = 20;

    /// Runs `script` with `sh`. It answers each line it reads with one line, and removes its working directory at the end.
    pub(crate) fn start(script: &str, variables: &[(&str, &str)]) -> Result<Self, StartError> {
        let directory = tempfile::Builder::new()
            .prefix("afl-test-")
            .tempdir()
            .map_err(|source| StartError::Io { what: "make a directory", source })?;
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(directory.path()).envs(variables.iter().copied());
        // A group of its own: Ctrl-C at the terminal must reach us, not the keeper.
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        if let Some(user) = unprivileged(directory.path())? {
            shell.uid(user.uid).gid(user.gid);
        }
        let mut child = shell.spawn().map_err(|source| StartError::Io { what: "start a shell", source })?;
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Ok(Self { child, orders, answers, directory: directory.keep() })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn order(&mut self, order: &str) -> Result<(), StartError> {
        let talking = |source| StartError::Io { what: "talk to the keeper", source };
        let orders = self.orders.as_mut().expect("orders stay open until the end");
        writeln!(orders, "{order}").map_err(talking)?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).map_err(talking)?;
        if answer.trim() == Self::ANSWER_OK {
            return Ok(());
        }
        Err(StartError::Refused { order: order.to_owned(), log: self.log_end() })
    }

    fn log_end(&self) -> String {
        let log =
            fs::read_to_string(self.directory.join(Self::LOG)).unwrap_or_else(|error| error.to_string());
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(Self::LOG_LINES_SHOWN)..].join("\n")
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Err(error) = self.child.wait()
            && !thread::panicking()
        {
            panic!("cannot wait for the keeper of {}: {error}", self.directory.display());
        }
    }
}

const ROOT: u32 = 0;

/// The user to run as when we are root, who then owns the directory.
fn unprivileged(directory: &Path) -> Result<Option<User>, StartError> {
    let reading = |source| StartError::Io { what: "find a user", source };
    let owner = fs::metadata(directory).map_err(reading)?.uid();
    if owner != ROOT {
        return Ok(None);
    }
    let accounts = fs::read_to_string("/etc/passwd").map_err(reading)?;
    let find = |name| accounts.lines().find_map(|line| account(line, name));
    let user = find("postgres").or_else(|| find("nobody")).ok_or_else(|| {
        reading(io::Error::new(io::ErrorKind::NotFound, "neither `postgres` nor `nobody` is an account here"))
    })?;
    chown(directory, Some(user.uid), Some(user.gid))
        .map_err(|source| StartError::Io { what: "hand over a directory", source })?;
    Ok(Some(user))
}

/// Of one line of `/etc/passwd`.
fn account(line: &str, name: &str) -> Option<User> {
    let mut fields = line.strip_prefix(name)?.strip_prefix(':')?.split(':').skip(1);
    let uid = fields.next()?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(User { uid, gid })
}

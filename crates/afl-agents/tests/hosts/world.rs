//! A folder of handlers, the hosts over it, and calls.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use afl_agents::handler::{
    Call, CallControl, Context, Facts, HandlerFailure, LogStream, Notes, Object, Outcome,
};
use afl_agents::http::{AllowedHosts, HttpConfig};
use afl_agents::registration::Registration;
use afl_agents::{Hosts, HostsConfig, PythonConfig, Roots};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) hosts: Hosts,
}

#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) notes: Notes,
}

pub(crate) const FACET: &str = "billing.ProcessPayment";

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(configure: impl FnOnce(&mut HostsConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let http = HttpConfig { allowed: AllowedHosts::new(["127.0.0.1"]).unwrap(), ..HttpConfig::default() };
        let roots = Roots::new([folder.path()]).unwrap();
        let mut config = HostsConfig { roots, python: PythonConfig::default(), http };
        configure(&mut config);
        Self { folder, hosts: Hosts::new(config).unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Writes `handlers.py` and calls it.
    pub(crate) async fn python(&self, text: &str, payload: Value) -> Ran {
        self.write("handlers.py", text);
        self.run(&Registration::new(FACET, "handlers"), payload).await
    }

    /// Writes a program and calls it.
    pub(crate) async fn exec(&self, text: &str, payload: Value) -> Ran {
        let program = self.program("program", text);
        self.run(&Registration::new(FACET, format!("exec:{}", program.display())), payload).await
    }

    pub(crate) async fn run(&self, registration: &Registration, payload: Value) -> Ran {
        let (call, control) = call(payload);
        let outcome = self.hosts.run(registration, call).await;
        Ran { outcome, notes: control.take_notes() }
    }
}

pub(crate) fn facts() -> Facts {
    Facts {
        lease_token: 7,
        idempotency_key: "run-1/wb0s0".to_owned(),
        attempt: 2,
        answered: 1,
        path: "Checkout.payment".to_owned(),
    }
}

pub(crate) fn call(payload: Value) -> (Call, CallControl) {
    let (context, control) = Context::new(facts());
    let Value::Object(payload) = payload else { panic!("a payload is an object") };
    (Call::new(FACET, payload, context), control)
}

impl Ran {
    pub(crate) fn result(self) -> Object {
        match self.outcome {
            Ok(result) => result,
            Err(failure) => panic!("{failure}: {:?}", failure.details),
        }
    }

    pub(crate) fn failure(&self) -> &HandlerFailure {
        match &self.outcome {
            Ok(result) => panic!("completed: {result:?}"),
            Err(failure) => failure,
        }
    }

    pub(crate) fn lines(&self, stream: LogStream) -> Vec<&str> {
        let lines = self.notes.lines.iter().filter(|line| line.stream == stream);
        lines.map(|line| line.text.as_str()).collect()
    }
}

/// Waits for the end of a process by its number, up to a minute.
pub(crate) fn wait_for_death(pid: i32) {
    let pid = Pid::from_raw(pid).unwrap();
    // No such process: it is dead and buried.
    let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    let minute = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
    assert_eq!(poll(&mut fds, Some(&minute)).unwrap(), 1, "process {pid:?} lives");
}

pub(crate) fn number_in(path: &Path) -> i32 {
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// A traceback without the lines that underline, which not every Python has.
pub(crate) fn without_marks(traceback: &str) -> String {
    let is_mark = |line: &&str| !line.trim().is_empty() && line.chars().all(|letter| " ^~".contains(letter));
    traceback.lines().filter(|line| !is_mark(line)).collect::<Vec<_>>().join("\n")
}

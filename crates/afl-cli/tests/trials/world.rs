//! A folder with a store, a program and handlers; commands, agents and other processes over it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use afl_backends::sqlite::{Options, Sqlite};
use afl_engine::run::Run;
use afl_engine::task::Task;
use afl_runtime::{RunId, Service, TaskQuery};
use afl_store::backend::Backend;
use afl_store::record::Tenant;
use afl_testbed::PATIENCE;
pub(crate) use afl_testbed::Process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;
use tempfile::TempDir;

/// Of the agents here, unless a test says otherwise: long enough for a busy machine to extend it in time.
pub(crate) const LEASE: Duration = Duration::from_secs(4);
const PROGRAM: &str = "program.afl";

pub(crate) struct World {
    folder: TempDir,
    /// To look at what others do.
    pub(crate) service: Service,
}

impl World {
    pub(crate) fn new(program: &str) -> Self {
        let memory = TempDir::new_in("/dev/shm");
        let folder = memory.or_else(|_| TempDir::new()).expect("a folder is made");
        let service = Service::new(backend(&store(folder.path())), tenant());
        let world = Self { folder, service };
        world.write(PROGRAM, program);
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("it is there").join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        store(self.folder.path())
    }

    /// `FOLDER` in the text is where this is.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("it is made");
        fs::write(&path, text.replace("FOLDER", &self.path("").display().to_string()))
            .expect("it is written");
        path
    }

    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.write(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        path
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_afl"));
        command.env("AFL_STORE", format!("sqlite:{}", self.store().display()));
        command.current_dir(self.path("")).args(arguments).stdin(Stdio::null());
        command
    }

    pub(crate) fn afl(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("afl runs")
    }

    /// The output of a command that succeeds.
    pub(crate) fn said(&self, arguments: &[&str]) -> String {
        let output = self.afl(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("it is text")
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.said(arguments)).expect("it is JSON")
    }

    pub(crate) fn start(&self, workflow: &str, inputs: &[&str]) -> RunId {
        let mut arguments = vec!["start", PROGRAM, "--workflow", workflow];
        for input in inputs {
            arguments.extend(["-i", input]);
        }
        RunId(self.said(&arguments).trim().into())
    }

    /// An agent with the lease of these tests, and what else is said.
    pub(crate) fn agent(&self, name: &str, arguments: &[&str]) -> Process {
        self.agent_with(LEASE, name, arguments)
    }

    pub(crate) fn agent_with(&self, lease: Duration, name: &str, arguments: &[&str]) -> Process {
        let lease = lease.as_millis().to_string();
        let common = ["agent", "--name", name, "--lease-ms", &lease];
        let mut command = self.command(&[&common, arguments].concat());
        Process::listening(command.stderr(Stdio::piped()), |child| {
            Box::new(child.stderr.take().expect("it is piped"))
        })
    }

    /// `afl run`, which does the work of one run itself.
    pub(crate) fn runs(&self, arguments: &[&str]) -> Process {
        let mut command = self.command(&[&["run"], arguments].concat());
        Process::listening(command.stdout(Stdio::null()).stderr(Stdio::piped()), |child| {
            Box::new(child.stderr.take().expect("it is piped"))
        })
    }

    pub(crate) async fn ended(&self, run: &RunId) -> Run {
        let ended = tokio::time::timeout(PATIENCE, self.service.ended(run)).await;
        ended.unwrap_or_else(|_| panic!("run {run} did not end")).expect("the store works")
    }

    /// The one task of a run.
    pub(crate) async fn task(&self, run: &RunId) -> Task {
        let query = TaskQuery { run: Some(run.clone()), limit: 2, ..TaskQuery::default() };
        let tasks = self.service.tasks(&query).await.expect("the store works").tasks;
        let [task] = &tasks[..] else { panic!("{} tasks", tasks.len()) };
        task.clone()
    }

    /// The words of a file, which are left there one after the other.
    pub(crate) fn left(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Waits until so many words are in a file.
    pub(crate) async fn leaves(&self, name: &str, words: usize) -> Vec<String> {
        let waiting = async {
            while self.left(name).len() < words {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(in_time.is_ok(), "{name} has only {:?}", self.left(name));
        self.left(name)
    }

    pub(crate) fn examine(&self) {
        let doctor = self.afl(&["doctor"]);
        assert!(doctor.status.success(), "{doctor:?}");
    }
}

fn store(folder: &Path) -> PathBuf {
    folder.join("store.db")
}

pub(crate) fn backend(store: &Path) -> Arc<dyn Backend> {
    Arc::new(Sqlite::open(store, Options::default()).expect("the file opens"))
}

pub(crate) fn tenant() -> Tenant {
    Tenant::new(Tenant::LOCAL).expect("a good name")
}

/// For processes by their numbers, however slow they are to die.
pub(crate) fn wait_for_deaths(pids: &[String]) {
    for pid in pids {
        wait_for_death(pid);
    }
}

fn wait_for_death(pid: &str) {
    let pid = Pid::from_raw(pid.parse().expect("a number")).expect("not the kernel");
    // No such process: it is dead and buried.
    let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    assert_eq!(poll(&mut fds, Some(&patience)).expect("it can be waited for"), 1, "process {pid:?} lives");
}

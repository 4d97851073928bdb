//! `afl agent --profile service` as a real process: its status, the starts it makes, and how it ends.

#![cfg(unix)]

mod pay;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use afl_testbed::Process;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use pay::PROGRAM;

/// How often a thing is looked for that comes in a moment.
const LOOKS: usize = 1_000;

struct World {
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder is made");
        fs::write(folder.path().join("pay.afl"), PROGRAM).expect("it is written");
        let slow = pay::slow(folder.path(), r#"open("FOLDER/pid", "w").write(str(os.getpid()))"#);
        fs::write(folder.path().join("slow.py"), slow).expect("it is written");
        Self { folder }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn afl(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_afl"));
        command
            .env_remove("AFL_STORE")
            .current_dir(self.folder.path())
            .args(arguments)
            .output()
            .expect("afl runs")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.afl(arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    fn start(&self, how: &[&str]) -> String {
        let arguments = [&["start", "pay.afl", "-i", "item=tea", "--json"], how].concat();
        self.json(&arguments)["run"].as_str().expect("it names the run").to_owned()
    }

    fn agent(&self, more: &[&str]) -> Process {
        let arguments =
            [&["agent", "--profile", "service", "--handlers", "slow.py", "--http-port", "0"], more];
        let mut command = Command::new(env!("CARGO_BIN_EXE_afl"));
        command.args(arguments.concat()).env_remove("AFL_STORE").current_dir(self.folder.path());
        Process::listening(command.stderr(Stdio::piped()), |child| {
            Box::new(child.stderr.take().expect("it is piped"))
        })
    }

    fn finished(&self, run: &str) {
        let shown = self.json(&["resume", run, "--json"]);
        assert_eq!((&shown["status"], &shown["outputs"]["receipt"]), (&"completed".into(), &"slow".into()));
        let doctor = self.afl(&["doctor"]);
        assert!(doctor.status.success(), "{doctor:?}");
    }
}

fn get(url: &str) -> (u16, String) {
    let (address, path) =
        url.strip_prefix("http://").expect("it is an address").split_once('/').expect("a path");
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        .expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code");
    (code, answer.split_once("\r\n\r\n").expect("a body").1.to_owned())
}

// covers: SDK-7.2-d
#[test]
fn a_service_makes_starts_serves_its_status_and_drains_at_a_signal() {
    let world = World::new();
    let run = world.start(&["--enqueue"]);
    let waits = world.afl(&["show", &run]);
    assert!(String::from_utf8_lossy(&waits.stderr).contains("it waits for a runner"), "{waits:?}");
    let tasks = world.json(&["tasks", "--json"]);
    assert_eq!(
        (&tasks["tasks"][0]["name"], &tasks["tasks"][0]["kind"]),
        (&"afl:execute".into(), &"system".into())
    );

    let mut agent = world.agent(&[]);
    let status = agent.says("status: ");
    let status = status.strip_prefix("status: ").expect("it begins so");
    agent.says(&format!("Pay.charge of run {run}: begun"));
    let [health, metrics] = ["/health", "/metrics"].map(|path| status.replace("/status", path));
    assert_eq!(get(&health).0, 200);
    // The task that made the start may be in work a moment longer.
    let is_alone = |_| get(&metrics).1.contains("afl_tasks_in_work 1");
    assert!((0..LOOKS).any(is_alone), "{}", get(&metrics).1);
    let told: Value = serde_json::from_str(&get(status).1).expect("it is JSON");
    assert_eq!(
        (&told["state"], &told["current"][0]["path"]),
        (&"running".into(), &"Pay.charge".into()),
        "{told}"
    );
    let servers = world.json(&["servers", "--json"]);
    assert_eq!(servers["servers"][0]["http"], status.replace("/status", ""), "{servers}");

    agent.signal(Signal::INT);
    agent.says("stopping");
    assert_eq!(get(&health).0, 503);
    fs::write(world.path("go"), "").expect("it is written");
    agent.says("done after");
    assert_eq!(agent.code(), Some(0));
    world.finished(&run);
    let start = format!("@execute/{run}");
    assert_eq!(world.json(&["task", "show", &start, "--json"])["state"], "completed");
}

// T20: the child process is gone when the task is free.
// covers: SDK-7.2-d
#[test]
fn a_task_that_outlasts_the_shutdown_is_killed_and_given_back() {
    let world = World::new();
    let run = world.start(&[]);
    let pipe = Command::new("mkfifo").arg(world.path("pid")).status().expect("mkfifo runs");
    assert!(pipe.success());
    let mut agent = world.agent(&["--shutdown-timeout-ms", "100"]);
    agent.says("begun");
    // Opening a pipe waits for the other end.
    let pid = fs::read_to_string(world.path("pid")).expect("it is told");
    agent.signal(Signal::TERM);
    agent.says("given back undone");
    assert_eq!(agent.code(), Some(0));
    assert!(!Path::new("/proc").join(pid).exists(), "its interpreter is gone with it");
    fs::remove_file(world.path("pid")).expect("it is there");
    let task = world.json(&["task", "show", &run, "Pay.charge", "--json"]);
    assert_eq!((&task["state"], &task["attempts"]), (&"pending".into(), &0.into()), "{task}");
    fs::write(world.path("go"), "").expect("it is written");
    let mut next = world.agent(&[]);
    next.says("done after");
    next.signal(Signal::TERM);
    assert_eq!(next.code(), Some(0));
    world.finished(&run);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let world = World::new();
        world.start(&[]);
        let mut agent = world.agent(&[]);
        agent.says("begun");
        agent.signal(signal);
        agent.says("stopping");
        agent.signal(signal);
        assert_eq!(agent.code(), Some(code), "{signal:?}");
    }
}

#[test]
fn a_start_that_was_handed_over_can_be_withdrawn_and_asked_for_again() {
    let world = World::new();
    let run = world.start(&["--enqueue", "--key", "k"]);
    assert_eq!(world.start(&["--enqueue", "--key", "k"]), run, "the key is that of the start");
    let start = format!("@execute/{run}");
    let canceled = world.afl(&["cancel", &run]);
    assert!(String::from_utf8_lossy(&canceled.stderr).contains("its start is taken back"), "{canceled:?}");
    assert_eq!(world.json(&["cancel", &run, "--json"])["status"], "canceled", "twice is no mistake");
    assert_eq!(world.afl(&["task", "cancel", &start]).status.code(), Some(2));
    assert_eq!(world.afl(&["task", "skip", &start]).status.code(), Some(2));
    assert!(world.afl(&["agent", "--once", "--profile", "service"]).status.success());
    assert_eq!(world.json(&["runs", "--json"])["runs"], serde_json::json!([]));
    assert!(world.afl(&["task", "retry", &start]).status.success());
    assert!(world.afl(&["agent", "--once", "--profile", "service"]).status.success());
    let why = world.json(&["why", &run, "--json"]);
    assert_eq!(why["unserved"], serde_json::json!(["Charge"]), "{why}");
    let ended = world.json(&["tasks", "--state", "completed", "--name", "afl:execute", "--json"]);
    assert_eq!(ended["tasks"][0]["workflow_id"], start, "{ended}");
}

// covers: SDK-8.1-a
#[test]
fn a_registration_outlives_the_processes_that_use_it() {
    let world = World::new();
    fs::write(world.path("go"), "").expect("it is written");
    let module = format!("file://{}", world.path("slow.py").canonicalize().expect("it is there").display());
    let registered = world.afl(&["handlers", "register", "Charge", &module, "--entrypoint", "charge"]);
    assert!(registered.status.success(), "{registered:?}");
    for _ in 0..2 {
        let run = world.start(&[]);
        let once = world.afl(&["agent", "--once"]);
        assert!(once.status.success(), "{once:?}");
        world.finished(&run);
    }
}

#[test]
fn an_agent_of_several_task_lists_says_so_everywhere() {
    let world = World::new();
    let program = PROGRAM.replace(
        "charge = Charge(item = $.item)",
        "charge = Charge(item = $.item) with TaskList(name = $.item)",
    );
    fs::write(world.path("pay.afl"), program).expect("it is written");
    let run = world.start(&[]);
    let why = |run: &str| world.json(&["why", run, "--json"])["unserved"].clone();
    let told = world.afl(&["why", &run]);
    assert!(String::from_utf8_lossy(&told.stdout).contains("afl agent --task-list tea"), "{told:?}");
    let mut agent = world.agent(&["--task-list", "tea", "--task-list", "coffee"]);
    agent.says("takes work from the task lists `coffee`, `tea`, 5 at once");
    agent.says(&format!("Pay.charge of run {run}: begun"));
    let servers = world.json(&["servers", "--json"]);
    assert_eq!(servers["servers"][0]["task_lists"], serde_json::json!(["coffee", "tea"]), "{servers}");
    let other = world.json(&["start", "pay.afl", "-i", "item=milk", "--json"]);
    assert_eq!(why(other["run"].as_str().expect("a run")), serde_json::json!(["Charge"]));
    assert_eq!(why(&run), serde_json::json!([]));
    fs::write(world.path("go"), "").expect("it is written");
    agent.says("done after");
    agent.signal(Signal::TERM);
    assert_eq!(agent.code(), Some(0));
    world.finished(&run);
}

//! Real agents of one store: killed, suspended and resumed, and asked to end.

#![cfg(unix)]

mod pay;
mod standstill;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use afl_testbed::{PATIENCE, Process};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use pay::PROGRAM;
use standstill::stop_between_commits;

const QUICK: &str = r#"
from agentflow import handler

@handler("Charge")
async def charge(payload):
    return {"receipt": "quick"}
"#;
const LEASE_MS: &str = "4000";

/// A folder with a store, a program and handlers of two kinds.
fn world() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder is made");
    fs::write(folder.path().join("pay.afl"), PROGRAM).expect("it is written");
    let slow = pay::slow(folder.path(), r#"open("FOLDER/calls", "a").write("x")"#);
    fs::write(folder.path().join("slow.py"), slow).expect("it is written");
    fs::write(folder.path().join("quick.py"), QUICK).expect("it is written");
    folder
}

fn afl(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_afl"));
    command.env_remove("AFL_STORE").current_dir(folder).args(arguments).output().expect("afl runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn start(folder: &Path) -> String {
    json(&afl(folder, &["start", "pay.afl", "-i", "item=tea", "--json"]))["run"]
        .as_str()
        .expect("it names the run")
        .to_owned()
}

fn agent(folder: &Path, name: &str, handlers: &str) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_afl"));
    command.args(["agent", "--name", name, "--handlers", handlers, "--lease-ms", LEASE_MS]);
    command.env_remove("AFL_STORE").current_dir(folder);
    Process::listening(command.stderr(Stdio::piped()), |child| {
        Box::new(child.stderr.take().expect("it is piped"))
    })
}

fn finished(folder: &Path, run: &str, receipt: &str) {
    let shown = json(&afl(folder, &["resume", run, "--json"]));
    assert_eq!((&shown["status"], &shown["outputs"]["receipt"]), (&"completed".into(), &receipt.into()));
    let doctor = afl(folder, &["doctor"]);
    assert!(doctor.status.success(), "{doctor:?}");
}

#[test]
fn f2_the_work_of_a_killed_agent_is_done_by_another() {
    let world = world();
    let run = start(world.path());
    let mut first = agent(world.path(), "first", "slow.py");
    first.says("Pay.charge of run");
    first.signal(Signal::KILL);
    first.child.wait().unwrap();
    let second = agent(world.path(), "second", "quick.py");
    second.says(&format!("Pay.charge of run {run}: done"));
    second.end();
    finished(world.path(), &run, "quick");
}

#[test]
fn f5_the_late_answer_of_an_agent_that_stood_still_is_refused() {
    let world = world();
    let run = start(world.path());
    let first = agent(world.path(), "first", "slow.py");
    first.says("begun");
    stop_between_commits(&first, &world.path().join(".afl/store.db"));
    let second = agent(world.path(), "second", "quick.py");
    second.says(&format!("Pay.charge of run {run}: done"));
    fs::write(world.path().join("go"), "").unwrap();
    first.signal(Signal::CONT);
    first.says("lost to another agent");
    first.end();
    second.end();
    finished(world.path(), &run, "quick");
}

#[test]
fn an_agent_that_is_asked_to_end_finishes_the_tasks_it_has_begun() {
    let world = world();
    let run = start(world.path());
    let mut agent = agent(world.path(), "only", "slow.py");
    agent.says("begun");
    agent.signal(Signal::TERM);
    agent.says("stopping");
    fs::write(world.path().join("go"), "").unwrap();
    agent.says("done after");
    agent.says("stopped");
    assert_eq!(agent.child.wait().unwrap().code(), Some(0));
    finished(world.path(), &run, "slow");
    assert_eq!(fs::read_to_string(world.path().join("calls")).unwrap(), "x");
}

#[test]
fn an_operator_sees_the_agent_of_each_task_and_settles_it_by_hand() {
    let world = world();
    let run = start(world.path());
    let agent = agent(world.path(), "only", "slow.py");
    agent.says("begun");
    let tasks = json(&afl(world.path(), &["tasks", "--state", "running", "--name", "Charge", "--json"]));
    assert_eq!(
        (&tasks["tasks"][0]["path"], &tasks["tasks"][0]["workflow_id"]),
        (&"Pay.charge".into(), &run.as_str().into())
    );
    assert!(tasks["tasks"][0]["claimer"].as_str().unwrap().contains("@only/"), "{tasks}");
    let servers = json(&afl(world.path(), &["servers", "--json"]));
    let server = &servers["servers"][0];
    assert_eq!(
        (&server["status"], &server["handlers"][0]),
        (&"online".into(), &"Charge".into()),
        "{servers}"
    );

    let result = r#"{"receipt": "by hand"}"#;
    let skipped = afl(world.path(), &["task", "skip", &run, "Pay.charge"]);
    assert_eq!(skipped.status.code(), Some(2), "somebody does it: {skipped:?}");
    let done = afl(world.path(), &["task", "done", &run, "Pay.charge", "--result", result]);
    assert!(done.status.success(), "{done:?}");
    agent.says("lost to another agent");
    finished(world.path(), &run, "by hand");
    let shown = json(&afl(world.path(), &["task", "show", &run, "Pay.charge", "--json"]));
    let events: Vec<(&str, &str)> = shown["events"]
        .as_array()
        .expect("it has a history")
        .iter()
        .filter_map(|event| Some((event["type"].as_str()?, event["actor"].as_str()?.split(':').next()?)))
        .filter(|(name, _)| *name != "PROGRESS")
        .collect();
    assert_eq!(
        events,
        [
            ("CREATED", "system"),
            ("QUEUED", "system"),
            ("LEASED", "agent"),
            ("STARTED", "agent"),
            ("COMPLETED", "user")
        ]
    );
    let twice = afl(world.path(), &["task", "cancel", &run, "Pay.charge"]);
    assert_eq!(twice.status.code(), Some(2), "{twice:?}");
    agent.end();
}

#[test]
fn a_task_that_is_canceled_can_be_tried_again() {
    let world = world();
    let run = start(world.path());
    assert!(afl(world.path(), &["task", "cancel", &run, "Pay.charge"]).status.success());
    let why = json(&afl(world.path(), &["why", &run, "--json"]));
    assert_eq!(why["reason"]["failed"]["message"], "canceled by an operator", "{why}");
    assert!(afl(world.path(), &["task", "retry", &run, "Pay.charge"]).status.success());
    let why = json(&afl(world.path(), &["why", &run, "--json"]));
    assert_eq!(why["unserved"], serde_json::json!(["Charge"]), "{why}");
    let once = afl(world.path(), &["agent", "--once", "--handlers", "quick.py"]);
    assert!(once.status.success(), "{once:?}");
    finished(world.path(), &run, "quick");
    let shown = afl(world.path(), &["task", "show", &run, "Pay.charge", "--json"]);
    assert_eq!(json(&shown)["state"], "completed");
}

#[test]
fn g4_f2_a_person_decides_the_outcome_of_work_whose_agent_was_killed() {
    let world = world();
    let program = PROGRAM.replace(
        "(receipt: String)\n\nworkflow",
        "(receipt: String) with Effect(kind = \"once\")\n\nworkflow",
    );
    fs::write(world.path().join("pay.afl"), program).unwrap();
    let run = start(world.path());
    let mut first = agent(world.path(), "first", "slow.py");
    first.says("begun");
    first.signal(Signal::KILL);
    first.child.wait().unwrap();
    let second = agent(world.path(), "second", "quick.py");
    let asked = Instant::now();
    let wait = loop {
        let why = json(&afl(world.path(), &["why", &run, "--json"]));
        match why["reason"].get("failed") {
            Some(_) => break why["waits"][0].clone(),
            None => assert!(asked.elapsed() < PATIENCE, "{why}"),
        }
    };
    assert_eq!((&wait["on"]["on"], &wait["path"]), (&"decision".into(), &"Pay.charge".into()), "{wait}");
    let told = afl(world.path(), &["why", &run]);
    let told = String::from_utf8(told.stdout).unwrap();
    // The command as it is printed, with the result filled in.
    let done = told.lines().find_map(|line| line.trim().strip_prefix("afl task done ")).expect("it is told");
    let (step, _) = done.split_once(" --result ").expect("it has a result");
    let result = r#"{"receipt": "found in the till"}"#;
    let arguments: Vec<&str> = ["task", "done"].into_iter().chain(step.split(' ')).collect();
    let answered = afl(world.path(), &[&arguments[..], &["--result", result]].concat());
    assert!(answered.status.success(), "{answered:?}");
    finished(world.path(), &run, "found in the till");
    // The agent may have been killed before its handler began.
    let calls = fs::read_to_string(world.path().join("calls")).unwrap_or_default();
    assert!(calls.len() <= 1, "it was begun {} times", calls.len());
    second.end();
}

/// Each call is counted; then it ends as this says.
const CHARGE: &str = r#"
from agentflow import NotDone, handler

@handler("Charge")
def charge(payload):
    open("FOLDER/calls", "a").write("x")
    BODY
"#;

#[test]
fn g4_no_command_but_the_one_that_names_the_work_repeats_once_work_that_was_answered_badly() {
    for (body, said) in [
        ("return {'receipt': float('nan')}", "at most once"),
        ("return {'receipt': 7}", "at most once"),
        ("raise SystemExit(0)", "at most once"),
        ("raise ValueError('declined')", "declined"),
    ] {
        let world = world();
        let program = PROGRAM.replace(
            "(receipt: String)\n\nworkflow",
            "(receipt: String) with Effect(kind = \"once\") with Retry(max = 3, backoff_ms = 0)\n\nworkflow",
        );
        fs::write(world.path().join("pay.afl"), program).unwrap();
        let folder = world.path().to_str().unwrap();
        let text = CHARGE.replace("FOLDER", folder).replace("BODY", body);
        fs::write(world.path().join("charge.py"), text).unwrap();
        let calls = || fs::read_to_string(world.path().join("calls")).unwrap().len();
        let ran = afl(world.path(), &["run", "pay.afl", "-i", "item=tea", "--handlers", "charge.py"]);
        let told = |output: &Output| {
            let told = [&output.stdout[..], &output.stderr].concat();
            let told = String::from_utf8(told).unwrap();
            for verb in ["done", "retry", "fail"] {
                assert!(told.contains(&format!("afl task {verb} ")), "{body}: {verb}: {told}");
            }
            assert!(!told.contains("repair the cause"), "{body}: {told}");
            told
        };
        let message = told(&ran);
        assert!(message.contains(said), "{body}: {message}");
        let run =
            json(&afl(world.path(), &["runs", "--json"]))["runs"][0]["run"].as_str().unwrap().to_owned();
        told(&afl(world.path(), &["why", &run]));
        let handlers = ["--handlers", "charge.py"];
        let again = afl(world.path(), &[&["retry", &run][..], &handlers].concat());
        assert!(!again.status.success(), "{body}");
        told(&again);
        told(&afl(world.path(), &[&["retry", &run, "Pay.charge"][..], &handlers].concat()));
        assert_eq!(calls(), 1, "{body}");
        // A person says that it did not happen.
        let decided = afl(world.path(), &["task", "retry", &run, "Pay.charge"]);
        assert!(decided.status.success(), "{body}: {decided:?}");
        afl(world.path(), &[&["resume", &run][..], &handlers].concat());
        assert_eq!(calls(), 2, "{body}");
        let doctor = afl(world.path(), &["doctor"]);
        assert!(doctor.status.success(), "{body}: {doctor:?}");
    }
}

#[test]
fn g4_an_agent_refuses_a_lease_in_which_it_cannot_stop_its_handlers() {
    let world = world();
    let agent = ["agent", "--once", "--handlers", "quick.py", "--lease-ms"];
    let refused = afl(world.path(), &[&agent[..], &["3999"]].concat());
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.contains("too short for the handler of `Charge`") && said.contains("`--lease-ms 4000`"),
        "{said}"
    );
    let taken = afl(world.path(), &[&agent[..], &["4000"]].concat());
    assert!(taken.status.success(), "{taken:?}");
}

#[test]
fn one_command_runs_a_program_with_the_handlers_beside_it() {
    let world = world();
    let list = "[[handler]]\nfacet = \"Charge\"\nmodule = \"quick.py\"\nentrypoint = \"charge\"\n";
    fs::write(world.path().join("handlers.toml"), list).unwrap();
    let ran = json(&afl(world.path(), &["run", "pay.afl", "-i", "item=tea", "--json"]));
    assert_eq!(ran["outputs"]["receipt"], "quick", "{ran}");
    fs::write(world.path().join("mock.json"), r#"{"Charge": {"returns": {"receipt": "mock"}}}"#).unwrap();
    let mocked = ["run", "pay.afl", "-i", "item=tea", "--json", "--mock", "mock.json"];
    assert_eq!(json(&afl(world.path(), &mocked))["outputs"]["receipt"], "mock");
}

#[test]
fn a_run_of_this_command_does_work_with_needs_only_with_the_capabilities_it_was_given() {
    let world = world();
    let program = PROGRAM.replace("item = $.item)", "item = $.item) with Needs(capabilities = [\"gpu\"])");
    fs::write(world.path().join("pay.afl"), program).unwrap();
    let ran = afl(world.path(), &["run", "pay.afl", "-i", "item=tea", "--handlers", "quick.py", "--json"]);
    assert_eq!(ran.status.code(), Some(4), "{ran:?}");
    let run = json(&ran)["run"].as_str().expect("it names the run").to_owned();
    let why = afl(world.path(), &["why", &run]);
    let told = format!("`afl resume {run} --handlers DIR --capability gpu`");
    assert!(String::from_utf8_lossy(&why.stdout).contains(&told), "{why:?}");
    let resumed = ["resume", &run, "--handlers", "quick.py", "--capability", "gpu", "--json"];
    assert_eq!(json(&afl(world.path(), &resumed))["outputs"]["receipt"], "quick");
}

#[test]
fn a_task_is_tried_again_on_the_agent_that_is_named() {
    let world = world();
    let run = start(world.path());
    assert!(afl(world.path(), &["task", "cancel", &run, "Pay.charge"]).status.success());
    let on_gone = afl(world.path(), &["task", "retry", &run, "Pay.charge", "--on", "gone"]);
    assert_eq!(on_gone.status.code(), Some(2), "{on_gone:?}");
    let [first, second] = ["first", "second"].map(|name| agent(world.path(), name, "quick.py"));
    first.says("handlers: ");
    second.says("handlers: ");
    let retried = afl(world.path(), &["task", "retry", &run, "Pay.charge", "--on", "second"]);
    assert!(String::from_utf8_lossy(&retried.stderr).contains("by second, or by another"), "{retried:?}");
    second.says(&format!("Pay.charge of run {run}: done"));
    first.end();
    second.end();
    finished(world.path(), &run, "quick");
}

/// `afl run` in the background, when it has started its run.
struct Running {
    child: Child,
    said: BufReader<Box<dyn Read>>,
}

impl Running {
    fn new(folder: &Path, more: [&str; 2]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_afl"));
        command.args(["run", "pay.afl", "-i", "item=tea"]).args(more);
        command.env_remove("AFL_STORE").current_dir(folder).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("afl runs");
        let stderr: Box<dyn Read> = Box::new(child.stderr.take().expect("it is piped"));
        let mut said = BufReader::new(stderr);
        let mut first = String::new();
        said.read_line(&mut first).expect("it is text");
        assert!(first.starts_with("run "), "{first}");
        Self { child, said }
    }

    fn ends_well(mut self) {
        let code = self.child.wait().expect("it is our child").code();
        let mut said = String::new();
        self.said.read_to_string(&mut said).expect("it is text");
        assert_eq!(code, Some(0), "{said}");
    }

    /// How much processor time it used, in hundredths of a second.
    #[cfg(target_os = "linux")]
    fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it runs");
        let (_, fields) = stat.rsplit_once(')').expect("its name is in parentheses");
        fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn a_run_waits_at_rest_while_others_use_up_the_limit_of_its_facet() {
    let world = world();
    let program = PROGRAM.replace("item = $.item)", "item = $.item) with Limit(concurrency = 1)");
    fs::write(world.path().join("pay.afl"), program).unwrap();
    fs::write(world.path().join("mock.json"), r#"{"Charge": {"returns": {"receipt": "mock"}}}"#).unwrap();
    let first = Running::new(world.path(), ["--handlers", "slow.py"]);
    let began = Instant::now();
    while !world.path().join("calls").exists() {
        assert!(began.elapsed() < PATIENCE, "the first never began");
        afl(world.path(), &["tasks"]);
    }
    let mocked = Running::new(world.path(), ["--mock", "mock.json"]);
    let second = Running::new(world.path(), ["--handlers", "quick.py"]);
    #[cfg(target_os = "linux")]
    {
        let (before, began) = (second.ticks(), Instant::now());
        while began.elapsed() < Duration::from_secs(2) {
            afl(world.path(), &["tasks"]);
        }
        let used = second.ticks() - before;
        assert!(used < 30, "it used {used} hundredths of two seconds");
    }
    fs::write(world.path().join("go"), "").unwrap();
    for run in [first, mocked, second] {
        run.ends_well();
    }
}

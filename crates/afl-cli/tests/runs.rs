//! Runs through the real binary: stopped, killed and gone on with, and a few conformance cases on every store.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use serde_json::Value;

const PROGRAM: &str = r"
event facet Charge(item: String) => (receipt: String)

workflow Pay(item: String) => (receipt: String) andThen {
    charge = Charge(item = $.item) with Retry(max = 2, backoff_ms = BACKOFF)
    yield Pay(receipt = charge.receipt)
}
";
const MOCK: &str =
    r#"{"Charge": {"sequence": [{"error": "the line is busy"}, {"returns": {"receipt": "r1"}}]}}"#;
const CHARGE: &str = "wb0s0";

fn afl(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_afl"));
    command.env_remove("AFL_STORE").current_dir(folder).args(arguments).output().expect("afl runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// A run whose only task failed once and waits for its next attempt.
struct Waiting {
    child: Child,
    run: String,
    /// The lines that it prints from then on.
    lines: Lines<BufReader<ChildStderr>>,
}

fn spawn_run(folder: &Path, backoff_ms: u64, more: &[&str]) -> Child {
    fs::write(folder.join("pay.afl"), PROGRAM.replace("BACKOFF", &backoff_ms.to_string()))
        .expect("it is written");
    fs::write(folder.join("mock.json"), MOCK).expect("it is written");
    Command::new(env!("CARGO_BIN_EXE_afl"))
        .args(["run", "pay.afl", "-i", "item=tea", "--mock", "mock.json"])
        .args(more)
        .env_remove("AFL_STORE")
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("afl runs")
}

fn waiting_run(folder: &Path, backoff_ms: u64) -> Waiting {
    let mut child = spawn_run(folder, backoff_ms, &[]);
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut next = || lines.next().expect("it says more").expect("it is text");
    let (first, failed) = (next(), next());
    assert!(failed.contains("the line is busy"), "{failed}");
    Waiting { child, run: first.split(' ').nth(1).expect("it names the run").to_owned(), lines }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
}

/// The answer to the first signal.
fn farewell(run: &str) -> [String; 2] {
    [
        format!("stopping; run {run} is kept"),
        format!("help: `afl resume {run} --mock mock.json` continues it"),
    ]
}

#[test]
fn ctrl_c_leaves_a_run_that_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let Waiting { mut child, run, lines } = waiting_run(folder.path(), 600_000);
    signal(&child, "-INT");
    let told: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(told, farewell(&run));

    let why = json(&afl(folder.path(), &["why", &run, "--json"]));
    assert_eq!(why["waits"][0]["on"]["on"], "retry", "{why}");
    let canceled = afl(folder.path(), &["cancel", &run]);
    assert!(canceled.status.success(), "{canceled:?}");
}

#[test]
fn sigterm_leaves_a_run_that_can_be_resumed_too() {
    let folder = tempfile::tempdir().unwrap();
    let Waiting { mut child, run, lines } = waiting_run(folder.path(), 600_000);
    signal(&child, "-TERM");
    let told: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(told, farewell(&run));
}

/// More than one commit can hold.
const ELEMENTS: usize = 40_000;

#[test]
fn ctrl_c_in_a_long_first_evaluation_leaves_a_run_that_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let program = "workflow Many(items: [Long]) => (sum: [Long]) andThen foreach item in $.items {
        yield Many(sum = [$.item])
    }";
    fs::write(folder.path().join("many.afl"), program).unwrap();
    let inputs = serde_json::json!({"items": (0..ELEMENTS).collect::<Vec<_>>()});
    fs::write(folder.path().join("inputs.json"), inputs.to_string()).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_afl"))
        .args(["run", "many.afl", "--inputs", "inputs.json"])
        .env_remove("AFL_STORE")
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("afl runs");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines().map(Result::unwrap);
    let run = lines.next().expect("it names the run").split(' ').nth(1).unwrap().to_owned();
    signal(&child, "-INT");
    let told: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{told:?}");
    let resume = format!("help: `afl resume {run}` continues it");
    assert_eq!(told, [format!("stopping; run {run} is kept"), resume]);
    let shown = json(&afl(folder.path(), &["runs", "--json"]));
    assert_eq!((&shown["runs"][0]["run"], &shown["runs"][0]["status"]), (&run.into(), &"running".into()));
}

/// Waits until the only task of the only run failed once.
fn failed_once(folder: &Path) -> String {
    loop {
        let tasks = afl(folder, &["tasks", "--json"]);
        // There is no list before the store is made.
        let tasks: Value = serde_json::from_slice(&tasks.stdout).unwrap_or_default();
        if tasks["tasks"][0]["attempts"] == 1 {
            return tasks["tasks"][0]["workflow_id"].as_str().expect("it has a run").to_owned();
        }
    }
}

#[test]
fn a_program_that_reads_json_is_stopped_with_one_object_and_the_command_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let child = spawn_run(folder.path(), 600_000, &["--json"]);
    let run = failed_once(folder.path());
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let stopped = json(&output);
    assert_eq!((&stopped["run"], &stopped["status"]), (&run.as_str().into(), &"paused".into()));
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told.lines().collect::<Vec<_>>(), farewell(&run));
}

#[test]
fn a_run_whose_store_is_lost_is_named_and_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let child = spawn_run(folder.path(), 2_000, &["--json"]);
    let run = failed_once(folder.path());
    let db = rusqlite::Connection::open(folder.path().join(".afl/store.db")).unwrap();
    db.execute_batch("ALTER TABLE records RENAME TO hidden").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let lost = json(&output);
    assert_eq!((&lost["run"], &lost["status"]), (&run.as_str().into(), &"paused".into()), "{lost}");
    assert!(lost["error"]["message"].as_str().unwrap().contains("records"), "{lost}");
    let help = format!("run {run} is kept; continue with `afl resume {run} --mock mock.json`");
    assert_eq!(lost["error"]["help"], help.as_str());
    assert!(String::from_utf8(output.stderr).unwrap().ends_with(&format!("help: {help}\n")));

    db.execute_batch("ALTER TABLE hidden RENAME TO records").unwrap();
    let resumed = json(&afl(folder.path(), &["resume", &run, "--mock", "mock.json", "--json"]));
    assert_eq!((&resumed["status"], &resumed["outputs"]["receipt"]), (&"completed".into(), &"r1".into()));
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let Waiting { mut child, run, .. } = waiting_run(folder.path(), 1_000);
    signal(&child, "-KILL");
    child.wait().unwrap();
    let shown = json(&afl(folder.path(), &["show", &run, "--json"]));
    let steps = shown["steps"].as_array().unwrap();
    let charge = steps.iter().find(|step| step["id"] == CHARGE).unwrap();
    assert_eq!((&charge["task"]["attempts"], &charge["state"]), (&1.into(), &"state.EventTransmit".into()));
    assert!(!shown.to_string().contains("secret"));
    let doctor = afl(folder.path(), &["doctor"]);
    assert!(doctor.status.success(), "{doctor:?}");

    let resumed = json(&afl(folder.path(), &["resume", &run, "--mock", "mock.json", "--json"]));
    assert_eq!((&resumed["status"], &resumed["outputs"]["receipt"]), (&"completed".into(), &"r1".into()));
}

#[test]
fn a_sequence_goes_on_over_the_retries_of_an_operator() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("pay.afl"),
        PROGRAM.replace(" with Retry(max = 2, backoff_ms = BACKOFF)", ""),
    )
    .unwrap();
    fs::write(folder.path().join("mock.json"), MOCK).unwrap();
    let options = ["--mock", "mock.json", "--json"];
    let failed = json(&afl(folder.path(), &[&["run", "pay.afl", "-i", "item=tea"], &options[..]].concat()));
    assert_eq!(failed["error"]["message"], "Pay.charge: the line is busy");
    let run = failed["run"].as_str().unwrap();
    let again = json(&afl(folder.path(), &[&["retry", run], &options[..]].concat()));
    assert_eq!(again["outputs"]["receipt"], "r1", "{again}");
}

#[test]
fn a_mock_whose_result_is_refused_fails_its_task() {
    let folder = tempfile::tempdir().unwrap();
    let program = "event facet Ask() => (a: Json)\nworkflow W() => (a: Json) andThen {\n    a = Ask()\n    yield W(a = a.a)\n}\n";
    fs::write(folder.path().join("w.afl"), program).unwrap();
    let deep = format!("{}{}", "[".repeat(110), "]".repeat(110));
    fs::write(folder.path().join("deep.json"), format!(r#"{{"Ask": {{"returns": {{"a": {deep}}}}}}}"#))
        .unwrap();
    let output = afl(folder.path(), &["run", "w.afl", "--mock", "deep.json", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let failed = json(&output);
    assert_eq!((&failed["status"], &failed["error"]["path"]), (&"failed".into(), &"W.a".into()), "{failed}");
}

#[test]
fn some_cases_come_out_as_expected_through_the_binary() {
    let folder = tempfile::tempdir().unwrap();
    for store in afl_backends::KINDS.iter().map(|kind| kind.test_url(folder.path())) {
        let store = store.as_str();
        for (name, code) in [
            ("foreach_with_event_collects", 0),
            ("retry_policy_then_success", 0),
            ("event_handler_error", 1),
            ("missing_input_is_rejected", 2),
        ] {
            let case = cases().join(name);
            let (program, case) = (case.with_extension("afl"), case.with_extension("json"));
            let expect: Value = serde_json::from_str(&fs::read_to_string(&case).unwrap()).unwrap();
            let (program, case) = (program.to_str().unwrap(), case.to_str().unwrap());
            let output = afl(folder.path(), &["run", program, "--json", "--mock", case, "--store", store]);
            assert_eq!(output.status.code(), Some(code), "{name} on {store}: {output:?}");
            assert_eq!(json(&output)["status"], expect["expect"]["status"], "{name} on {store}");
        }
    }
}

#[test]
fn a_store_is_found_from_folders_below() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("flows/deep");
    fs::create_dir_all(&below).unwrap();
    fs::write(folder.path().join("a.afl"), "workflow A() => (n: Long) andThen {\n    yield A(n = 1)\n}\n")
        .unwrap();
    assert!(afl(folder.path(), &["run", "a.afl"]).status.success());
    assert!(afl(&below, &["run", "../../a.afl"]).status.success());
    let runs = json(&afl(&below, &["runs", "--json"]));
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2);
    assert!(!below.join(".afl").exists());
}

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance")
}

// G13: damage is reported by name, stops that run and no other, and can be put away.
#[test]
fn a_damaged_run_is_named_and_can_be_discarded() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("pay.afl"), PROGRAM.replace("BACKOFF", "1")).unwrap();
    let start = ["start", "pay.afl", "-i", "item=tea", "--json"];
    let [hurt, sound] =
        [(); 2].map(|()| json(&afl(folder.path(), &start))["run"].as_str().unwrap().to_owned());
    let db = rusqlite::Connection::open(folder.path().join(".afl/store.db")).unwrap();
    let damage = "UPDATE records SET body = replace(body, 'tea', 'rum') WHERE scope = ?1 AND id = 's/wb0s0'";
    assert_eq!(db.execute(damage, [&hurt]).unwrap(), 1);
    drop(db);

    let doctor = afl(folder.path(), &["doctor", "--json"]);
    assert_eq!(doctor.status.code(), Some(1), "{doctor:?}");
    let findings = json(&doctor)["findings"].as_array().unwrap().clone();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0]["run"], hurt.as_str());
    assert_eq!(afl(folder.path(), &["resume", &hurt]).status.code(), Some(3));
    assert_eq!(afl(folder.path(), &["resume", &sound]).status.code(), Some(4));
    assert_eq!(afl(folder.path(), &["doctor", &sound, "--discard"]).status.code(), Some(2));
    assert_eq!(afl(folder.path(), &["doctor", &hurt, "--discard"]).status.code(), Some(0));
    assert_eq!(afl(folder.path(), &["doctor"]).status.code(), Some(0));
    let runs = json(&afl(folder.path(), &["runs", "--json"]));
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
}

// G14, F25: an older process leaves newer records alone.
#[test]
fn a_run_of_a_newer_release_is_neither_discarded_nor_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("pay.afl"), PROGRAM.replace("BACKOFF", "1")).unwrap();
    let started = json(&afl(folder.path(), &["start", "pay.afl", "-i", "item=tea", "--json"]));
    let run = started["run"].as_str().unwrap();
    let db = rusqlite::Connection::open(folder.path().join(".afl/store.db")).unwrap();
    let newer = "UPDATE records SET schema = 99 WHERE scope = ?1 AND id = 's/wb0s0'";
    assert_eq!(db.execute(newer, [run]).unwrap(), 1);
    drop(db);

    let doctor = afl(folder.path(), &["doctor"]);
    let told = String::from_utf8(doctor.stdout).unwrap();
    assert!(told.contains("was written by a newer release") && !told.contains("--discard"), "{told}");
    let refused = afl(folder.path(), &["doctor", run, "--discard"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("a newer release"), "{refused:?}");
    assert_eq!(json(&afl(folder.path(), &["runs", "--json"]))["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_task_shows_the_fields_of_its_result_that_the_facet_does_not_declare() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("pay.afl"), PROGRAM.replace("BACKOFF", "1")).unwrap();
    let mock = r#"{"Charge": {"returns": {"receipt": "r1", "extra": 1}}}"#;
    fs::write(folder.path().join("mock.json"), mock).unwrap();
    let ran = afl(folder.path(), &["run", "pay.afl", "-i", "item=tea", "--mock", "mock.json", "--json"]);
    let run = json(&ran)["run"].as_str().unwrap().to_owned();
    let task = afl(folder.path(), &["task", "show", &run, "Pay.charge"]);
    let told = String::from_utf8(task.stdout).unwrap();
    assert!(told.contains("the result has `extra`, which its facet does not declare"), "{told}");
    let task = json(&afl(folder.path(), &["task", "show", &run, "Pay.charge", "--json"]));
    assert_eq!(task["undeclared"], serde_json::json!(["extra"]), "{task}");
}

const TIMED: &str = r#"
event facet Manager(q: String) => (a: String)

facet Ask(q: String) => (a: String) andThen {
    m = Manager(q = $.q) with Timeout(ms = 200)
    yield Ask(a = m.a)
} catch {
    yield Ask(a = "escalated: " ++ $.error_type)
}

workflow Near() => (a: String, at: String) andThen {
    pause = afl.time.Wait(ms = 300)
    ask = Ask(q = "ok?")
    yield Near(a = ask.a, at = pause.at)
}

workflow Far() => (at: String) andThen {
    pause = afl.time.Wait(hours = 2)
    yield Far(at = pause.at)
}
"#;

#[test]
fn g9_a_run_waits_for_near_timers_and_says_when_a_far_one_fires() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("timed.afl"), TIMED).expect("it is written");
    let near = afl(folder.path(), &["run", "timed.afl", "-w", "Near", "--json"]);
    assert_eq!(near.status.code(), Some(0), "{near:?}");
    assert_eq!(json(&near)["outputs"]["a"], "escalated: timeout");
    let far = afl(folder.path(), &["run", "timed.afl", "-w", "Far"]);
    let said = String::from_utf8_lossy(&far.stderr);
    assert_eq!(far.status.code(), Some(4), "{said}");
    assert!(said.contains("waits for 1 timer:"), "{said}");
    assert!(said.contains("Far.pause: `afl.time.Wait` goes on in "), "{said}");
    let run = said.split_whitespace().nth(1).expect("it names the run");
    let why = afl(folder.path(), &["why", run, "--json"]);
    let waits = &json(&why)["waits"][0];
    assert_eq!((&waits["path"], &waits["on"]["on"]), (&"Far.pause".into(), &"timer".into()), "{why:?}");
    assert!(waits["on"]["at"].is_i64(), "{why:?}");
    let short = afl(folder.path(), &["run", "timed.afl", "-w", "Near", "--wait", "0s"]);
    assert_eq!(short.status.code(), Some(4), "{short:?}");
}

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
    /// What it prints from then on.
    lines: Lines<BufReader<ChildStderr>>,
}

fn waiting_run(folder: &Path, backoff_ms: u64) -> Waiting {
    fs::write(folder.join("pay.afl"), PROGRAM.replace("BACKOFF", &backoff_ms.to_string()))
        .expect("it is written");
    fs::write(folder.join("mock.json"), MOCK).expect("it is written");
    let mut child = Command::new(env!("CARGO_BIN_EXE_afl"))
        .args(["run", "pay.afl", "-i", "item=tea", "--mock", "mock.json"])
        .env_remove("AFL_STORE")
        .current_dir(folder)
        .stderr(Stdio::piped())
        .spawn()
        .expect("afl runs");
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

#[test]
fn ctrl_c_leaves_a_run_that_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let Waiting { mut child, run, lines } = waiting_run(folder.path(), 600_000);
    signal(&child, "-INT");
    let told: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let help = format!("help: `afl resume {run}` goes on with it");
    assert_eq!(told, [format!("stopped; run {run} is kept"), help]);

    let why = json(&afl(folder.path(), &["why", &run, "--json"]));
    assert_eq!(why["waits"][0]["on"]["on"], "retry", "{why}");
    let canceled = afl(folder.path(), &["cancel", &run]);
    assert!(canceled.status.success(), "{canceled:?}");
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
fn some_cases_come_out_as_expected_through_the_binary() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite:{}", folder.path().join("store.db").display());
    let postgres = afl_testbed::postgres::shared_url();
    for store in ["memory:", &sqlite, &postgres] {
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

// G13: damage is told by name, stops that run and no other, and can be put away.
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

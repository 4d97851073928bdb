//! `--telemetry` of the real binary: what it writes, and that nothing depends on the file.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use insta::assert_snapshot;
use serde_json::Value;

const PROGRAM: &str = r"
event facet Read(name: String) => (text: String)
event facet Check(text: String) => (sound: Boolean)

workflow Brief(names: [String]) => (texts: [String], sound: Boolean)
    andThen foreach name in $.names {
        page = Read(name = name)
        yield Brief(texts = page.text)
    }
    andThen {
        first = Read(name = 'x')
        check = Check(text = first.text)
        yield Brief(sound = check.sound)
    }
";
const MOCK: &str = r#"{"Read": {"returns": {"text": "t"}}, "Check": {"error": "the line is busy"}}"#;
const RUN: [&str; 7] = ["run", "brief.afl", "-i", r#"names=["a"]"#, "--mock", "mock.json", "--json"];

/// A folder with a program, one event of which fails.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder is made");
    fs::write(folder.path().join("brief.afl"), PROGRAM.replace('\'', "\"")).expect("it is written");
    fs::write(folder.path().join("mock.json"), MOCK).expect("it is written");
    folder
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_afl"));
    command.env_remove("AFL_STORE").env_remove("AFL_TELEMETRY").current_dir(folder).args(arguments);
    command
}

fn afl(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("afl runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn text<'a>(record: &'a Value, field: &str) -> &'a str {
    record[field].as_str().unwrap_or_default()
}

/// The lines of a file, each of which is a record of this run with its time; both are left out.
fn records(file: &Path, run: &str) -> Vec<Value> {
    let lines = fs::read_to_string(file).expect("it is written");
    let record = |line: &str| {
        let mut record: Value = serde_json::from_str(line).expect("each line is JSON");
        let fields = record.as_object_mut().expect("each line is an object");
        assert!(fields.remove("time").and_then(|time| time.as_i64()).is_some_and(|time| time > 0), "{line}");
        assert_eq!(fields.remove("run"), Some(run.into()), "{line}");
        record
    };
    lines.lines().map(record).collect()
}

/// All records but the transitions, then the states of each step in their order.
fn told(records: &[Value]) -> String {
    let mut told = String::new();
    let mut states: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for record in records {
        if text(record, "trace") != "transition" {
            writeln!(told, "{record}").expect("a string takes any text");
            continue;
        }
        let of_step = states.entry(format!("{} {}", text(record, "step"), text(record, "path"))).or_default();
        assert_eq!(of_step.last().copied().unwrap_or("state.statement.Created"), text(record, "from"));
        of_step.push(text(record, "to"));
    }
    for (step, states) in states {
        writeln!(told, "{step}: {}", states.join(" ").replace("state.", ""))
            .expect("a string takes any text");
    }
    told
}

// covers: RT-18-a, RT-18-b, RT-18-c, RT-18-d, EVT-5-d
#[test]
fn a_run_traces_its_iterations_transitions_dependencies_events_and_errors() {
    let folder = folder();
    let output = afl(folder.path(), &[&RUN[..], &["--telemetry", "t.jsonl"]].concat());
    let run = text(&json(&output), "run").to_owned();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let file = folder.path().join("t.jsonl");
    let of_run = records(&file, &run);
    assert_snapshot!("run", told(&of_run));

    // Another command adds to the file what it does.
    let mended = MOCK.replace(r#""error": "the line is busy""#, r#""returns": {"sound": true}"#);
    fs::write(folder.path().join("mock.json"), mended).expect("it is written");
    let mut retry = command(folder.path(), &["retry", &run, "--mock", "mock.json", "--json"]);
    let output = retry.env("AFL_TELEMETRY", "t.jsonl").output().expect("afl runs");
    assert_eq!(json(&output)["status"], "completed", "{output:?}");
    let with_retry = records(&file, &run);
    assert_eq!(with_retry[..of_run.len()], of_run);
    let mut again = String::new();
    for record in &with_retry[of_run.len()..] {
        if text(record, "step") == "wb1s1" || text(record, "trace") == "rested" {
            writeln!(again, "{record}").expect("a string takes any text");
        }
    }
    assert_snapshot!("retry", again);
}

#[test]
fn an_agent_traces_the_runs_that_it_drives_and_a_start_traces_its_run() {
    let folder = folder();
    let pure = "workflow One() => (n: Long) andThen {\n    yield One(n = 1)\n}\n";
    fs::write(folder.path().join("one.afl"), pure).expect("it is written");
    let start = |more: &[&str]| {
        let output = afl(folder.path(), &[&["start", "one.afl", "--json"], more].concat());
        text(&json(&output), "run").to_owned()
    };
    let completed = serde_json::json!({"trace": "rested", "iteration": 4, "status": "completed"});
    let here = start(&["--telemetry", "here.jsonl"]);
    assert_eq!(records(&folder.path().join("here.jsonl"), &here).last(), Some(&completed));

    let handed_over = start(&["--enqueue"]);
    let agent = ["agent", "--profile", "service", "--http-port", "0", "--once", "--telemetry", "agent.jsonl"];
    let output = afl(folder.path(), &agent);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(records(&folder.path().join("agent.jsonl"), &handed_over).last(), Some(&completed));
}

/// The output of a run in memory, without its id, and the messages about telemetry.
fn outcome(folder: &Path, more: &[&str]) -> (Option<i32>, Value, Vec<String>) {
    let output = afl(folder, &[&RUN[..], &["--store", "memory:"], more].concat());
    let mut told = json(&output);
    told.as_object_mut().expect("an object").remove("run");
    let said = String::from_utf8(output.stderr).expect("it is text");
    (output.status.code(), told, said.lines().map(str::to_owned).collect())
}

// covers: RT-18-e
#[test]
fn a_file_that_cannot_be_written_changes_nothing_but_that_it_is_said() {
    let folder = folder();
    let (code, told, said) = outcome(folder.path(), &[]);
    assert_eq!((code, &told["error"]["message"]), (Some(1), &"Brief.check: the line is busy".into()));
    assert!(!said.iter().any(|line| line.contains("telemetry")), "{said:?}");

    let pipe = folder.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).expect("a pipe is made");
    let sinks = [
        ("/dev/full", "no space is left"),
        (".", "it is a folder"),
        ("nowhere/t.jsonl", "no such folder"),
        // It has no reader, so opening it waits.
        ("pipe", "it takes too long"),
    ];
    for (sink, why) in sinks {
        let warning = format!("warning: telemetry is not complete: cannot write {sink}: {why}");
        let with_warning = said.iter().cloned().chain([warning]).collect();
        assert_eq!(outcome(folder.path(), &["--telemetry", sink]), (code, told.clone(), with_warning));
    }
}

#[test]
fn lost_lines_are_counted_where_the_file_takes_lines_again() {
    let folder = folder();
    let mock = r#"{"Read": {"sequence": [{"error": "busy"}, {"returns": {"text": "t"}}]}}"#;
    fs::write(folder.path().join("mock.json"), mock).expect("it is written");
    let program = "event facet Read(name: String) => (text: String)\n\
         workflow One() => (text: String) andThen {\n\
         \x20   a = Read(name = \"x\") with Retry(max = 2, backoff_ms = 2000)\n\
         \x20   yield One(text = a.text)\n}\n";
    fs::write(folder.path().join("one.afl"), program).expect("it is written");
    let file = folder.path().join("t.jsonl");
    fs::create_dir(&file).expect("it is made");
    let run = ["run", "one.afl", "--mock", "mock.json", "--telemetry", "t.jsonl", "--json"];
    let mut child =
        command(folder.path(), &run).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("afl runs");
    let mut said = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let warning = said.next().expect("it says something").expect("it is text");
    assert!(warning.contains("cannot write t.jsonl: it is a folder"), "{warning}");
    // It waits for the second attempt meanwhile.
    fs::remove_dir(&file).expect("it is empty");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let lines = fs::read_to_string(&file).expect("it is written");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0]["trace"], "missed");
    // All records up to the fixed point at which the run waited: two steps and a block.
    let before = lines[0]["count"].as_u64().expect("a number");
    assert_eq!(lines[1]["trace"], "iteration_began");
    assert!(before > 20, "{before}");
    assert_eq!(lines.last().expect("there are some")["status"], "completed");
}

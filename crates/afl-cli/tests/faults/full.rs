//! F11: a file system without space, one that cannot be written, and a process that dies when it finds no space.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use afl_backends::sqlite::{Options, Sqlite};
use afl_engine::id::RunId;
use afl_engine::run::RunStatus;
use afl_engine::time::Millis;
use afl_runtime::agent::{ClaimRequest, FacetFilter, Refusal};
use afl_runtime::{Error, Service};
use afl_store::backend::StoreError;
use afl_store::record::Tenant;
use rustix::process::Signal;
use serde_json::json;

use crate::small::{Disk, Small, fill};
use crate::work::{Process, claim, ended, examine, finish, output, request, result, start};

const MEGABYTES: usize = 8;

fn open(folder: &Path) -> Service {
    let store = Sqlite::open(&folder.join("store.db"), Options::default()).unwrap();
    Service::new(Arc::new(store), Tenant::new(Tenant::LOCAL).unwrap())
}

#[track_caller]
fn asks_for_free_space(error: &Error) {
    let is_full = match error {
        Error::Unavailable(StoreError::Full) => true,
        // The outcome of the write is then unknown.
        Error::Unavailable(StoreError::Unavailable { reason, .. }) => {
            reason.contains("no space is left for the index of its log")
        }
        _ => false,
    };
    assert!(is_full && error.to_string().contains("free space"), "{error}");
}

/// Starts runs until there is no space for one more. Says why, and which were accepted.
async fn start_until_full(service: &Service) -> (Error, Vec<RunId>) {
    let asked = request(service, "Two", json!({"n": 5})).await;
    let mut accepted = Vec::new();
    loop {
        match service.start(asked.clone()).await {
            Ok(started) => accepted.push(started.run),
            Err(full) => return (full, accepted),
        }
    }
}

#[tokio::test]
async fn f11_a_full_disk_is_reported_and_the_same_calls_work_when_there_is_space() {
    let small = Small::new(MEGABYTES);
    let service = open(small.path());
    let run = start(&service, "Two", json!({"n": 1})).await;
    let held = claim(&service, 1).await.remove(0);

    small.fill();
    let (full, accepted) = start_until_full(&service).await;
    asks_for_free_space(&full);
    match service.complete(&held.ticket, &result(&held)).await {
        // There was room for a little more.
        Ok(_) => {}
        Err(Refusal::Store(error)) => asks_for_free_space(&error.into()),
        Err(refusal) => panic!("{refusal}"),
    }
    // Reading works without space.
    assert_eq!(service.run(&run).await.unwrap().status, RunStatus::Paused);
    service.why(&run).await.unwrap();

    small.free();
    service.complete(&held.ticket, &result(&held)).await.unwrap();
    finish(&service).await;
    for run in accepted.iter().chain([&run]) {
        assert_eq!(ended(&service, run).await, RunStatus::Completed);
    }
    examine(&service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f11_drivers_and_agents_go_on_alone_when_there_is_space_again() {
    const RUNS: usize = 20;
    let small = Small::new(MEGABYTES);
    let service = open(small.path());
    let texts: Vec<String> = (0..RUNS).map(|nth| format!("{nth} ").repeat(20_000)).collect();
    let mut runs = Vec::new();
    for text in &texts {
        runs.push(start(&service, "Long", json!({ "text": text })).await);
    }
    small.fill();
    let process = Process::new(service);
    process.troubled().await;
    let (full, accepted) = start_until_full(&process.service).await;
    asks_for_free_space(&full);
    small.free();
    for (run, text) in runs.iter().zip(&texts) {
        assert_eq!(ended(&process.service, run).await, RunStatus::Completed);
        assert_eq!(output(&process.service, run).await, json!({ "text": text }));
    }
    for run in &accepted {
        assert_eq!(ended(&process.service, run).await, RunStatus::Completed);
    }
    process.stop().await;
    examine(&open(small.path())).await;
}

const FOLDER: &str = "AFL_FULL_FOLDER";

/// The process that dies; without its folder the test of this name does nothing.
#[tokio::test]
async fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let service = open(Path::new(&folder));
    // The lease expires at once, so that the next process need not wait.
    let request = ClaimRequest { lease: Millis(1), ..ClaimRequest::new(FacetFilter::All, "agent") };
    let held = service.claim(&request).await.unwrap().remove(0);
    fill(Path::new(&folder));
    let large = json!({ "text": "x".repeat(6 << 20) }).as_object().unwrap().clone();
    match service.complete(&held.ticket, &large).await {
        Err(Refusal::Store(error)) => asks_for_free_space(&error.into()),
        other => panic!("{other:?}"),
    }
    // It runs no destructor and closes no file.
    std::process::abort();
}

/// A large value is written in pieces before the commit that refers to it.
#[tokio::test]
async fn f11_a_value_that_found_no_space_is_not_referred_to_though_its_process_dies() {
    let small = Small::new(MEGABYTES);
    let run = start(&open(small.path()), "Long", json!({"text": "small"})).await;
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "full::child", "--test-threads=1"]).env(FOLDER, small.path());
    let died = child.output().unwrap();
    assert_eq!(died.status.signal(), Some(Signal::ABORT.as_raw()), "{died:?}");

    small.free();
    let service = open(small.path());
    examine(&service).await;
    assert_eq!(service.sweep_once().await.unwrap().requeued, 1);
    let held = claim(&service, 1).await.remove(0);
    let less = json!({"text": "less"}).as_object().unwrap().clone();
    service.complete(&held.ticket, &less).await.unwrap();
    finish(&service).await;
    assert_eq!(output(&service, &run).await, json!({"text": "less"}));
    examine(&service).await;
}

#[tokio::test]
async fn f11_a_read_only_file_system_is_reported_and_the_run_continues_when_it_can_be_written() {
    let small = Small::new(MEGABYTES);
    let run = start(&open(small.path()), "Two", json!({"n": 1})).await;
    fs::write(small.path().join("t.afl"), crate::work::PROGRAM).unwrap();
    small.forbid_writes();

    let path = small.path().join("store.db");
    let error = Sqlite::open(&path, Options::default()).unwrap_err();
    assert!(matches!(error, StoreError::Refused(_)), "{error:?}");
    let afl = |arguments: &[&str]| {
        let mut afl = Command::new(env!("CARGO_BIN_EXE_afl"));
        let store = format!("sqlite:{}", path.display());
        afl.env("AFL_STORE", store).current_dir(small.path()).args(arguments).output().unwrap()
    };
    let start = ["start", "t.afl", "--workflow", "Two", "-i", "n=5"];
    for arguments in [&start[..], &["resume", &run.0]] {
        let refused = afl(arguments);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(3), "{said}");
        let name = path.display().to_string();
        for part in [name.as_str(), "check that", "its file system is mounted for writing"] {
            assert!(said.contains(part), "`{part}` is missing in: {said}");
        }
    }

    small.let_all_write();
    let started = afl(&start);
    assert!(started.status.success(), "{started:?}");
    let service = open(small.path());
    finish(&service).await;
    assert_eq!(output(&service, &run).await, json!({"n": 3}));
    examine(&service).await;
}

/// The system lets no process that has the files open write them again, so a new one goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f11_a_disk_that_stops_to_write_under_a_process_takes_nothing_that_was_acknowledged() {
    let disk = Disk::new();
    let process = Process::new(open(disk.path()));
    let run = start(&process.service, "Two", json!({"n": 1})).await;
    assert_eq!(ended(&process.service, &run).await, RunStatus::Completed);
    let asked = request(&process.service, "Two", json!({"n": 5})).await;
    let kept = start(&process.service, "Two", json!({"n": 3})).await;
    disk.fail();
    let error = process.service.start(asked.clone()).await.unwrap_err();
    assert!(error.is_uncertain() && error.to_string().contains("check that its disk"), "{error}");
    assert_eq!(output(&process.service, &run).await, json!({"n": 3}), "what is there can be read");
    process.stop().await;

    disk.mend();
    let process = Process::new(open(disk.path()));
    assert_eq!(output(&process.service, &run).await, json!({"n": 3}));
    assert_eq!(ended(&process.service, &kept).await, RunStatus::Completed);
    assert_eq!(output(&process.service, &kept).await, json!({"n": 5}));
    process.stop().await;
    examine(&open(disk.path())).await;
}

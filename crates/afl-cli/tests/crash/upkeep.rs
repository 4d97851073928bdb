//! F3: the process is killed while it upgrades a store, and while it deletes old runs.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use afl_backends::sqlite::{Options, Sqlite};
use afl_engine::run::RunStatus;
use afl_engine::time::Millis;
use afl_runtime::agent::{ClaimRequest, FacetFilter};
use afl_runtime::doctor::Remedy;
use afl_runtime::{RunQuery, Service, StartRequest, compile};
use afl_store::backend::Backend;
use afl_store::fault::{Fault, FaultMoment, Faulty, at_write};
use afl_store::record::Tenant;
use rusqlite::Connection;
use serde_json::json;

use crate::directory;

const STORE: &str = "AFL_UPKEEP_STORE";
const DELETES_UNTIL: &str = "AFL_UPKEEP_DELETES_UNTIL";
const PROGRAM: &str = "event facet Ask(q: String) => (a: String)
    workflow W(q: String) => (a: String) andThen { s = Ask(q = $.q) yield W(a = s.a) }";
const RUNS: usize = 3;
const COMMITS_AT_LEAST: i64 = 4;
const ALL: RunQuery =
    RunQuery { state: None, workflow: None, since: None, labels: Vec::new(), after: None, limit: 99 };

fn service(backend: Arc<dyn Backend>) -> Service {
    Service::new(backend, Tenant::new(Tenant::LOCAL).unwrap())
}

fn open(path: &Path) -> Service {
    service(Arc::new(Sqlite::open(path, Options::default()).unwrap()))
}

/// Opens the store, which brings it up to date; deletes all that has ended if it is asked to.
#[tokio::test]
async fn child() {
    let Some(path) = std::env::var_os(STORE) else { return };
    let sqlite = Arc::new(Sqlite::open(Path::new(&path), Options::default()).unwrap());
    if let Ok(write) = std::env::var(DELETES_UNTIL) {
        let write: i64 = write.parse().unwrap();
        let moment = if write < 0 { FaultMoment::Before } else { FaultMoment::After };
        let dying = Faulty::new(sqlite, at_write(write.unsigned_abs(), Fault::Abort(moment)));
        service(Arc::new(dying)).collect(Millis(i64::MAX)).await.unwrap();
    }
}

/// A shell around the child, which can limit the size of the files it writes: beyond it the system kills it.
fn start_child(path: &Path, file_blocks: Option<usize>, deletes: Option<i64>) -> ExitStatus {
    let limit = file_blocks.map_or("unlimited".to_owned(), |blocks| blocks.to_string());
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        r#"ulimit -c 0; ulimit -f "$1"; exec "$2" --exact upkeep::child --test-threads=1"#,
        "sh",
        &limit,
    ]);
    shell.arg(std::env::current_exe().unwrap()).env(STORE, path);
    if let Some(write) = deletes {
        shell.env(DELETES_UNTIL, write.to_string());
    }
    shell.output().unwrap().status
}

/// Runs that have ended and one that waits.
async fn fill(path: &Path) {
    let service = open(path);
    let hash = service.publish(&compile("w.afl", PROGRAM).unwrap()).await.unwrap();
    for nth in 0..=RUNS {
        let inputs = json!({"q": format!("{nth}{}", "x".repeat(6_000))}).as_object().unwrap().clone();
        let key = Some(format!("key {nth}"));
        let request = StartRequest { inputs, idempotency_key: key, ..StartRequest::new(hash) };
        service.start(request).await.unwrap();
        if nth < RUNS {
            let claim = service.claim(&ClaimRequest::new(FacetFilter::All, "agent")).await.unwrap().remove(0);
            let result = json!({"a": "y".repeat(6_000)}).as_object().unwrap().clone();
            service.complete(&claim.ticket, &result).await.unwrap();
            service.turn().await.unwrap();
        }
    }
}

async fn examine(service: &Service) -> Vec<RunStatus> {
    let report = service.doctor(Remedy::Tell).await.unwrap();
    assert_eq!((report.findings, report.busy), (Vec::new(), Vec::new()));
    let list = service.runs(&ALL).await.unwrap();
    assert_eq!(list.unreadable, Vec::<String>::new());
    list.runs.iter().map(|run| run.status).collect()
}

/// Takes the store back to what it was before the views.
fn downgrade(path: &Path) {
    let old = "DROP VIEW runs; DROP VIEW steps; DROP VIEW tasks; DROP VIEW events; DROP TABLE clock;
        UPDATE meta SET value = 1 WHERE name = 'format'; PRAGMA wal_checkpoint(TRUNCATE)";
    Connection::open(path).unwrap().execute_batch(old).unwrap();
}

#[tokio::test]
async fn f3_a_crash_in_an_upgrade_leaves_a_store_that_the_next_one_upgrades() {
    let world = directory();
    let path = world.path().join("store.db");
    for is_new in [true, false] {
        let mut kills = 0;
        for blocks in (0..).step_by(4) {
            for end in ["", "-wal", "-shm"] {
                drop(std::fs::remove_file(world.path().join(format!("store.db{end}"))));
            }
            if !is_new {
                fill(&path).await;
                downgrade(&path);
            }
            if start_child(&path, Some(blocks), None).success() {
                break;
            }
            kills += 1;
            let service = open(&path);
            assert_eq!(examine(&service).await.len(), if is_new { 0 } else { RUNS + 1 }, "{blocks} blocks");
            let views = "SELECT count(*) FROM runs, steps, tasks, events";
            Connection::open(&path).unwrap().query_row(views, [], |_| Ok(())).unwrap();
        }
        assert!(kills > 10, "only {kills} kills");
    }
}

#[tokio::test]
async fn f3_a_crash_while_old_runs_are_deleted_leaves_runs_that_can_be_deleted() {
    for write in 1.. {
        let world = directory();
        let path = world.path().join("store.db");
        fill(&path).await;
        // Before one commit is after the one before it, but for the first.
        let deletes = if write == 1 { -1 } else { write - 1 };
        let is_over = start_child(&path, None, Some(deletes)).success();
        let service = open(&path);
        let left = service.collect(Millis(i64::MAX)).await.unwrap().len();
        assert!(left <= RUNS && (!is_over || left == 0), "{left} runs after {write} commits");
        assert_eq!(examine(&service).await, [RunStatus::Paused], "after {write} commits");
        let rest = "SELECT count(DISTINCT scope) FROM records WHERE scope NOT LIKE '@%'";
        let runs: i64 = Connection::open(&path).unwrap().query_row(rest, [], |row| row.get(0)).unwrap();
        let keys = "SELECT count(*) FROM records WHERE scope = '@keys'";
        let kept: i64 = Connection::open(&path).unwrap().query_row(keys, [], |row| row.get(0)).unwrap();
        assert_eq!((runs, kept), (1, 1), "after {write} commits");
        if is_over {
            assert!(write > COMMITS_AT_LEAST, "only {write} commits");
            return;
        }
    }
}

//! F13, G10: an operator sets a wall clock ahead by an hour while an agent works.

use std::fs;
use std::time::Duration;

use afl_backends::sqlite::{Options, Sqlite};
use afl_engine::time::Millis;
use afl_runtime::Service;
use afl_runtime::doctor::Remedy;
use afl_store::record::Tenant;
use afl_testbed::faketime;
use afl_testbed::postgres::PostgresServer;
use serde_json::json;
use tokio::time::sleep;

use crate::outage::service;
use crate::site::folder;
use crate::work::{claim, finish, output, settle, start};

const HOUR_S: u32 = 3_600;
const LEASE: Millis = Millis(60_000);

#[tokio::test]
async fn g10_a_wall_clock_set_ahead_takes_no_task_from_a_holder_on_sqlite() {
    let folder = folder();
    let path = folder.path().join("store.db");
    let store = Sqlite::open(&path, Options::default()).unwrap();
    let service = Service::new(std::sync::Arc::new(store), Tenant::new(Tenant::LOCAL).unwrap());
    let run = start(&service, "Two", json!({"n": 1})).await;
    let held = claim(&service, 1).await.remove(0);
    let afl = |arguments: &[&str]| {
        let mut afl = faketime::command(HOUR_S, env!("CARGO_BIN_EXE_afl"));
        let store = format!("sqlite:{}", path.display());
        afl.env("AFL_STORE", store).current_dir(folder.path()).args(arguments).output().unwrap()
    };
    // It ends the attempts of silent holders, and this holder is not silent.
    let resumed = afl(&["resume", &run.0]);
    assert_eq!(resumed.status.code(), Some(4), "{resumed:?}");
    service.extend(&held.ticket, LEASE).await.unwrap();
    let examined = afl(&["doctor"]);
    let said = String::from_utf8_lossy(&examined.stdout).into_owned();
    assert!(said.contains("s behind the wall clock of this machine"), "{examined:?}");
    settle(&service, &held).await.unwrap();
    finish(&service).await;
    assert_eq!(output(&service, &run).await, json!({"n": 3}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g10_a_server_whose_clock_is_set_ahead_takes_no_task_from_a_holder() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let offset = folder.path().join("offset");
    fs::write(&offset, "+0s").unwrap();
    let server = PostgresServer::start_with_clock(&offset).unwrap();
    let [holder, janitor] = [service(&server.url(), 2).await, service(&server.url(), 2).await];
    let run = start(&holder, "Two", json!({"n": 1})).await;
    let held = claim(&holder, 1).await.remove(0);
    let before = janitor.now().await.unwrap();

    fs::write(&offset, format!("+{HOUR_S}s")).unwrap();
    while janitor.now().await.unwrap() < before.plus(Millis(i64::from(HOUR_S) * 500)) {
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(janitor.sweep_once().await.unwrap().requeued, 0);
    let findings = janitor.doctor(Remedy::Tell).await.unwrap().findings;
    let said = |part: &str| findings.iter().any(|finding| finding.problem.contains(part));
    assert!(said("it jumped ahead by 3") && said("s ahead of the wall clock"), "{findings:?}");
    holder.extend(&held.ticket, LEASE).await.unwrap();
    settle(&holder, &held).await.unwrap();
    while let Some(claimed) = claim(&holder, 1).await.pop() {
        settle(&holder, &claimed).await.unwrap();
    }
    assert!(!run.0.is_empty());
}

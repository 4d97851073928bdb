//! F11: a PostgreSQL server whose tables, or whose log, find no space on a real small file system.

use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Command;

use afl_engine::run::RunStatus;
use afl_runtime::Error;
use afl_store::backend::StoreError;
use afl_testbed::postgres::PostgresServer;
use serde_json::json;

use crate::outage::{client, service};
use crate::small::Small;
use crate::work::{Process, ended, examine, output, request, start};

/// Gives a folder to the user of the server's process.
fn hand_over(folder: &Path, server: &PostgresServer) {
    let owner = server.directory().metadata().unwrap();
    chown(folder, Some(owner.uid()), Some(owner.gid())).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f11_postgresql_without_space_is_reported_and_runs_resume_alone_when_there_is_space() {
    let small = Small::new(24);
    let server = PostgresServer::start().unwrap();
    hand_over(small.path(), &server);
    let admin = client(&server.url()).await;
    let place = small.path().display();
    admin.batch_execute(&format!("CREATE TABLESPACE small LOCATION '{place}'")).await.unwrap();
    admin.batch_execute("CREATE DATABASE small TEMPLATE template0 TABLESPACE small").await.unwrap();
    let url = server.url();
    let url = format!("{}/small", url.strip_suffix("/postgres").unwrap());
    let process = Process::new(service(&url, 4).await);
    let asked = request(&process.service, "Long", json!({ "text": "x".repeat(20_000) })).await;

    small.fill();
    let mut accepted = Vec::new();
    let full = loop {
        match process.service.start(asked.clone()).await {
            Ok(started) => accepted.push(started.run),
            Err(full) => break full,
        }
    };
    assert!(matches!(full, Error::Unavailable(StoreError::Full)), "{full}");
    assert!(full.to_string().contains("free space, then repeat the command"), "{full}");
    small.free();
    accepted.push(process.service.start(asked).await.unwrap().run);
    for run in &accepted {
        assert_eq!(ended(&process.service, run).await, RunStatus::Completed);
    }
    process.stop().await;
    examine(&service(&url, 4).await).await;
    assert!(server.log().unwrap().contains("No space left on device"));
}

/// It stops at once then, as at a power cut, and its operator starts it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f11_a_log_of_postgresql_without_space_takes_nothing_that_was_acknowledged() {
    const RUNS: i64 = 4;
    let small = Small::new(64);
    let mut server = PostgresServer::start().unwrap();
    server.stop().unwrap();
    hand_over(small.path(), &server);
    let (log, place) = (server.directory().join("data/pg_wal"), small.path().join("pg_wal"));
    let moved = Command::new("cp").arg("-a").args([&log, &place]).status().unwrap();
    assert!(moved.success());
    std::fs::remove_dir_all(&log).unwrap();
    std::os::unix::fs::symlink(&place, &log).unwrap();
    server.resume().unwrap();
    let process = Process::new(service(&server.url(), 4).await);
    let admin = client(&server.url()).await;

    small.fill();
    let mut accepted = Vec::new();
    let asked = request(&process.service, "Two", json!({"n": 5})).await;
    let full = loop {
        match process.service.start(asked.clone()).await {
            Ok(started) => accepted.push(started.run),
            Err(full) => break full,
        }
        // The rest of this part of the log is given up, so that it needs another one.
        drop(admin.execute("SELECT pg_switch_wal()", &[]).await);
    };
    assert!(full.is_uncertain(), "{full}");
    small.free();
    // It may be gone already.
    drop(server.crash());
    let log = server.log().unwrap();
    assert!(log.contains("PANIC") && log.contains("No space left on device"), "{log}");
    server.resume().unwrap();
    for n in 0..RUNS {
        let run = start(&process.service, "Two", json!({ "n": n })).await;
        assert_eq!(ended(&process.service, &run).await, RunStatus::Completed);
    }
    for run in &accepted {
        assert_eq!(ended(&process.service, run).await, RunStatus::Completed);
        assert_eq!(output(&process.service, run).await, json!({"n": 7}));
    }
    process.stop().await;
    examine(&service(&server.url(), 4).await).await;
}

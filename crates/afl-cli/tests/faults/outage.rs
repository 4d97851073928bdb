//! F9: a PostgreSQL server that restarts in the middle, refuses, or has no connection left.

use std::sync::Arc;

use afl_backends::postgres::Postgres;
use afl_engine::run::RunStatus;
use afl_runtime::Service;
use afl_runtime::agent::{Refusal, SettleResult};
use afl_store::record::Tenant;
use afl_testbed::postgres::PostgresServer;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls};

use crate::work::{PATIENCE, Process, claim, ended, examine, finish, output, result, settle, start};

pub(crate) async fn service(url: &str, connections: usize) -> Service {
    let store = Postgres::connect(url, connections).await.unwrap();
    Service::new(Arc::new(store), Tenant::new(Tenant::LOCAL).unwrap())
}

pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

/// Until the query, which gives one truth value, gives true.
pub(crate) async fn becomes_true(client: &Client, query: &str) {
    let asking = async { while !client.query_one(query, &[]).await.unwrap().get::<_, bool>(0) {} };
    timeout(PATIENCE, asking).await.expect("it comes true");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f9_runs_end_as_they_should_though_the_server_crashes_twice() {
    const RUNS: i64 = 12;
    // Commits would fail with serialization errors if they kept to the server's own level.
    let mut server = PostgresServer::start_with("default_transaction_isolation = 'repeatable read'").unwrap();
    let url = server.url();
    let processes = [Process::new(service(&url, 4).await), Process::new(service(&url, 4).await)];
    let mut runs = Vec::new();
    for n in 0..RUNS {
        let items = [n, n + 1, n + 2, n + 3];
        runs.push((start(&processes[0].service, "Fan", json!({ "items": items })).await, n));
        if n % 5 == 4 {
            server.crash().unwrap();
            server.resume().unwrap();
        }
    }
    for (run, n) in &runs {
        assert_eq!(ended(&processes[1].service, run).await, RunStatus::Completed);
        let all = [n + 1, n + 2, n + 3, n + 4];
        assert_eq!(output(&processes[0].service, run).await, json!({ "all": all }));
    }
    for process in processes {
        process.stop().await;
    }
    examine(&service(&url, 2).await).await;
    assert!(!server.log().unwrap().contains("could not serialize"));
}

/// Handlers give the token to systems outside, which refuse a token that they have seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g3_a_claim_that_a_crash_takes_back_leaves_its_token_to_no_other() {
    // The server writes nothing to the disk by itself before the crash.
    let mut server = PostgresServer::start_with("wal_writer_delay = 10s").unwrap();
    let service = service(&server.url(), 2).await;
    let run = start(&service, "Two", json!({"n": 1})).await;
    let lost = claim(&service, 1).await.remove(0).ticket;
    server.crash().unwrap();
    server.resume().unwrap();
    let again = async {
        loop {
            if let Some(claimed) = claim(&service, 1).await.pop() {
                break claimed.ticket;
            }
        }
    };
    let given = timeout(PATIENCE, again).await.expect("the crash took the claim back");
    assert_eq!((&given.run, &given.step), (&run, &lost.step));
    assert!(given.token > lost.token, "{} after {}", given.token, lost.token);
}

/// An uncommitted write is not there, and repeating it is safe.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f9_a_crash_in_the_middle_of_a_transaction_takes_nothing_half() {
    let mut server = PostgresServer::start().unwrap();
    let service = service(&server.url(), 2).await;
    let run = start(&service, "Two", json!({"n": 1})).await;
    let held = claim(&service, 1).await.remove(0);

    let other = client(&server.url()).await;
    let lock = format!("BEGIN; SELECT FROM afl.records WHERE scope = '{run}' AND id LIKE 'e/%' FOR UPDATE");
    other.batch_execute(&lock).await.unwrap();
    let telling = tokio::spawn({
        let (service, held) = (service.clone(), held.clone());
        async move { settle(&service, &held).await }
    });
    let watching = client(&server.url()).await;
    becomes_true(&watching, "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'").await;
    server.crash().unwrap();
    server.resume().unwrap();

    match timeout(PATIENCE, telling).await.expect("it does not hang").unwrap() {
        // A claim is not durable: the crash may have taken it back.
        Ok(SettleResult::Arrived(_) | SettleResult::Repeated) | Err(Refusal::LeaseLost { .. }) => {}
        Err(Refusal::Store(error)) if error.is_uncertain() => {}
        other => panic!("{other:?}"),
    }
    match service.complete(&held.ticket, &result(&held)).await {
        Ok(SettleResult::Arrived(_) | SettleResult::Repeated) | Err(Refusal::LeaseLost { .. }) => {}
        other => panic!("{other:?}"),
    }
    finish(&service).await;
    assert_eq!(output(&service, &run).await, json!({"n": 3}));
    examine(&service).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f9_one_connection_serves_many_callers_who_wait_their_turn() {
    const RUNS: i64 = 40;
    let server = PostgresServer::start().unwrap();
    let only = service(&server.url(), 1).await;
    let mut starts = JoinSet::new();
    for n in 0..RUNS {
        let service = only.clone();
        starts.spawn(async move { start(&service, "Two", json!({ "n": n })).await });
    }
    let runs = starts.join_all().await;
    let mut reads = JoinSet::new();
    for run in runs.clone() {
        let service = only.clone();
        reads.spawn(async move { service.run(&run).await.unwrap().status });
    }
    assert!(reads.join_all().await.iter().all(|status| *status == RunStatus::Paused));

    // The oldest open snapshot keeps dead rows alive, and blocks no client.
    let long = client(&server.url()).await;
    long.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM afl.records")
        .await
        .unwrap();
    finish(&only).await;
    long.batch_execute("COMMIT").await.unwrap();
    for run in &runs {
        assert_eq!(ended(&only, run).await, RunStatus::Completed);
    }
    examine(&only).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f9_a_server_without_connections_or_without_the_right_to_write_is_used_again_later() {
    let server =
        PostgresServer::start_with("max_connections = 12\nsuperuser_reserved_connections = 0").unwrap();
    let service = service(&server.url(), 2).await;
    let run = start(&service, "Two", json!({"n": 1})).await;
    let admin = client(&server.url()).await;
    let ours = "pid <> pg_backend_pid() AND backend_type = 'client backend'";
    let end_sessions =
        format!("SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE {ours}");

    // Others take all that is left, and ours are ended.
    admin.query(&end_sessions, &[]).await.unwrap();
    let mut others = Vec::new();
    while let Ok((client, connection)) = tokio_postgres::connect(&server.url(), NoTls).await {
        tokio::spawn(async move { drop(connection.await) });
        others.push(client);
    }
    let error = service.pause(&run).await.unwrap_err();
    assert!(error.is_uncertain() && error.to_string().contains("connections"), "{error}");
    drop(others);
    becomes_true(&admin, &format!("SELECT count(*) < 3 FROM pg_stat_activity WHERE {ours}")).await;
    service.pause(&run).await.unwrap();

    // As on a standby.
    let read_only =
        |value: &str| format!("ALTER DATABASE postgres SET default_transaction_read_only = {value}");
    admin.batch_execute(&read_only("on")).await.unwrap();
    admin.query(&end_sessions, &[]).await.unwrap();
    let error = service.resume(&run).await.unwrap_err();
    assert!(error.is_uncertain() && error.to_string().contains("does not allow writes"), "{error}");
    admin.batch_execute(&read_only("off")).await.unwrap();
    admin.query(&end_sessions, &[]).await.unwrap();
    service.resume(&run).await.unwrap();
    finish(&service).await;
    assert_eq!(output(&service, &run).await, json!({"n": 3}));
    examine(&service).await;
}

/// All of a migration is one transaction, so one that is cut off leaves the schema as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f3_a_migration_that_is_cut_off_is_done_by_the_next_process_that_connects() {
    let server = PostgresServer::start().unwrap();
    let url = server.url();
    let run = start(&service(&url, 2).await, "Two", json!({"n": 1})).await;
    let admin = client(&url).await;
    let older = "DROP VIEW afl.runs, afl.steps, afl.tasks, afl.events; DROP FUNCTION afl.shown, afl.moment;
        DROP FUNCTION afl.count_crash; DROP TABLE afl.crashes, afl.incarnation;
        DELETE FROM afl.migrations WHERE number > 1";
    admin.batch_execute(older).await.unwrap();

    // The views need the table, so the migration stops in its middle.
    admin.batch_execute("BEGIN; LOCK TABLE afl.records").await.unwrap();
    let connecting = tokio::spawn({
        let url = url.clone();
        async move { Postgres::connect(&url, 2).await.map(drop) }
    });
    let watching = client(&url).await;
    becomes_true(&watching, "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'").await;
    let end =
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    watching.query(end, &[]).await.unwrap();
    timeout(PATIENCE, connecting).await.expect("it does not hang").unwrap().unwrap_err();
    admin.batch_execute("COMMIT").await.unwrap();
    let applied = "SELECT count(*) = 1 FROM afl.migrations";
    assert!(admin.query_one(applied, &[]).await.unwrap().get::<_, bool>(0));

    let service = service(&url, 2).await;
    finish(&service).await;
    assert_eq!(output(&service, &run).await, json!({"n": 3}));
    becomes_true(&admin, "SELECT count(*) = 1 FROM afl.runs WHERE status = 'completed'").await;
    examine(&service).await;
}

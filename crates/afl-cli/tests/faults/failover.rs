//! F9: a PostgreSQL server that is lost for good, and its standby that takes over.

use afl_engine::run::RunStatus;
use afl_testbed::postgres::PostgresServer;
use serde_json::json;

use crate::outage::{becomes_true, client, service};
use crate::work::{Process, ended, examine, output, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f9_a_standby_that_takes_over_has_all_that_was_acknowledged_and_runs_go_on_alone() {
    const RUNS: i64 = 10;
    let mut primary = PostgresServer::start().unwrap();
    let mut standby = primary.standby().unwrap();
    let admin = client(&primary.url()).await;
    // A durable write is on both servers from now on.
    admin.batch_execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await.unwrap();
    admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let follows = "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
    becomes_true(&admin, follows).await;

    let url = primary.url();
    let (address, database) = url.rsplit_once('/').unwrap();
    let url = format!("{address},127.0.0.1:{}/{database}", standby.port());
    let processes = [Process::new(service(&url, 4).await), Process::new(service(&url, 4).await)];
    let mut runs = Vec::new();
    for n in 0..RUNS {
        if n == RUNS / 2 {
            primary.crash().unwrap();
            standby.promote().unwrap();
        }
        let items = [n, n + 1, n + 2, n + 3];
        runs.push((start(&processes[0].service, "Fan", json!({ "items": items })).await, n));
    }
    for (run, n) in &runs {
        assert_eq!(ended(&processes[1].service, run).await, RunStatus::Completed);
        let all = [n + 1, n + 2, n + 3, n + 4];
        assert_eq!(output(&processes[0].service, run).await, json!({ "all": all }));
    }
    for process in processes {
        process.stop().await;
    }
    examine(&service(&standby.url(), 2).await).await;
}

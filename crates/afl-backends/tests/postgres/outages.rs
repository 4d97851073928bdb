//! Servers that stop in the middle, and servers with unusual settings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use afl_backends::postgres::Postgres;
use afl_store::backend::{Backend, Batch, Expect, StoreError};
use afl_store::conformance::{differential, races};
use afl_testbed::postgres::PostgresServer;
use tokio::time::timeout;

use crate::database::{Database, content, durable, key, placed, put, read, relaxed, tenant};

/// Longer than all tries together, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// A commit that was confirmed is there, and a commit whose result is not known is reported as such.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f9_a_server_that_crashes_loses_nothing_and_is_used_again() {
    const WRITERS: usize = 8;
    let mut server = PostgresServer::start().unwrap();
    let store = Arc::new(Postgres::connect(&server.url(), 4).await.unwrap());
    let stop = Arc::new(AtomicBool::new(false));
    let confirmed = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, stop, confirmed) = (store.clone(), stop.clone(), confirmed.clone());
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for nth in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let id = format!("{writer}/{nth}");
                    match store.commit(durable([put(&id, Expect::Absent, content("{}"))])).await {
                        Ok(()) => {
                            acknowledged.push(id);
                            confirmed.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(StoreError::Unavailable { .. }) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
                acknowledged
            })
        })
        .collect();
    for _ in 0..3 {
        grows(&confirmed).await;
        server.crash().unwrap();
        server.resume().unwrap();
    }
    grows(&confirmed).await;
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        let keys: Vec<_> = writer.await.unwrap().iter().map(|id| key(id)).collect();
        let found = store.get(&keys).await.unwrap();
        assert!(found.iter().all(Option::is_some), "a confirmed commit is gone");
    }
}

async fn grows(confirmed: &AtomicU64) {
    let before = confirmed.load(Ordering::Relaxed);
    let growing = async {
        while confirmed.load(Ordering::Relaxed) < before + 20 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, growing).await.expect("commits go on");
}

// A crash loses commits that were not durable, and then the same versions may hold something else.
#[tokio::test]
async fn f9_a_commit_that_relies_on_reads_before_a_crash_is_refused_after_it() {
    let mut server = PostgresServer::start().unwrap();
    for (nth, batch) in [durable, relaxed].into_iter().enumerate() {
        let store = Postgres::connect(&server.url(), 2).await.unwrap();
        let write = |id: &str| batch([put(&format!("{nth}{id}"), Expect::Absent, content("{}"))]);
        let since = Some(store.epoch());
        store.commit(Batch { since, ..write("a") }).await.unwrap();
        store.commit(durable([put(&format!("{nth}v"), Expect::Absent, content("{}"))])).await.unwrap();
        let before = read(&store, &format!("{nth}v")).await.expect("it was written").version;
        server.crash().unwrap();
        server.resume().unwrap();
        let refused = loop {
            match store.commit(Batch { since, ..write("b") }).await.unwrap_err() {
                // It wrote to a connection that was not known to be dead.
                StoreError::Unavailable { .. } => {}
                refused => break refused,
            }
        };
        assert!(matches!(refused, StoreError::Restarted), "{refused:?}");
        assert!(read(&store, &format!("{nth}b")).await.is_none());
        // The record is as it was, but the version was read before the crash.
        let over = |version| batch([put(&format!("{nth}v"), Expect::Version(version), content("{}"))]);
        let refused = store.commit(over(before)).await.unwrap_err();
        assert!(matches!(refused, StoreError::Restarted), "{refused:?}");
        let after = read(&store, &format!("{nth}v")).await.expect("it was durable").version;
        assert_eq!((after.number, after.epoch > before.epoch), (before.number, true));
        store.commit(over(after)).await.unwrap();
        store.commit(Batch { since: Some(store.epoch()), ..write("c") }).await.unwrap();
        store.commit(write("d")).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f9_reads_and_watches_outlive_a_restart() {
    let mut server = PostgresServer::start().unwrap();
    let store = Postgres::connect(&server.url(), 2).await.unwrap();
    let other = Postgres::connect(&server.url(), 2).await.unwrap();
    store.commit(durable([put("a", Expect::Absent, placed("queue"))])).await.unwrap();
    let mut watch = store.watch(&tenant(), "queue");
    timeout(PATIENCE, watch.changed()).await.expect("listening begins with a wake-up");

    server.stop().unwrap();
    // The first read begins while the server is away.
    let (found, resumed) = tokio::join!(
        read(&store, "a"),
        tokio::task::spawn_blocking(move || server.resume().map(|()| server))
    );
    assert!(found.is_some());
    timeout(PATIENCE, watch.changed()).await.expect("a new connection wakes, for what came meanwhile");
    other.commit(durable([put("b", Expect::Absent, placed("queue"))])).await.unwrap();
    timeout(PATIENCE, watch.changed()).await.expect("it listens again");
    drop(resumed.unwrap().unwrap());
}

#[tokio::test]
async fn f9_a_server_that_stays_away_is_reported_and_nothing_hangs() {
    let mut server = PostgresServer::start().unwrap();
    let store = Postgres::connect(&server.url(), 2).await.unwrap();
    store.now().await.unwrap();
    server.stop().unwrap();
    let calls = async {
        let read = store.get(&[key("a")]).await.unwrap_err();
        let commit = store.commit(durable([put("a", Expect::Absent, content("{}"))])).await.unwrap_err();
        [read, commit]
    };
    for error in timeout(PATIENCE, calls).await.expect("the tries are bounded") {
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    }
    server.resume().unwrap();
    store.commit(durable([put("a", Expect::Absent, content("{}"))])).await.unwrap();
    assert!(read(&store, "a").await.is_some());
}

/// Commits would fail with serialization errors, and takes count what they do not see.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f9_the_servers_own_isolation_level_does_not_matter() {
    for level in ["repeatable read", "serializable"] {
        let settings = format!("default_transaction_isolation = '{level}'\nsynchronous_commit = off");
        let server = PostgresServer::start_with(&settings).unwrap();
        let database = Database::on(&server.url()).await;
        let handles: [Arc<dyn Backend>; 2] =
            [Arc::new(database.connect().await), Arc::new(database.connect().await)];
        differential::compare(&handles, 1, 200).await;
        races::batches_of_many_writers_are_whole(&database).await;
        races::a_ceiling_holds_with_many_takers(&Database::on(&server.url()).await).await;
        assert!(!server.log().unwrap().contains("could not serialize"));
    }
}

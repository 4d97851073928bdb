//! Servers that stop in the middle, and servers with unusual settings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use afl_backends::postgres::Postgres;
use afl_store::backend::{Backend, Batch, Decision, Durability, Expect, Ranks, StoreError, Take};
use afl_store::conformance::{differential, races};
use afl_store::record::Content;
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

/// How often the server crashed, as a take sees it.
async fn crashes(store: &Postgres) -> u64 {
    let seen = Arc::new(AtomicU64::new(u64::MAX));
    let noted = seen.clone();
    let take = Take {
        tenant: tenant(),
        bucket: "queue".to_owned(),
        ranks: Ranks::All,
        after: None,
        limit: 1,
        max_in_bucket: None,
        durability: Durability::Relaxed,
        decide: Arc::new(move |record, moment| {
            noted.store(moment.crashes, Ordering::SeqCst);
            Decision::Move(Content {
                body: moment.crashes.to_string().into_bytes(),
                ..record.content.clone()
            })
        }),
        also_read: None,
    };
    while let Err(error) = store.take(take.clone()).await {
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    }
    seen.load(Ordering::SeqCst)
}

// A claim that a crash takes back must not leave its token to another, so tokens begin with this count.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g3_each_crash_of_the_server_is_counted_once_and_for_good() {
    let mut server = PostgresServer::start().unwrap();
    let store = Postgres::connect(&server.url(), 2).await.unwrap();
    let other = Postgres::connect(&server.url(), 2).await.unwrap();
    store.commit(durable([put("a", Expect::Absent, placed("queue"))])).await.unwrap();
    assert_eq!(crashes(&store).await, 0);
    server.stop().unwrap();
    server.resume().unwrap();
    assert_eq!((crashes(&store).await, crashes(&other).await), (0, 0), "a stop in order loses nothing");
    for count in 1..4 {
        server.crash().unwrap();
        server.resume().unwrap();
        assert_eq!((crashes(&store).await, crashes(&other).await), (count, count));
    }
    // One process of the server dies: it recovers without a new start.
    let client = crate::database::client(&server.url()).await;
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let killed = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
    timeout(PATIENCE, async {
        while !client.is_closed() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    let counted = async { while crashes(&store).await < 4 {} };
    timeout(PATIENCE, counted).await.expect("the crash is counted");
    assert_eq!(crashes(&other).await, 4);
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

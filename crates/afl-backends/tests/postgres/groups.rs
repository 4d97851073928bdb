//! Commits that share a transaction, in one process and against another.

use std::sync::Arc;
use std::time::Duration;

use afl_backends::postgres::Postgres;
use afl_store::backend::{Backend, Change, Expect, KeysToRead, StoreError, Write};
use afl_store::conformance::unread;
use afl_store::record::{Key, Record};
use afl_testbed::postgres::PostgresServer;
use futures_util::future::join_all;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::database::{Database, content, durable, key, placed, put, read, relaxed, tenant};

/// They reach the writer in this order.
async fn commit_all(store: &Postgres, writes: Vec<Vec<Write>>) -> Vec<Result<(), StoreError>> {
    join_all(writes.into_iter().map(|writes| store.commit(durable(writes)))).await
}

#[tokio::test]
async fn commits_in_flight_share_transactions() {
    let database = Database::new().await;
    let store = database.connect().await;
    let writes = (0..64).map(|nth| vec![put(&nth.to_string(), Expect::Absent, content("{}"))]).collect();
    assert!(commit_all(&store, writes).await.iter().all(Result::is_ok));
    let stats = store.stats();
    assert_eq!((stats.commits, stats.durable_commits, stats.conflicts), (64, 64, 0));
    assert!(stats.transactions <= 8, "{stats:?}");
    assert!(stats.bytes > 64 * 2, "{stats:?}");
}

#[tokio::test]
async fn a_conflict_fails_only_its_own_batch() {
    let database = Database::new().await;
    let (store, other) = (database.connect().await, database.connect().await);
    other.commit(relaxed([put("taken", Expect::Absent, content("1"))])).await.unwrap();
    let answers = commit_all(
        &store,
        vec![
            vec![put("a", Expect::Absent, content("1"))],
            vec![put("b", Expect::Absent, content("1")), put("taken", Expect::Absent, content("2"))],
            vec![put("a", Expect::Version(unread(7)), content("2"))],
            vec![
                put("c", Expect::Absent, content("1")),
                put("taken", Expect::Version(unread(1)), content("3")),
            ],
            vec![put("taken", Expect::Version(unread(2)), content("4"))],
        ],
    )
    .await;
    let shown: Vec<String> =
        answers.iter().map(|answer| format!("{answer:?}").chars().take(12).collect()).collect();
    assert_eq!(shown, ["Ok(())", "Err(Conflict", "Err(Conflict", "Ok(())", "Ok(())"]);
    assert!(matches!(&answers[1], Err(StoreError::Conflict { key: found }) if *found == key("taken")));
    assert!(read(&store, "b").await.is_none());
    let taken = read(&store, "taken").await.unwrap();
    assert_eq!((taken.version.number, taken.content), (3, content("4")));
}

#[tokio::test]
async fn batches_of_one_group_may_follow_each_other_on_one_record() {
    let database = Database::new().await;
    let store = database.connect().await;
    let delete = |version| {
        vec![Write { key: key("a"), expect: Expect::Version(unread(version)), change: Change::Delete }]
    };
    let answers = commit_all(
        &store,
        vec![
            vec![put("a", Expect::Absent, content("1"))],
            vec![put("a", Expect::Version(unread(1)), content("2"))],
            delete(2),
            vec![Write { key: key("a"), expect: Expect::Absent, change: Change::Keep }],
            vec![put("a", Expect::Absent, content("3"))],
            vec![put("b", Expect::Absent, content("1"))],
            vec![Write { key: key("b"), expect: Expect::Version(unread(1)), change: Change::Delete }],
        ],
    )
    .await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let found = read(&store, "a").await.unwrap();
    assert_eq!((found.version.number, found.content), (1, content("3")));
    assert!(read(&store, "b").await.is_none());
}

#[tokio::test]
async fn commits_of_a_record_keep_their_order_whatever_their_durability() {
    let database = Database::new().await;
    let store = database.connect().await;
    let expect = |version| if version == 0 { Expect::Absent } else { Expect::Version(unread(version)) };
    let batches = (0..30).flat_map(|version| {
        let [a, b] = ["a", "b"].map(|id| put(id, expect(version), content(&version.to_string())));
        // Now and then a batch has to do with both.
        match version % 3 {
            0 => vec![durable([a]), relaxed([b])],
            1 => vec![relaxed([a]), durable([b])],
            _ => vec![relaxed([a, b])],
        }
    });
    let answers = join_all(batches.map(|batch| store.commit(batch))).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    for id in ["a", "b"] {
        assert_eq!(read(&store, id).await.unwrap().version.number, 30);
    }
}

#[tokio::test]
async fn reads_that_come_together_get_each_their_own() {
    let database = Database::new().await;
    let store = database.connect().await;
    let ids: Vec<String> = (0..40).map(|nth| nth.to_string()).collect();
    store.commit(relaxed(ids.iter().map(|id| put(id, Expect::Absent, content(id))))).await.unwrap();
    let keys: Vec<[Key; 2]> = ids.iter().map(|id| [key(id), key("none")]).collect();
    let found = join_all(keys.iter().map(|keys| store.get(keys))).await;
    for (id, found) in ids.iter().zip(found) {
        let [Some(record), None] = &found.unwrap()[..] else { panic!("{id} is there, the other is not") };
        assert_eq!(record.content, content(id));
    }
    let keys: Vec<[Key; 1]> =
        ids.iter().map(|id| [key(if id == "20" { "no \0 in a text" } else { id })]).collect();
    let found = join_all(keys.iter().map(|keys| store.get(keys))).await;
    assert_eq!(found.iter().filter(|found| found.is_err()).count(), 1, "{found:?}");
}

#[tokio::test]
async fn a_batch_that_the_server_refuses_fails_alone() {
    let database = Database::new().await;
    let store = database.connect().await;
    let answers = commit_all(
        &store,
        vec![
            vec![put("a", Expect::Absent, content("1"))],
            vec![put("no \0 in a text", Expect::Absent, content("1"))],
            vec![put("b", Expect::Absent, content("1"))],
        ],
    )
    .await;
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    assert!(matches!(answers[1], Err(StoreError::Refused(_))), "{answers:?}");
}

#[tokio::test]
async fn a_record_that_another_session_holds_stops_only_its_own_batch() {
    let database = Database::new().await;
    let (store, client) = (database.connect().await, database.client().await);
    let writes = |expect| ["a", "held", "b"].map(|id| vec![put(id, expect, content("1"))]).to_vec();
    commit_all(&store, writes(Expect::Absent)).await;
    client.batch_execute("BEGIN; SELECT FROM afl.records WHERE id = 'held' FOR UPDATE").await.unwrap();
    let answers = commit_all(&store, writes(Expect::Version(unread(1)))).await;
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    assert!(
        matches!(&answers[1], Err(error) if error.to_string().contains("pg_stat_activity")),
        "{answers:?}"
    );
    client.batch_execute("COMMIT").await.unwrap();
    store.commit(durable(writes(Expect::Version(unread(1))).remove(1))).await.unwrap();
}

/// Processes that write the same records in all ways at once meet conflicts, never a deadlock.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_in_each_others_way_do_not_stop_each_other() {
    const WRITERS: usize = 4;
    const ROUNDS: usize = 40;
    const RECORDS: usize = 60;
    let server = PostgresServer::start().unwrap();
    let database = Database::on(&server.url()).await;
    let mut tasks = JoinSet::new();
    for writer in 0..WRITERS {
        let store = database.connect().await;
        tasks.spawn(async move {
            for round in 0..ROUNDS {
                let keys: Vec<_> = (0..RECORDS).rev().map(|nth| key(&nth.to_string())).collect();
                let found = store.get(&keys).await.unwrap();
                let write = |(nth, (key, found)): (usize, (Key, Option<Record>))| {
                    let expect = found.map_or(Expect::Absent, |found| Expect::Version(found.version));
                    let change = match (nth + writer + round) % 4 {
                        0 => Change::Delete,
                        1 => Change::Keep,
                        _ => Change::Put(content("{}")),
                    };
                    Write { key, expect, change }
                };
                let writes = keys.into_iter().zip(found).enumerate().map(write);
                match store.commit(relaxed(writes)).await {
                    Ok(()) | Err(StoreError::Conflict { .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
        });
    }
    tasks.join_all().await;
    assert!(!server.log().unwrap().contains("deadlock detected"));
}

/// Each creates its own record if the other's is not there.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_that_expect_each_others_absence_one_wins() {
    let database = Database::new().await;
    let stores = [database.connect().await, database.connect().await];
    for round in 0..30 {
        let ids = ["a", "b"].map(|id| format!("{round}/{id}"));
        let race = (0..2).map(|nth| {
            let absent = Write { key: key(&ids[1 - nth]), expect: Expect::Absent, change: Change::Keep };
            stores[nth].commit(relaxed([put(&ids[nth], Expect::Absent, content("{}")), absent]))
        });
        let won = join_all(race).await.iter().filter(|answer| answer.is_ok()).count();
        assert!(won <= 1, "round {round}: both won");
        let found = stores[0].get(&ids.map(|id| key(&id))).await.unwrap();
        assert_eq!(found.iter().flatten().count(), won);
    }
}

/// Otherwise a commit that has nothing to write would be durable before those it follows.
#[tokio::test]
async fn a_durable_batch_without_writes_makes_earlier_ones_durable() {
    let database = Database::new().await;
    let (store, client) = (database.connect().await, database.client().await);
    for round in 0..5 {
        store.commit(relaxed([put(&round.to_string(), Expect::Absent, content("{}"))])).await.unwrap();
        let written = "SELECT pg_current_wal_insert_lsn()::text";
        let written: String = client.query_one(written, &[]).await.unwrap().get(0);
        store.commit(durable([])).await.unwrap();
        let flushed = "SELECT pg_current_wal_flush_lsn() >= $1::text::pg_lsn";
        assert!(client.query_one(flushed, &[&written]).await.unwrap().get::<_, bool>(0));
    }
}

/// Plans are kept, and the first were made when the table was empty.
#[tokio::test]
async fn no_call_reads_more_than_it_needs() {
    let database = Database::new().await;
    let client = database.client().await;
    let store = database.connect().await;
    calls(&store, "warm").await;
    let fill = "INSERT INTO afl.records SELECT 'acme', 'run', 'x' || n, 1, 'q' || n % 3, n, 0, 0, 0, '{}'
                FROM generate_series(1, 20000) n";
    client.batch_execute(fill).await.unwrap();
    let before = rows_read(&client).await;
    for nth in 0..5 {
        calls(&store, &nth.to_string()).await;
    }
    drop(store);
    let others = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'agentflow'
                  AND datname = current_database()";
    while client.query_one(others, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        tokio::task::yield_now().await;
    }
    let read = rows_read(&client).await - before;
    assert!(read < 1_000, "{read} rows were read");
}

async fn rows_read(client: &tokio_postgres::Client) -> i64 {
    let sql = "SELECT (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'records')::bigint
               + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'records')::bigint";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// One of each kind.
async fn calls(store: &Postgres, id: &str) {
    use crate::database::{placed, tenant};
    use afl_store::backend::{BucketCursor, Decision, MaxInBucket, Ranks, Scan, ScanOrder, Take};
    use afl_store::record::Record;

    store.commit(relaxed([put(id, Expect::Absent, placed("q1"))])).await.unwrap();
    store.commit(relaxed([put(id, Expect::Version(unread(1)), placed("q2"))])).await.unwrap();
    store.commit(relaxed([put(id, Expect::Version(unread(9)), placed("q2"))])).await.unwrap_err();
    store.get(&[key(id), key("none")]).await.unwrap();
    store.heads(&tenant(), "q").await.unwrap();
    let scope =
        Scan::Scope { tenant: tenant(), scope: "run".into(), prefix: "x1".into(), after: None, limit: 5 };
    store.scan(&scope).await.unwrap();
    for order in [ScanOrder::Ascending, ScanOrder::Descending] {
        let after = Some(BucketCursor { rank: 10_000, scope: "run".into(), id: "x".into() });
        let (tenant, bucket) = (tenant(), "q1".to_owned());
        store
            .scan(&Scan::Bucket { tenant, bucket, ranks: Ranks::All, order, after, limit: 5 })
            .await
            .unwrap();
    }
    for max_in_bucket in [None, Some(MaxInBucket { bucket: "q2".to_owned(), max: 10 })] {
        let (tenant, bucket) = (tenant(), "q1".to_owned());
        let durability = afl_store::backend::Durability::Relaxed;
        let also_read: Option<KeysToRead> = Some(Arc::new(|moved: &[Record]| vec![moved[0].key.clone()]));
        let decide = Arc::new(|_: &_, _| Decision::Move(placed("taken")));
        let after = Some(BucketCursor::before(0));
        let ranks = Ranks::All;
        store
            .take(Take {
                tenant,
                bucket,
                ranks,
                after,
                limit: 3,
                max_in_bucket,
                durability,
                decide,
                also_read,
            })
            .await
            .unwrap();
    }
    store
        .commit(relaxed([Write { key: key(id), expect: Expect::Version(unread(2)), change: Change::Delete }]))
        .await
        .unwrap();
}

// The server's answer may be there before the commit's future was polled a second time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_commit_notifies_other_processes() {
    let database = Database::new().await;
    let (store, other) = (database.connect().await, database.connect().await);
    let mut watch = other.watch(&tenant(), "queue");
    timeout(PATIENCE, watch.changed()).await.expect("listening begins with a wake-up");
    for nth in 0..1_000 {
        let write = put(&nth.to_string(), Expect::Absent, placed("queue"));
        let batch = if nth % 2 == 0 { durable([write]) } else { relaxed([write]) };
        store.commit(batch).await.unwrap();
        timeout(PATIENCE, watch.changed()).await.unwrap_or_else(|_| panic!("nobody was told of {nth}"));
    }
}

const PATIENCE: Duration = Duration::from_secs(20);

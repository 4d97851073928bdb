//! The contents of the file, the cost of a commit, and errors when the file cannot grow.

use std::sync::Arc;

use rusqlite::Connection;

use super::*;
use afl_store::conformance::unread;

#[tokio::test]
async fn written_records_are_there_after_opening_again() {
    let folder = Folder::new();
    let store = folder.open();
    commit(&store, Durability::Relaxed, insert("a", "{}")).await.unwrap();
    commit(&store, Durability::Durable, insert("b", "{}")).await.unwrap();
    drop(store);
    let left: Vec<_> =
        std::fs::read_dir(folder.0.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with("-wal")), "{left:?}");
    assert_eq!(all(&folder.open()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn people_can_look_into_the_bodies() {
    let folder = Folder::new();
    let store = folder.open();
    commit(&store, Durability::Relaxed, insert("a", r#"{"state":"done"}"#)).await.unwrap();
    let connection = Connection::open(folder.path()).unwrap();
    let sql = "SELECT body ->> '$.state' FROM records WHERE scope = 'run'";
    let state: String = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(state, "done");
}

#[tokio::test]
async fn many_relaxed_commits_and_a_durable_one_cost_one_sync() {
    let folder = Folder::new();
    let store = folder.open();
    for index in 0..10 {
        commit(&store, Durability::Relaxed, insert(&index.to_string(), "{}")).await.unwrap();
    }
    assert_eq!(store.stats().syncs(), 0);
    commit(&store, Durability::Durable, insert("last", "{}")).await.unwrap();
    assert_eq!((store.stats().commits, store.stats().syncs()), (11, 1));
}

#[tokio::test]
async fn a_durable_batch_that_writes_nothing_makes_earlier_ones_durable() {
    let folder = Folder::new();
    let store = folder.open();
    commit(&store, Durability::Relaxed, insert("a", "{}")).await.unwrap();
    store.commit(Batch::new(Vec::new(), Durability::Durable)).await.unwrap();
    assert_eq!(store.stats().syncs(), 1);
    commit(&store, Durability::Durable, insert("a", "{}")).await.unwrap_err();
    assert_eq!((store.stats().syncs(), store.stats().refused), (1, 1));
}

#[tokio::test]
async fn commits_at_once_share_a_transaction() {
    let folder = Folder::new();
    let store = Arc::new(folder.open());
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..200 {
        let store = store.clone();
        tasks.spawn(async move {
            commit(&store, Durability::Durable, insert(&(index % 150).to_string(), "{}")).await
        });
    }
    let conflicts = tasks.join_all().await.into_iter().filter(Result::is_err).count();
    let stats = store.stats();
    assert_eq!((conflicts, stats.refused, stats.commits), (50, 50, 150));
    assert!(stats.transactions < 100, "{stats:?}");
    assert_eq!(all(&store).await.unwrap().len(), 150);
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_the_store_continues_when_there_is_space() {
    const MAX_BYTES: u64 = 400 << 10;
    let folder = Folder::new();
    let options = Options { max_bytes: Some(MAX_BYTES), ..Options::default() };
    let store = Sqlite::open(&folder.path(), options).unwrap();
    let body = "x".repeat(10 << 10);
    let mut kept = 0;
    let full = loop {
        match commit(&store, Durability::Durable, insert(&kept.to_string(), body.as_str())).await {
            Ok(()) => kept += 1,
            Err(full) => break full,
        }
    };
    assert!(matches!(full, StoreError::Full), "{full:?}");
    let (first, second) = (insert("first", body.as_str()), insert("second", "{}"));
    let (first, second) =
        tokio::join!(commit(&store, Durability::Relaxed, first), commit(&store, Durability::Relaxed, second));
    assert!(matches!(first, Err(StoreError::Full)), "{first:?}");
    second.expect("a small one still fits");
    assert_eq!(all(&store).await.unwrap().len(), kept + 1);

    let delete = |id: usize| Write {
        expect: Expect::Version(unread(1)),
        change: Change::Delete,
        ..insert(&id.to_string(), "")
    };
    store.commit(Batch::new(vec![delete(0), delete(1)], Durability::Durable)).await.unwrap();
    commit(&store, Durability::Durable, insert("first", body.as_str())).await.unwrap();
}

#[tokio::test]
async fn the_log_stays_short() {
    let folder = Folder::new();
    let store = folder.open();
    let body = "x".repeat(1 << 20);
    for index in 0..120 {
        commit(&store, Durability::Relaxed, insert(&index.to_string(), body.as_str())).await.unwrap();
    }
    let log = folder.path().with_extension("db-wal").metadata().unwrap().len();
    assert!(log < 40 << 20, "{log} bytes");
    assert!((1..10).contains(&store.stats().checkpoints), "{:?}", store.stats());
}

#[tokio::test]
async fn a_mover_that_panics_hurts_only_its_caller() {
    let folder = Folder::new();
    let store = Arc::new(folder.open());
    commit(&store, Durability::Relaxed, insert("a", "{}")).await.unwrap();
    let take = Take { decide: Arc::new(|record, _| panic!("{}", record.key.id)), ..take(1) };
    let task = tokio::spawn({
        let store = store.clone();
        async move { store.take(take).await }
    });
    assert!(task.await.unwrap_err().is_panic());
    commit(&store, Durability::Relaxed, insert("b", "{}")).await.unwrap();
    assert_eq!(all(&store).await.unwrap().len(), 2);
}

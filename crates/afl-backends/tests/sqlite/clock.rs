//! The store's clock: it follows the boot of the machine, whatever the wall clock shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afl_store::backend::TakeMoment;
use rusqlite::Connection;

use super::*;

fn change(folder: &Folder, sql: &str) {
    let connection = Connection::open(folder.path()).expect("the file is there");
    connection.execute_batch(sql).expect("the statement is good");
}

/// How often the machine has booted anew, as a take sees it.
async fn crashes(store: &Sqlite) -> u64 {
    let seen = Arc::new(AtomicU64::new(u64::MAX));
    let noted = seen.clone();
    let decide = Arc::new(move |_: &Record, moment: TakeMoment| {
        noted.store(moment.crashes, Ordering::SeqCst);
        Decision::Leave
    });
    store.take(Take { decide, ..take(1) }).await.expect("the store works");
    seen.load(Ordering::SeqCst)
}

#[tokio::test]
async fn g3_another_boot_counts_as_a_crash_and_another_process_does_not() {
    let folder = Folder::new();
    let store = folder.open();
    commit(&store, Durability::Relaxed, insert("a", "{}")).await.unwrap();
    assert_eq!(crashes(&store).await, 0);
    assert_eq!(crashes(&folder.open()).await, 0);
    drop(store);
    for count in [1, 2] {
        change(&folder, "UPDATE clock SET boot = 'before'");
        assert_eq!(crashes(&folder.open()).await, count);
        assert_eq!(crashes(&folder.open()).await, count);
    }
}

#[tokio::test]
async fn g10_another_boot_sets_the_clock_to_the_wall_clock_and_never_back() {
    const HOUR: i64 = 3_600_000;
    let folder = Folder::new();
    let first = folder.open().clock().await.unwrap();
    assert!((first.wall.0 - first.now.0).abs() < 1_000, "{first:?}");

    // An operator set the wall clock back by an hour since the file was made.
    change(&folder, &format!("UPDATE clock SET ahead_ms = ahead_ms + {HOUR}"));
    let store = folder.open();
    let ahead = store.clock().await.unwrap();
    assert!((HOUR - 1_000..HOUR + 60_000).contains(&(ahead.now.0 - ahead.wall.0)), "{ahead:?}");
    commit(&store, Durability::Relaxed, insert("a", "{}")).await.unwrap();
    let latest = store.now().await.unwrap();
    drop(store);

    change(&folder, "UPDATE clock SET boot = 'before'");
    let again = folder.open().clock().await.unwrap();
    assert!(again.now >= latest, "{again:?} {latest:?}");
    change(&folder, &format!("UPDATE clock SET boot = 'before', latest_ms = latest_ms - {HOUR}"));
    let again = folder.open().clock().await.unwrap();
    assert!((again.wall.0 - again.now.0).abs() < 2_000, "{again:?}");
}

#[tokio::test]
async fn g10_a_process_of_another_time_namespace_is_refused() {
    let folder = Folder::new();
    drop(folder.open());
    change(&folder, "UPDATE clock SET time_namespace = 'time:[7]'");
    let refusal = folder.refusal();
    let (before, own) = refusal.rsplit_once("time:[").unwrap();
    assert_eq!(
        format!("{before}{}", own.trim_start_matches(|letter: char| letter.is_ascii_digit())),
        "the store store.db is used in the time namespace time:[7] of this machine, and this process is in ]: start it \
         in the same time namespace"
    );
    // After another boot the number says nothing.
    change(&folder, "UPDATE clock SET boot = 'before'");
    drop(folder.open());
}

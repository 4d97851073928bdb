//! Checks of wake-ups.

use std::time::Duration;

use tokio::time::timeout;

use super::Fixture;
use super::given::{acme, insert, key, placed, take, taken, tenant, write};
use crate::record::Key;
use crate::watch::Watch;

/// Long enough for any wake-up on a busy machine, and longer than the back-stop of every backend.
const PATIENCE: Duration = Duration::from_secs(20);

pub async fn a_watch_wakes_when_a_record_comes(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let mut whole = store.watch(&acme(), "queue/a");
    let mut part = store.watch(&acme(), "queue/");
    for id in ["1", "2"] {
        write(&store, [insert(key("run", id), placed("queue/a", 0))]).await;
        woken(&mut whole).await;
        woken(&mut part).await;
    }
}

pub async fn a_watch_wakes_for_another_handle(fixture: &dyn Fixture) {
    let (store, other) = (fixture.open().await, fixture.open().await);
    let mut watch = store.watch(&acme(), "queue");
    for id in ["1", "2", "3"] {
        write(&other, [insert(key("run", id), placed("queue", 0))]).await;
        woken(&mut watch).await;
    }
}

pub async fn a_watch_wakes_for_a_take(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    write(&store, [insert(key("run", "a"), placed("ready", 0))]).await;
    let mut watch = store.watch(&acme(), "running");
    taken(&store, take("ready", "running", 1)).await;
    woken(&mut watch).await;
}

pub async fn a_watch_counts_changes_before_it_is_asked(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let mut watch = store.watch(&acme(), "queue");
    let mut copy = watch.clone();
    write(&store, [insert(key("run", "a"), placed("queue", 0))]).await;
    write(&store, [insert(key("run", "b"), placed("queue", 0))]).await;
    woken(&mut watch).await;
    woken(&mut copy).await;
}

pub async fn a_watch_of_the_empty_prefix_sees_all(fixture: &dyn Fixture) {
    let store = fixture.open().await;
    let other = tenant("other");
    let mut watch = store.watch(&other, "");
    let key = Key { tenant: other, ..key("run", "a") };
    write(&store, [insert(key, placed("é漢", 0))]).await;
    woken(&mut watch).await;
}

pub async fn many_watch_at_once(fixture: &dyn Fixture) {
    const WATCHES: usize = 100;
    let store = fixture.open().await;
    drop((0..WATCHES).map(|index| store.watch(&acme(), &format!("gone/{index}"))).collect::<Vec<_>>());
    let buckets: Vec<String> = (0..WATCHES).map(|index| format!("run/{index}/done")).collect();
    let mut watches: Vec<Watch> = buckets.iter().map(|bucket| store.watch(&acme(), bucket)).collect();
    let placed = buckets.iter().map(|bucket| insert(key("run", bucket), placed(bucket, 0)));
    write(&store, placed).await;
    for watch in &mut watches {
        woken(watch).await;
    }
}

async fn woken(watch: &mut Watch) {
    timeout(PATIENCE, watch.changed()).await.expect("the watch should have woken");
}

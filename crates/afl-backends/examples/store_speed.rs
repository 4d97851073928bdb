//! Prints what single calls on an SQLite store cost: `cargo run --release -p afl-backends --example store_speed [folder]`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use afl_backends::sqlite::{Options, Sqlite};
use afl_store::backend::{
    Backend, Batch, Change, Decision, Durability, Expect, Ranks, StoreError, Take, Write,
};
use afl_store::record::{Content, Key, QueuePosition, Seal, Tenant};

const BODY_BYTES: usize = 400;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = match std::env::args().nth(1) {
        Some(folder) => tempfile::tempdir_in(PathBuf::from(folder))?,
        None => tempfile::tempdir()?,
    };
    let store = Arc::new(Sqlite::open(&folder.path().join("store.db"), Options::default())?);

    measure(&store, "relaxed commit, 1 writer", writers(&store, "relaxed", Durability::Relaxed, 1, 20_000))
        .await?;
    measure(&store, "relaxed commit, 64 writers", writers(&store, "many", Durability::Relaxed, 64, 1_000))
        .await?;
    measure(&store, "durable commit, 1 writer", writers(&store, "durable", Durability::Durable, 1, 1_000))
        .await?;
    measure(&store, "durable commit, 64 writers", writers(&store, "group", Durability::Durable, 64, 500))
        .await?;
    measure(&store, "get", gets(&store, 50_000)).await?;
    measure(&store, "get after each commit", gets_after_commits(&store, 5_000)).await?;
    measure(&store, "conflict", conflicts(&store, 20_000)).await?;
    measure(&store, "take of 1, relaxed", takes(&store, 10_000)).await?;
    measure(&store, "take of none", empty_takes(&store, 20_000)).await?;
    Ok(())
}

/// Runs calls and prints their rate, the CPU time of one, and how many commits shared a sync.
async fn measure(
    store: &Sqlite,
    name: &str,
    calls: impl Future<Output = Result<u32, StoreError>>,
) -> Result<(), StoreError> {
    let (before, cpu, start) = (store.stats(), cpu_time(), Instant::now());
    let count = calls.await?;
    let (elapsed, cpu, after) = (start.elapsed(), cpu_time().saturating_sub(cpu), store.stats());
    println!(
        "{name:28} {:>9.0} /s  {:>7.1} µs each  {:>6.1} µs cpu  {:>6.1} commits per transaction  {:>5} syncs",
        f64::from(count) / elapsed.as_secs_f64(),
        elapsed.as_secs_f64() * 1e6 / f64::from(count),
        cpu.as_secs_f64() * 1e6 / f64::from(count),
        small(after.commits - before.commits) / small(after.transactions - before.transactions).max(1.0),
        after.syncs() - before.syncs(),
    );
    Ok(())
}

fn small(number: u64) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}

/// Of all threads of this process; zero where the system has no such figure.
fn cpu_time() -> Duration {
    const TICK_MS: u64 = 10;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * TICK_MS)
}

async fn writers(
    store: &Arc<Sqlite>,
    scope: &str,
    durability: Durability,
    writers: u32,
    each: u32,
) -> Result<u32, StoreError> {
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..writers {
        let (store, scope) = (store.clone(), format!("{scope}/{writer}"));
        tasks.spawn(async move {
            for index in 0..each {
                let write = insert(&scope, index, Some(QueuePosition { bucket: scope.clone(), rank: 0 }));
                store.commit(Batch::new(vec![write], durability)).await?;
            }
            Ok::<(), StoreError>(())
        });
    }
    for answer in tasks.join_all().await {
        answer?;
    }
    Ok(writers * each)
}

async fn gets(store: &Sqlite, count: u32) -> Result<u32, StoreError> {
    for index in 0..count {
        store.get(&[key("relaxed/0", index.wrapping_mul(7_919) % 20_000)]).await?;
    }
    Ok(count)
}

/// Each commit makes the readers' caches stale.
async fn gets_after_commits(store: &Sqlite, count: u32) -> Result<u32, StoreError> {
    for index in 0..count {
        let writes = vec![insert("stale", index, None)];
        store.commit(Batch::new(writes, Durability::Relaxed)).await?;
        store.get(&[key("relaxed/0", index % 20_000)]).await?;
    }
    Ok(count)
}

async fn conflicts(store: &Sqlite, count: u32) -> Result<u32, StoreError> {
    for index in 0..count {
        let writes = vec![insert("relaxed/0", index % 20_000, None)];
        let answer = store.commit(Batch::new(writes, Durability::Durable)).await;
        assert!(matches!(answer, Err(StoreError::Conflict { .. })));
    }
    Ok(count)
}

async fn takes(store: &Sqlite, count: u32) -> Result<u32, StoreError> {
    for _ in 0..count {
        assert_eq!(store.take(take("relaxed/0")).await?.moved.len(), 1);
    }
    Ok(count)
}

async fn empty_takes(store: &Sqlite, count: u32) -> Result<u32, StoreError> {
    for _ in 0..count {
        assert!(store.take(take("nothing")).await?.moved.is_empty());
    }
    Ok(count)
}

fn take(bucket: &str) -> Take {
    Take {
        tenant: tenant(),
        bucket: bucket.to_owned(),
        ranks: Ranks::All,
        after: None,
        limit: 1,
        max_in_bucket: None,
        durability: Durability::Relaxed,
        decide: Arc::new(|record, moment| {
            Decision::Move(Content {
                place: Some(QueuePosition { bucket: "running".to_owned(), rank: moment.now.0 }),
                ..record.content.clone()
            })
        }),
        also_read: None,
    }
}

fn insert(scope: &str, index: u32, place: Option<QueuePosition>) -> Write {
    let body = format!("{{\"text\":\"{}\"}}", "x".repeat(BODY_BYTES - 11)).into_bytes();
    let content = Content { place, body, seal: Seal::default() };
    Write { key: key(scope, index), expect: Expect::Absent, change: Change::Put(content) }
}

fn key(scope: &str, index: u32) -> Key {
    Key { tenant: tenant(), scope: scope.into(), id: format!("step/{index:08}") }
}

fn tenant() -> Tenant {
    Tenant::new(Tenant::LOCAL).expect("the name of the only tenant is good")
}

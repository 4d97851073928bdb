//! How many commits a second PostgreSQL takes from us, against what it takes from bare connections.
//!
//! Starts a server of its own, unless `AFL_TEST_POSTGRES` names one.

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use afl_backends::postgres::{CONNECTIONS, Postgres};
use afl_store::backend::{Backend, Batch, Change, Decision, Durability, Expect, Ranks, Take, Write};
use afl_store::conformance::unread;
use afl_store::record::{Content, Key, QueuePosition, Seal, Tenant};
use afl_testbed::postgres::{PostgresServer, URL_VARIABLE};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

const SPAN: Duration = Duration::from_secs(4);
const BODY: &str = r#"{"state":"state.statement.Complete","outputs":{"total":42},"waits":[]}"#;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let own = if env::var_os(URL_VARIABLE).is_none() { Some(PostgresServer::start()?) } else { None };
    let url =
        own.map_or_else(|| env::var(URL_VARIABLE).map(|url| (url, None)), |own| Ok((own.url(), Some(own))));
    let (url, _own) = url?;
    let client = connect(&url).await?;
    client.batch_execute("CREATE TABLE bare (id text PRIMARY KEY, body bytea NOT NULL)").await?;
    for writers in [1, 16, 64] {
        let before = flushes(&client).await?;
        let (commits, span) = bare(&url, writers).await?;
        report(&format!("bare, {writers} writers"), commits, span, flushes(&client).await? - before);
    }
    for load in LOADS {
        let store = Arc::new(Postgres::connect(&url, CONNECTIONS).await?);
        let before = flushes(&client).await?;
        let (commits, span) = ours(&store, load).await?;
        let stats = store.stats();
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        store.commit(Batch::new(Vec::new(), load.durability)).await?;
        report(&format!("ours, {load:?}"), commits, span, flushes(&client).await? - before);
        println!("    {} batches in {} transactions", stats.commits, stats.transactions);
    }
    let store = Arc::new(Postgres::connect(&url, CONNECTIONS).await?);
    let (takes, span) = takes(&store).await?;
    report("takes of one record, 8 takers", takes, span, 0);
    Ok(())
}

#[derive(Clone, Copy, Debug)]
struct Load {
    durability: Durability,
    in_flight: usize,
    /// Records that wait in a bucket also wake the processes that watch it.
    bucket: Option<&'static str>,
}

const LOADS: [Load; 5] = [
    Load { durability: Durability::Durable, in_flight: 1, bucket: None },
    Load { durability: Durability::Durable, in_flight: 16, bucket: None },
    Load { durability: Durability::Durable, in_flight: 64, bucket: None },
    Load { durability: Durability::Relaxed, in_flight: 64, bucket: None },
    Load { durability: Durability::Durable, in_flight: 64, bucket: Some("ready") },
];

async fn connect(url: &str) -> Outcome<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

/// Since the server was created. A connection reports its figures once a second, with its next statement.
async fn flushes(client: &Client) -> Outcome<i64> {
    Ok(client.query_one("SELECT wal_sync FROM pg_stat_wal", &[]).await?.get(0))
}

async fn bare(url: &str, writers: usize) -> Outcome<(usize, Duration)> {
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    for writer in 0..writers {
        let client = connect(url).await?;
        tasks.spawn(async move {
            let statement = client.prepare("INSERT INTO bare VALUES ($1, $2)").await?;
            let mut commits = 0;
            while start.elapsed() < SPAN {
                let id = format!("{writers}/{writer}/{commits}");
                client.execute(&statement, &[&id, &BODY.as_bytes()]).await?;
                commits += 1;
            }
            Outcome::Ok(commits)
        });
    }
    sum(tasks, start).await
}

/// Each caller writes a record and then its next version, as a step does.
async fn ours(store: &Arc<Postgres>, load: Load) -> Outcome<(usize, Duration)> {
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    for caller in 0..load.in_flight {
        let store = store.clone();
        tasks.spawn(async move {
            let mut commits = 0;
            while start.elapsed() < SPAN {
                let expect = if commits % 2 == 0 { Expect::Absent } else { Expect::Version(unread(1)) };
                let key = key(format!("{load:?}/{caller}/{}", commits / 2))?;
                let write = Write { key, expect, change: Change::Put(content(load.bucket)) };
                store.commit(Batch::new(vec![write], load.durability)).await?;
                commits += 1;
            }
            Outcome::Ok(commits)
        });
    }
    sum(tasks, start).await
}

/// From what the last load left in its bucket.
async fn takes(store: &Arc<Postgres>) -> Outcome<(usize, Duration)> {
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    for _ in 0..8 {
        let store = store.clone();
        tasks.spawn(async move {
            let mut taken = 0;
            while start.elapsed() < SPAN {
                let take = Take {
                    tenant: Tenant::new(Tenant::LOCAL)?,
                    bucket: "ready".to_owned(),
                    ranks: Ranks::All,
                    after: None,
                    limit: 1,
                    max_in_bucket: None,
                    durability: Durability::Relaxed,
                    decide: Arc::new(|_, _| Decision::Move(content(Some("running")))),
                    also_read: None,
                };
                taken += store.take(take).await?.moved.len();
            }
            Outcome::Ok(taken)
        });
    }
    sum(tasks, start).await
}

fn key(id: String) -> Outcome<Key> {
    Ok(Key { tenant: Tenant::new(Tenant::LOCAL)?, scope: "run".into(), id })
}

fn content(bucket: Option<&str>) -> Content {
    let place = bucket.map(|bucket| QueuePosition { bucket: bucket.to_owned(), rank: 0 });
    Content { place, body: BODY.into(), seal: Seal::default() }
}

async fn sum(mut tasks: JoinSet<Outcome<usize>>, start: Instant) -> Outcome<(usize, Duration)> {
    let mut commits = 0;
    while let Some(done) = tasks.join_next().await {
        commits += done??;
    }
    Ok((commits, start.elapsed()))
}

#[expect(clippy::cast_precision_loss, reason = "rough figures for people")]
fn report(name: &str, commits: usize, span: Duration, flushes: i64) {
    let rate = commits as f64 / span.as_secs_f64();
    println!("{name}: {rate:.0} a second, {:.3} flushes for each", flushes as f64 / commits as f64);
}

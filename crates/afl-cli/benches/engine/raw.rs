//! The limits of the disk, SQLite and PostgreSQL, measured with the simplest programs.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use serde::Serialize;

use crate::ground::connect;

const SPAN: Duration = Duration::from_millis(700);
const BODY: &str = r#"{"state":"state.statement.Complete","outputs":{"total":42},"waits":[]}"#;
const WRITERS: usize = 16;

/// Each second.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Limits {
    pub(crate) syncs: Option<f64>,
    pub(crate) one_writer: Option<f64>,
    pub(crate) sixteen_writers: Option<f64>,
}

impl Limits {
    /// Of two measurements around a case, because the disk of a machine is not the same all the time.
    pub(crate) fn mean(self, other: Self) -> Self {
        let mean = |one: Option<f64>, other: Option<f64>| Some(f64::midpoint(one?, other?));
        Self {
            syncs: mean(self.syncs, other.syncs),
            one_writer: mean(self.one_writer, other.one_writer),
            sixteen_writers: mean(self.sixteen_writers, other.sixteen_writers),
        }
    }
}

/// Of appending a page and waiting for the disk.
pub(crate) fn sync_rate(directory: &Path) -> f64 {
    let mut file = File::create(directory.join("syncs")).expect("a file");
    let page = [0x5a; 4096];
    let start = Instant::now();
    let mut syncs = 0;
    while start.elapsed() < SPAN {
        file.write_all(&page).expect("the disk has room");
        file.sync_data().expect("the disk works");
        syncs += 1;
    }
    rate(syncs, start)
}

pub(crate) fn sqlite(directory: &Path) -> Limits {
    let path = directory.join("raw.db");
    let connection = open(&path);
    connection
        .execute_batch("CREATE TABLE IF NOT EXISTS raw (id TEXT PRIMARY KEY, body TEXT)")
        .expect("a table");
    Limits {
        syncs: Some(sync_rate(directory)),
        one_writer: Some(sqlite_writers(&path, 1)),
        sixteen_writers: Some(sqlite_writers(&path, WRITERS)),
    }
}

fn open(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("the file opens");
    connection.busy_timeout(Duration::from_secs(30)).expect("a timeout");
    connection.execute_batch("PRAGMA journal_mode = wal; PRAGMA synchronous = full").expect("the mode");
    connection
}

fn sqlite_writers(path: &Path, writers: usize) -> f64 {
    let start = Instant::now();
    let write = move |writer: usize| {
        let connection = open(path);
        let mut insert =
            connection.prepare("INSERT OR REPLACE INTO raw VALUES (?1, ?2)").expect("a statement");
        let mut commits = 0;
        while start.elapsed() < SPAN {
            insert.execute(params![format!("{writers}/{writer}/{commits}"), BODY]).expect("a commit");
            commits += 1;
        }
        commits
    };
    let commits = thread::scope(|scope| {
        let threads: Vec<_> = (0..writers).map(|writer| scope.spawn(move || write(writer))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a writer does not panic")).sum()
    });
    rate(commits, start)
}

pub(crate) async fn postgres(url: &str, directory: &Path) -> Limits {
    let client = connect(url).await;
    client
        .batch_execute("DROP TABLE IF EXISTS raw; CREATE TABLE raw (id text PRIMARY KEY, body text NOT NULL)")
        .await
        .expect("a table");
    Limits {
        syncs: Some(sync_rate(directory)),
        one_writer: Some(postgres_writers(url, 1).await),
        sixteen_writers: Some(postgres_writers(url, WRITERS).await),
    }
}

async fn postgres_writers(url: &str, writers: usize) -> f64 {
    let mut tasks = tokio::task::JoinSet::new();
    let start = Instant::now();
    for writer in 0..writers {
        let client = connect(url).await;
        tasks.spawn(async move {
            let insert = client.prepare("INSERT INTO raw VALUES ($1, $2)").await.expect("a statement");
            let mut commits = 0;
            while start.elapsed() < SPAN {
                let id = format!("{writers}/{writer}/{commits}");
                client.execute(&insert, &[&id, &BODY]).await.expect("a commit");
                commits += 1;
            }
            commits
        });
    }
    let commits = tasks.join_all().await.into_iter().sum();
    rate(commits, start)
}

fn rate(count: u32, start: Instant) -> f64 {
    f64::from(count) / start.elapsed().as_secs_f64()
}

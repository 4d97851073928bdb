//! Several processes on one file, and processes that end in the middle.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use afl_store::fault::{Fault, FaultMoment, Faulty, at_write};
use tokio::time::timeout;

use super::*;

const STORE: &str = "AFL_TEST_CHILD_STORE";
const NAME: &str = "AFL_TEST_CHILD_NAME";
const ABORT: &str = "AFL_TEST_CHILD_ABORT";
const WRITES: usize = 12;
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts this program again, only to run [`child`].
fn start(folder: &Folder, name: &str, abort: Option<(u64, FaultMoment)>) -> Child {
    let mut command = Command::new(env::current_exe().expect("this program has a file"));
    command.args(["--exact", "processes::child"]).env(STORE, folder.path()).env(NAME, name);
    if let Some((write, moment)) = abort {
        let sign = match moment {
            FaultMoment::Before => "-",
            FaultMoment::After => "",
        };
        command.env(ABORT, format!("{sign}{write}"));
    }
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it can be started again")
}

/// Writes, one after the other, under its name; does nothing unless started by another test.
#[tokio::test]
async fn child() {
    let (Ok(path), Ok(name)) = (env::var(STORE), env::var(NAME)) else { return };
    let store = Arc::new(Sqlite::open(path.as_ref(), Options::default()).unwrap());
    let abort: i64 = env::var(ABORT).map_or(0, |number| number.parse().unwrap());
    let moment = if abort < 0 { FaultMoment::Before } else { FaultMoment::After };
    let store = Faulty::new(store, at_write(abort.unsigned_abs(), Fault::Abort(moment)));
    for index in 0..WRITES {
        let durability = if index % 3 == 0 { Durability::Durable } else { Durability::Relaxed };
        let writes = vec![
            insert(&format!("{name}/{index:02}/a"), "{}"),
            insert(&format!("{name}/{index:02}/b"), "{}"),
        ];
        store.commit(Batch::new(writes, durability)).await.unwrap();
    }
}

#[tokio::test]
async fn a_process_that_dies_leaves_whole_commits() {
    let folder = Folder::new();
    let store = folder.open();
    for write in [1, 2, 5, WRITES as u64] {
        for moment in [FaultMoment::Before, FaultMoment::After] {
            let name = format!("{write}{moment:?}");
            let status = start(&folder, &name, Some((write, moment))).wait().unwrap();
            assert!(!status.success(), "the child should have died");
            let mut kept: Vec<_> =
                all(&store).await.unwrap().into_iter().map(|record| record.key.id).collect();
            kept.retain(|id| id.starts_with(&format!("{name}/")));
            let commits = match moment {
                FaultMoment::Before => write - 1,
                FaultMoment::After => write,
            };
            assert_eq!(kept.len() as u64, 2 * commits, "{name}: {kept:?}");
        }
    }
    commit(&store, Durability::Durable, insert("the store goes on", "{}")).await.unwrap();
}

#[tokio::test]
async fn processes_write_at_once_and_wake_each_other() {
    const PROCESSES: usize = 3;
    let folder = Folder::new();
    let store = folder.open();
    let mut watch = store.watch(&key("").tenant, "queue");
    let children: Vec<Child> =
        (0..PROCESSES).map(|index| start(&folder, &format!("p{index}"), None)).collect();
    for index in 0..WRITES {
        commit(&store, Durability::Durable, insert(&format!("own/{index}"), "{}")).await.unwrap();
    }
    let expected = WRITES + PROCESSES * WRITES * 2;
    while all(&store).await.unwrap().len() < expected {
        timeout(PATIENCE, watch.changed()).await.expect("another process wrote");
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
}

/// The slow look alone would need a second for each round.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn another_handle_is_heard_when_it_rings() {
    const ROUNDS: usize = 20;
    let folder = Folder::new();
    let (store, other) = (folder.open(), folder.open());
    let mut watch = store.watch(&key("").tenant, "queue");
    let rounds = async {
        for round in 0..ROUNDS {
            commit(&other, Durability::Relaxed, insert(&round.to_string(), "{}")).await.unwrap();
            watch.changed().await;
        }
    };
    timeout(Duration::from_secs(10), rounds).await.expect("the bell is heard");
}

/// Whoever writes has a list of those who wait; it must not miss who came since.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn whoever_comes_later_is_rung_for_too() {
    const ROUNDS: usize = 20;
    let folder = Folder::new();
    let writer = folder.open();
    let rounds = async {
        for round in 0..ROUNDS {
            let newcomer = folder.open();
            let mut watch = newcomer.watch(&key("").tenant, "queue");
            commit(&writer, Durability::Relaxed, insert(&round.to_string(), "{}")).await.unwrap();
            watch.changed().await;
        }
    };
    timeout(Duration::from_secs(10), rounds).await.expect("every bell is heard");
}

#[tokio::test]
async fn no_bell_stays_behind() {
    let folder = Folder::new();
    let bells = PathBuf::from(format!("{}-bells", folder.path().display()));
    let hung = || fs::read_dir(&bells).unwrap().count();
    let store = folder.open();
    drop(store.watch(&key("").tenant, "queue"));
    assert_eq!(hung(), 1);
    drop(store);
    assert_eq!(hung(), 0, "its owner takes it down");

    // That of a killed process has nobody who holds its lock.
    fs::write(bells.join("queue.0123456789abcdef"), "").unwrap();
    let other = folder.open();
    commit(&other, Durability::Relaxed, insert("a", "{}")).await.unwrap();
    assert_eq!(hung(), 0, "whoever would ring it takes it down");
}

#[tokio::test]
async fn a_writer_that_does_not_ring_is_found_all_the_same() {
    let folder = Folder::new();
    let store = folder.open();
    commit(&store, Durability::Relaxed, insert("a", "{}")).await.unwrap();
    let mut watch = store.watch(&key("").tenant, "queue");
    let mute = rusqlite::Connection::open(folder.path()).unwrap();
    mute.execute("UPDATE records SET rank = 7", []).unwrap();
    timeout(PATIENCE, watch.changed()).await.expect("the store looks by itself");
}

#[test]
fn many_make_the_file_at_once() {
    const ROUNDS: usize = 5;
    const OPENERS: usize = 8;
    for _ in 0..ROUNDS {
        let folder = Folder::new();
        let path = folder.path();
        let gate = std::sync::Barrier::new(OPENERS);
        std::thread::scope(|scope| {
            for _ in 0..OPENERS {
                scope.spawn(|| {
                    gate.wait();
                    Sqlite::open(&path, Options::default()).unwrap()
                });
            }
        });
    }
}

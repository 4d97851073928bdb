//! Several processes on one file, and processes that end or stand still in the middle.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{env, fs};

use afl_backends::WaitObserver;
use afl_store::fault::{Fault, FaultMoment, Faulty, at_write};
use afl_testbed::Process;
use rusqlite::Connection;
use tokio::time::timeout;

use super::*;

const STORE: &str = "AFL_TEST_CHILD_STORE";
const NAME: &str = "AFL_TEST_CHILD_NAME";
const ABORT: &str = "AFL_TEST_CHILD_ABORT";
const WRITES: usize = 12;
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts this program again, only to run [`child`].
fn start(folder: &Folder, name: &str, abort: Option<(u64, FaultMoment)>) -> Child {
    let mut command = again("processes::child");
    command.env(STORE, folder.path()).env(NAME, name);
    if let Some((write, moment)) = abort {
        let sign = match moment {
            FaultMoment::Before => "-",
            FaultMoment::After => "",
        };
        command.env(ABORT, format!("{sign}{write}"));
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it can be started again")
}

/// This program, only to run one test.
fn again(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program has a file"));
    command.args(["--exact", test, "--nocapture"]);
    command
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

const LOCKED: &str = "AFL_TEST_LOCKED_STORE";
const HOLDS: &str = "holds the lock";

/// Keeps the write lock until it is killed; does nothing unless started by another test.
#[test]
fn lock_holder() {
    let Ok(path) = env::var(LOCKED) else { return };
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    println!("{HOLDS}");
    loop {
        std::thread::park();
    }
}

/// A process that was stopped with the write lock in its hands.
fn stopped_holder(folder: &Folder) -> Process {
    let mut command = again("processes::lock_holder");
    command.env(LOCKED, folder.path()).stdout(Stdio::piped());
    let holder =
        Process::listening(&mut command, |child| Box::new(child.stdout.take().expect("it is piped")));
    holder.says(HOLDS);
    holder.stop();
    holder
}

fn assert_names(message: &str, holder: &Process) {
    let pid = holder.child.id();
    let (process, state) =
        (format!("process {pid} (`"), format!("is stopped; continue it with `kill -CONT {pid}`"));
    assert!(message.contains(&process) && message.contains(&state), "{message}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_process_that_holds_the_lock_is_named_and_writes_go_on_when_it_is_gone() {
    let folder = Folder::new();
    let (report, reports) = mpsc::channel();
    let on_wait = WaitObserver::new(move |error| report.send(error.to_string()).unwrap());
    let options = Options { on_wait, ..Options::default() };
    let store = Arc::new(Sqlite::open(&folder.path(), options).unwrap());

    let mut holder = stopped_holder(&folder);
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { commit(&store, Durability::Durable, insert("a", "{}")).await }
    });
    assert_names(&reports.recv_timeout(PATIENCE).expect("it is reported"), &holder);
    assert!(all(&store).await.unwrap().is_empty(), "reads go on");
    holder.kill();
    timeout(PATIENCE, waiting).await.expect("the write goes on").unwrap().unwrap();

    let holder = stopped_holder(&folder);
    for id in ["b", "c"] {
        let refused = commit(&store, Durability::Durable, insert(id, "{}")).await.unwrap_err();
        assert!(matches!(refused, StoreError::Locked { .. }), "{refused:?}");
        assert_names(&refused.to_string(), &holder);
    }
    assert_names(&reports.try_recv().expect("another holder is reported"), &holder);
    assert!(reports.try_recv().is_err(), "one holder is reported once");
}

/// The slow check alone would need two seconds for each round.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn another_handle_wakes_this_one_with_a_signal() {
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
    timeout(Duration::from_secs(10), rounds).await.expect("the signal arrives");
}

/// A writer keeps a list of the processes that wait; it must not miss one that came since.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_begins_to_wait_later_is_signalled_too() {
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
    timeout(Duration::from_secs(10), rounds).await.expect("every signal arrives");
}

#[tokio::test]
async fn no_wake_up_file_stays_behind() {
    let folder = Folder::new();
    let folder_of_files = PathBuf::from(format!("{}-wake", folder.path().display()));
    let files = || fs::read_dir(&folder_of_files).unwrap().count();
    let store = folder.open();
    drop(store.watch(&key("").tenant, "queue"));
    assert_eq!(files(), 1);
    drop(store);
    assert_eq!(files(), 0, "its owner removes it");

    // The file of a killed process is not locked.
    fs::write(folder_of_files.join("queue.0123456789abcdef"), "").unwrap();
    let other = folder.open();
    commit(&other, Durability::Relaxed, insert("a", "{}")).await.unwrap();
    assert_eq!(files(), 0, "the process that would signal it removes it");
}

#[tokio::test]
async fn a_write_without_a_signal_is_found_all_the_same() {
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

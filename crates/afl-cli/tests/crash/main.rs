//! F1, F3: the process is killed before and after every commit, those of recovery included. Every restart finishes
//! with the same canonical state, and each piece of work is accepted once.
//!
//! The test starts itself as the process that dies. `std::process::abort` runs no destructor and flushes nothing.

mod scenario;
mod upkeep;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus};

use afl_store::fault::Moment;
use scenario::{Crash, DIRECTORY, Finished, STRIKE};
use tempfile::TempDir;

/// How the child is told what to do; without it the test of that name does nothing.
#[test]
fn child() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let strike = std::env::var(STRIKE).ok();
        scenario::run(Path::new(&directory), strike.map(|text| Crash::parse(&text)));
    }
}

// covers: RT-14-b, RT-1-e, EVT-8-a
#[test]
fn f1_a_crash_at_any_commit_changes_nothing() {
    let clean = undisturbed();
    assert!(clean.writes > 20, "only {} commits to strike at", clean.writes);
    for crash in crashes(clean.writes) {
        let world = directory();
        assert!(!child_process(world.path(), Some(crash)).success(), "{crash:?} did not strike");
        assert!(child_process(world.path(), None).success(), "{crash:?}");
        compare(&finished(world.path()), &clean, &format!("{crash:?}"));
    }
}

// F3: a second crash strikes in the recovery from the first.
#[test]
fn f3_a_crash_in_recovery_changes_nothing() {
    let clean = undisturbed();
    for first in crashes(clean.writes).filter(|crash| crash.moment == Moment::After) {
        for write in 1..=clean.writes {
            // What is before one commit is after the one before it, so one moment is enough for pairs.
            let second = Crash { write, moment: Moment::After };
            let world = directory();
            assert!(!child_process(world.path(), Some(first)).success(), "{first:?} did not strike");
            let is_over = child_process(world.path(), Some(second)).success();
            assert!(is_over || child_process(world.path(), None).success(), "{first:?}, {second:?}");
            compare(&finished(world.path()), &clean, &format!("{first:?}, {second:?}"));
            if is_over {
                // The recovery has fewer commits than this.
                break;
            }
        }
    }
}

/// In memory where there is such a place: a process that dies loses nothing that it wrote, so no disk is needed.
fn directory() -> TempDir {
    let memory = TempDir::new_in("/dev/shm");
    memory.or_else(|_| TempDir::new()).expect("a directory can be made")
}

fn crashes(writes: u64) -> impl Iterator<Item = Crash> {
    let moments = [Moment::Before, Moment::After];
    (1..=writes).flat_map(move |write| moments.map(|moment| Crash { write, moment }))
}

fn undisturbed() -> Finished {
    let world = directory();
    assert!(child_process(world.path(), None).success());
    let finished = finished(world.path());
    let keys: BTreeSet<&String> = finished.accepted.iter().collect();
    assert_eq!(keys.len(), finished.accepted.len(), "without a crash each piece of work is done once");
    finished
}

fn compare(found: &Finished, clean: &Finished, when: &str) {
    assert_eq!(found.canonical, clean.canonical, "{when}");
    // An agent that died before it was told settles again after the restart; the store takes one of them.
    let once: BTreeSet<&String> = found.accepted.iter().collect();
    assert!(clean.accepted.iter().all(|key| once.contains(key)), "{when}: {:?}", found.accepted);
    assert_eq!(once.len(), clean.accepted.len(), "{when}: {:?}", found.accepted);
}

fn child_process(directory: &Path, crash: Option<Crash>) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().expect("a test has a file"));
    command.args(["--exact", "child", "--test-threads=1"]).env(DIRECTORY, directory);
    if let Some(crash) = crash {
        command.env(STRIKE, crash.to_string());
    }
    command.output().expect("the test can be started").status
}

fn finished(directory: &Path) -> Finished {
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
    Finished {
        canonical: read(scenario::CANONICAL),
        writes: read(scenario::WRITES).trim().parse().unwrap_or_default(),
        accepted: read(scenario::WORK).lines().map(str::to_owned).collect(),
    }
}

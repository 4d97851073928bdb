//! F1, F3: the process is killed before and after every commit, those of recovery included. Every restart finishes
//! with the same canonical state, and each piece of work is accepted once.
//!
//! The test starts itself as the process that dies. `std::process::abort` runs no destructor and flushes nothing. This
//! process continues from the records it left.

mod constructs;
mod programs;
mod scenario;
mod upkeep;
mod world;

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

use afl_store::fault::FaultMoment;
use programs::{End, PROGRAMS, Program};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use scenario::{Crash, Finished};
use tempfile::TempDir;
use world::Line;

const DIRECTORY: &str = "AFL_CRASH_DIRECTORY";
const PROGRAM: &str = "AFL_CRASH_PROGRAM";
const STRIKE: &str = "AFL_CRASH_STRIKE";

const MOMENTS: [FaultMoment; 2] = [FaultMoment::Before, FaultMoment::After];

/// The process that dies; where nothing says how, the test of that name does nothing.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let said = |name: &str| std::env::var(name).expect("the child is told all");
    // An unused core dump would take longer to write than all the rest.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).expect("less is allowed");
    let crash = Crash::parse(&said(STRIKE));
    scenario::run(Path::new(&directory), programs::named(&said(PROGRAM)), Some(crash));
}

macro_rules! each {
    ($check:ident: $($program:ident)*) => {
        $(#[test]
        fn $program() {
            super::$check(super::programs::named(stringify!($program)));
        })*
    };
}

// covers: RT-14-b, RT-1-e, EVT-8-a
mod f1_a_crash_at_any_commit_changes_nothing {
    each! { strike_once: blocks foreach catches mixins scripts policies once fails large wide }
}

// F3: a second crash strikes in the recovery from the first.
mod f3_a_crash_in_recovery_changes_nothing {
    each! { strike_twice: blocks catches mixins once fails large }
}

// Large values and long evaluations are struck between their parts, too.
#[test]
fn changes_too_large_for_one_commit_take_several_and_give_the_same_result() {
    for program in PROGRAMS.iter().filter(|program| program.limits.is_some()) {
        let parts = undisturbed(program);
        let whole = scenario::run(directory().path(), &Program { limits: None, ..*program }, None);
        let (many, few) = (parts.writes, whole.writes);
        assert!(many >= few + 5, "{} has {many} commits in place of {few}", program.name);
        compare(&parts, &whole, program.name);
    }
}

fn strike_once(program: &Program) {
    let clean = undisturbed(program);
    for crash in crashes(clean.writes) {
        let world = directory();
        assert_eq!(die(world.path(), program, crash), Death::Struck, "{crash}");
        compare(&scenario::run(world.path(), program, None), &clean, &format!("{crash}"));
    }
}

fn strike_twice(program: &Program) {
    let clean = undisturbed(program);
    let mut firsts = Seen::default();
    for first in crashes(clean.writes) {
        let left = directory();
        assert_eq!(die(left.path(), program, first), Death::Struck, "{first}");
        if !firsts.insert(first, left.path()) {
            continue;
        }
        let mut seconds = Seen::default();
        // It ends with the first write that the recovery does not come to.
        for second in crashes(u64::MAX) {
            let world = directory();
            copy(left.path(), world.path());
            let death = die(world.path(), program, second);
            if death == Death::Escaped || seconds.insert(second, world.path()) {
                let finished = scenario::run(world.path(), program, None);
                compare(&finished, &clean, &format!("{first}, {second}"));
            }
            if death == Death::Escaped {
                break;
            }
        }
    }
}

/// The records after the crash before: they equal those before this write, unless another process wrote in between.
#[derive(Default)]
struct Seen(Option<Vec<Line>>);

impl Seen {
    /// Keeps the records, and says whether they are new.
    fn insert(&mut self, crash: Crash, directory: &Path) -> bool {
        let done = Some(world::lines(directory));
        let is_same = crash.moment == FaultMoment::Before && self.0 == done;
        self.0 = done;
        !is_same
    }
}

fn crashes(writes: u64) -> impl Iterator<Item = Crash> {
    (1..=writes).flat_map(move |write| MOMENTS.map(|moment| Crash { write, moment }))
}

fn undisturbed(program: &Program) -> Finished {
    let clean = scenario::run(directory().path(), program, None);
    let failed = clean.run.error.as_ref().map(|error| error.path.as_str());
    match program.end {
        End::Outputs(outputs) => assert_eq!((&clean.outputs, failed), (&outputs(), None)),
        End::FailedAt(path) => assert_eq!(failed, Some(path)),
    }
    assert!(clean.writes >= 8, "only {} commits to strike at", clean.writes);
    clean
}

fn compare(found: &Finished, clean: &Finished, when: &str) {
    assert_eq!(found.canonical, clean.canonical, "{when}");
    assert_eq!(found.accepted, clean.accepted, "{when}");
    assert_eq!(found.done, clean.done, "{when}");
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Death {
    Struck,
    /// It came to its end before the write that it was to die at.
    Escaped,
}

fn die(directory: &Path, program: &Program, crash: Crash) -> Death {
    let mut command = Command::new(std::env::current_exe().expect("a test has a file"));
    command.args(["--exact", "child", "--test-threads=1"]);
    command.env(DIRECTORY, directory).env(PROGRAM, program.name).env(STRIKE, crash.to_string());
    let output = command.output().expect("the test can be started");
    if output.status.success() {
        return Death::Escaped;
    }
    let killed_by = output.status.signal();
    assert_eq!(
        killed_by,
        Some(Signal::ABORT.as_raw()),
        "{crash}: {}",
        String::from_utf8_lossy(&output.stdout)
    );
    Death::Struck
}

/// In memory where there is such a place: a process that dies loses nothing that it wrote, so no disk is needed.
fn directory() -> TempDir {
    let memory = TempDir::new_in("/dev/shm");
    memory.or_else(|_| TempDir::new()).expect("a directory can be made")
}

/// Copies the folder of a dead process, so that more than one process can continue it.
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("it is ours") {
        let (from, name) = entry.map(|entry| (entry.path(), entry.file_name())).expect("it is ours");
        let to = to.join(name);
        if from.is_dir() {
            fs::create_dir(&to).expect("there is room");
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).expect("there is room");
        }
    }
}

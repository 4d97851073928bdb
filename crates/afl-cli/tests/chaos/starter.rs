//! The process that starts runs. It is killed as often as the others, and resumes at the position it is given.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use afl_runtime::{RunId, StartRequest, compile};

use crate::orders::{Order, PROGRAM};
use crate::site::{Site, service};

const STORE: &str = "AFL_CHAOS_STORE";
const STARTED: &str = "AFL_CHAOS_STARTED";
const SEED: &str = "AFL_CHAOS_SEED_OF_ORDERS";
const RUNS: &str = "AFL_CHAOS_RUNS";

/// So many runs are open at a time, so that the starting takes as long as the work.
const OPEN: usize = 250;

/// Without what its parent sets this test is nothing.
#[tokio::test]
async fn starter() {
    let Ok(url) = env::var(STORE) else { return };
    let number = |name: &str| env::var(name).expect("the parent sets it").parse().expect("a number");
    let started = env::var_os(STARTED).expect("the parent sets it");
    start_all(&url, Path::new(&started), number(SEED), number(RUNS) as usize).await;
}

pub(crate) fn command(site: &Site, seed: u64, runs: usize) -> Command {
    let mut command = Command::new(env::current_exe().expect("a test has a file"));
    command.args(["--exact", "starter::starter", "--test-threads=1"]);
    command.env(STORE, &site.url).env(STARTED, started_file(site));
    command.env(SEED, seed.to_string()).env(RUNS, runs.to_string());
    command.stdin(Stdio::null());
    command
}

/// The runs that were acknowledged, by their numbers.
pub(crate) fn started(site: &Site) -> BTreeMap<usize, RunId> {
    read(&started_file(site))
}

fn started_file(site: &Site) -> std::path::PathBuf {
    site.path("started")
}

fn read(path: &Path) -> BTreeMap<usize, RunId> {
    let mut started = BTreeMap::new();
    let Ok(text) = fs::read_to_string(path) else { return started };
    for line in text.lines() {
        let (nth, run) = line.split_once(' ').expect("a number and a run");
        let run = RunId(run.into());
        let before = started.insert(nth.parse().expect("a number"), run.clone());
        assert!(before.is_none_or(|before| before == run), "order {nth} is two runs");
    }
    started
}

async fn start_all(url: &str, file: &Path, seed: u64, runs: usize) {
    let service = service(url).await;
    let program = compile("chaos.afl", PROGRAM).expect("it compiles");
    let hash = service.publish(&program).await.expect("it is published");
    let mut started = read(file);
    let mut log = OpenOptions::new().create(true).append(true).open(file).expect("it can be written");
    for nth in 0..runs {
        if started.contains_key(&nth) {
            continue;
        }
        if let Some(early) = nth.checked_sub(OPEN) {
            service.ended(&started[&early]).await.expect("the store works");
        }
        let order = Order::nth(seed, nth);
        let request = StartRequest {
            workflow: Some(order.workflow().to_owned()),
            inputs: order.inputs(),
            idempotency_key: Some(format!("order-{nth}")),
            ..StartRequest::new(hash)
        };
        let run = service.start(request).await.expect("the store works").run;
        // In one go, so that no half of it is seen.
        log.write_all(format!("{nth} {run}\n").as_bytes()).expect("it can be written");
        started.insert(nth, run);
    }
}

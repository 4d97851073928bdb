//! Chaos: a process that starts runs and three agents with real handlers, all of them killed at random moments and
//! started again, or stopped for longer than a lease. Every run ends as the oracle says, work that may happen once
//! happens at most once, and the store keeps every promise.
//!
//! `AFL_CHAOS_SEED=7` repeats seed 7: the same runs, and the same faults after the same amount of work.

#![cfg(unix)]

mod marks;
mod orders;
mod site;
mod starter;
mod troop;

use std::collections::BTreeMap;
use std::env;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use afl_engine::run::{Run, RunStatus};
use afl_runtime::agent::UNCERTAIN;
use afl_runtime::{RunId, Service};
use tokio::time::timeout;

use marks::Marks;
use orders::Order;
use site::Site;
use troop::Troop;

/// Much longer than it takes, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(4);

// covers: SDK-1-a, SDK-8.7-e, XR-3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chaos_every_run_ends_as_it_should_on_sqlite() {
    survive(&Site::sqlite(), 1_200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chaos_every_run_ends_as_it_should_on_postgres() {
    survive(&Site::postgres().await, 800).await;
}

async fn survive(site: &Site, runs: usize) {
    let seed = seed();
    println!("AFL_CHAOS_SEED={seed}");
    let service = site::service(&site.url).await;
    let mut troop = Troop::new(site, seed, runs);
    let ended = timeout(PATIENCE, async {
        tokio::select! {
            ended = all_ended(&service, site, runs) => ended,
            () = troop.torment() => unreachable!("it goes on for ever"),
        }
    });
    let Ok(ended) = ended.await else { panic!("not all runs ended: {:#?}", service.stats().await) };
    troop.calm();
    let marks = Marks::read(&site.marks());
    let mut decided = 0;
    for (nth, run) in ended.iter().filter(|(_, run)| run.status == RunStatus::Failed) {
        decide(site, run, &Order::nth(seed, *nth), &marks);
        service.ended(&run.id).await.expect("the store works");
        decided += 1;
    }
    troop.dismiss();
    let (kills, freezes) = (troop.kills, troop.freezes);
    assert!(kills > 15 && freezes > 0, "{kills} kills and {freezes} freezes are no chaos");

    let marks = Marks::read(&site.marks());
    for (nth, run) in &ended {
        judge(&service, &run.id, &Order::nth(seed, *nth), &marks).await;
    }
    let again = marks.repeated();
    println!(
        "{runs} runs, {kills} kills, {freezes} freezes, {again} pieces of work done again, {decided} decided"
    );
    assert_eq!(marks.runs().len(), runs, "work was done for runs that are not there");
    let said = afl(site, &["doctor"]);
    assert_eq!(said.trim(), format!("checked {runs} runs: all promises hold"));
}

/// Given, or different each time.
fn seed() -> u64 {
    if let Ok(seed) = env::var("AFL_CHAOS_SEED") {
        return seed.parse().expect("AFL_CHAOS_SEED is a number");
    }
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs() % 1_000_000
}

/// Every run that was started, when all are started and at an end.
async fn all_ended(service: &Service, site: &Site, runs: usize) -> BTreeMap<usize, Run> {
    let mut changes = service.watch_runs();
    let started = loop {
        let started = starter::started(site);
        if started.len() == runs {
            break started;
        }
        changes.changed().await;
    };
    let mut ended = BTreeMap::new();
    for (nth, run) in started {
        ended.insert(nth, service.ended(&run).await.expect("the store works"));
    }
    ended
}

/// A person finds out whether work happened that may happen once only, and says so.
fn decide(site: &Site, run: &Run, order: &Order, marks: &Marks) {
    let failure = run.error.as_ref().expect("it failed");
    assert!(failure.kind == UNCERTAIN && matches!(order, Order::Paid(_)), "{order:?}: {failure}");
    let (id, path) = (run.id.to_string(), failure.path.as_str());
    match marks.once(&run.id) {
        0 => afl(site, &["task", "retry", &id, path]),
        _ => afl(site, &["task", "done", &id, path, "--result", &order.outputs().to_string()]),
    };
}

async fn judge(service: &Service, id: &RunId, order: &Order, marks: &Marks) {
    let run = service.run(id).await.expect("it is there");
    assert_eq!((run.status, &run.error), (RunStatus::Completed, &None), "{order:?}, run {id}");
    let outputs = service.outputs(id).await.expect("it is there");
    assert_eq!(serde_json::Value::Object(outputs), order.outputs(), "{order:?}, run {id}");
    assert_eq!(marks.marked_steps(id), order.marked_steps(), "{order:?}, run {id}");
    assert_eq!(marks.once(id), usize::from(matches!(order, Order::Paid(_))), "{order:?}, run {id}");
}

fn afl(site: &Site, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_afl"));
    let output = command.args(arguments).args(["--store", &site.url]).output().expect("afl runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

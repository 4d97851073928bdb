//! Chaos: a process that starts runs and three agents with real handlers, all of them killed at random moments and
//! started again, or stopped for longer than a lease. Every run ends as the oracle says, work that may happen once
//! happens at most once, and the store keeps every promise.
//!
//! `AFL_CHAOS_SEED=7` does the harm of seed 7 again: what is run, and who is hit after how much work.

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
use afl_runtime::{Again, RunId, Service};
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
    let retried = retry_what_did_not_happen(&service, &ended, &Marks::read(&site.marks())).await;
    troop.dismiss();
    let (kills, freezes) = (troop.kills, troop.freezes);
    assert!(kills > 15 && freezes > 0, "{kills} kills and {freezes} freezes are no chaos");

    let marks = Marks::read(&site.marks());
    let mut uncertain = 0;
    for (nth, run) in &ended {
        let order = Order::nth(seed, *nth);
        let run = service.run(&run.id).await.expect("it is there");
        uncertain += usize::from(judge(&service, &run, &order, &marks).await == End::Uncertain);
    }
    println!(
        "{runs} runs, {kills} kills, {freezes} freezes; {} pieces of work done again; {uncertain} runs left to a person, {retried} tried again",
        marks.repeated()
    );
    assert_eq!(marks.runs().len(), runs, "work was done for runs that are not there");
    examine(site, runs);
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

/// A person who knows that work did not happen has it done.
async fn retry_what_did_not_happen(service: &Service, ended: &BTreeMap<usize, Run>, marks: &Marks) -> usize {
    let undone = |run: &&Run| run.status == RunStatus::Failed && marks.once(&run.id) == 0;
    let undone: Vec<&RunId> = ended.values().filter(undone).map(|run| &run.id).collect();
    for run in &undone {
        service.retry(run, &Again::Run).await.expect("it failed");
    }
    for run in &undone {
        let run = service.ended(run).await.expect("the store works");
        assert_eq!(run.status, RunStatus::Completed, "{:?}", run.error);
    }
    undone.len()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    AsOrdered,
    /// The payment happened, and whoever did it was lost before he could tell.
    Uncertain,
}

async fn judge(service: &Service, run: &Run, order: &Order, marks: &Marks) -> End {
    let id = &run.id;
    let (once, expected_once) = (marks.once(id), usize::from(matches!(order, Order::Paid(_))));
    assert_eq!(marks.marked_steps(id), order.marked_steps(), "{order:?}, run {id}");
    assert_eq!(once, expected_once, "{order:?}, run {id}");
    match (run.status, &run.error) {
        (RunStatus::Completed, None) => {
            let outputs = service.outputs(id).await.expect("it is there");
            assert_eq!(serde_json::Value::Object(outputs), order.outputs(), "{order:?}, run {id}");
            End::AsOrdered
        }
        (RunStatus::Failed, Some(failure)) if failure.kind == UNCERTAIN && expected_once == 1 => {
            End::Uncertain
        }
        (status, error) => panic!("{order:?}, run {id}: {status:?} {error:?}"),
    }
}

fn examine(site: &Site, runs: usize) {
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_afl"));
    let doctor = doctor.args(["doctor", "--store", &site.url]).output().expect("afl runs");
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.status.success(), "{said}{}", String::from_utf8_lossy(&doctor.stderr));
    assert_eq!(said.trim(), format!("checked {runs} runs: all promises hold"));
}

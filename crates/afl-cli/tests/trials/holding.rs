//! F4, F5: the process that holds a task, a process that lost it, and the operations open to each.

use std::time::Duration;

use afl_engine::run::RunStatus;
use afl_runtime::agent::UNCERTAIN;
use afl_store::store::Store;
use rustix::process::Signal;
use tokio::time::sleep;

use crate::actor::{ACCEPTED, Order};
use crate::deaths::{by, times, world};
use crate::standstill::stop_between_commits;
use crate::world::{LEASE, backend, tenant, wait_for_deaths};

// covers: XR-4
#[tokio::test(flavor = "multi_thread")]
async fn f4_every_word_of_a_zombie_is_refused_although_its_heir_has_its_name() {
    let world = world();
    let run = world.start("Marked", &["n=1"]);
    let mut zombie = world.holder("twin");
    zombie.0.stop();
    let mut heir = world.holder("twin");
    zombie.0.signal(Signal::CONT);
    let step = world.task(&run).await.step_id.clone();
    let stored = async || {
        let store = Store::new(backend(&world.store()), tenant());
        let log = world.service.task_log(&run, &step, None).await.unwrap();
        (store.task(&run, &step).await.unwrap(), store.event(&run, &step).await.unwrap(), log)
    };
    let before = stored().await;
    for order in Order::ALL {
        let answer = zombie.told(order);
        assert!(answer.starts_with("the lease of `Marked.mark` is lost"), "{order:?}: {answer}");
        assert_eq!(stored().await, before, "{order:?}");
    }
    for order in [Order::Extend, Order::Log, Order::Update, Order::Complete] {
        assert_eq!(heir.told(order), ACCEPTED, "{order:?}");
    }
    for order in Order::ALL {
        let answer = zombie.told(order);
        assert!(answer.starts_with("the lease of `Marked.mark` is lost"), "{order:?}: {answer}");
    }
    world.service.turn().await.unwrap();
    assert_eq!(by(&world, &run).await, "holder");
    world.examine();
}

#[tokio::test(flavor = "multi_thread")]
async fn f5_an_agent_that_stood_still_for_two_leases_finds_its_work_in_other_hands() {
    let world = world();
    let plain = world.start("Marked", &["n=1"]);
    let once = world.start("MarkedOnce", &["n=1"]);
    let first = world.agent("first", &["--handlers", "slow.toml"]);
    world.leaves("marks", 2).await;
    stop_between_commits(&first, &world.store());
    // This is the fault itself: its handlers work on, and its heartbeats stop.
    sleep(2 * LEASE).await;
    let second = world.agent("second", &["--handlers", "quick.toml"]);
    assert_eq!(by(&world, &plain).await, "quick");
    let failure = world.ended(&once).await.error.unwrap();
    assert_eq!(failure.kind, UNCERTAIN, "{failure}");
    world.write("go", "");
    first.signal(Signal::CONT);
    first.says("lost to another agent");
    first.says("lost to another agent");
    first.end();
    second.end();
    assert_eq!((times(&world, &plain), times(&world, &once)), (2, 1));
    assert_eq!(by(&world, &plain).await, "quick");
    assert_eq!(world.ended(&once).await.status, RunStatus::Failed);
    world.examine();
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn f5_processes_name_the_stopped_one_that_holds_the_lock_of_the_store_and_go_on_when_it_is_gone() {
    let world = world();
    let run = world.start("Marked", &["n=1"]);
    let agent = world.agent("only", &["--handlers", "slow.toml"]);
    world.leaves("marks", 1).await;
    let mut holder = world.lock_holder();
    holder.stop();
    let named = format!("process {} (`", holder.child.id());
    let line = agent.says(&named);
    assert!(line.starts_with("warning: ") && line.contains("is stopped"), "{line}");
    let start = world.afl(&["start", "program.afl", "--workflow", "Marked", "-i", "n=2"]);
    let said = String::from_utf8_lossy(&start.stderr);
    let lines: Vec<&str> = said.lines().filter(|line| line.contains(&named)).collect();
    assert!(lines[0].starts_with("warning: ") && lines[1].starts_with("error: "), "{said}");
    holder.kill();
    world.write("go", "");
    assert_eq!(by(&world, &run).await, "slow");
    agent.end();
    world.examine();
}

// covers: XR-5
#[tokio::test(flavor = "multi_thread")]
async fn t17_work_that_takes_longer_than_its_lease_stays_with_its_agent() {
    let world = world();
    let run = world.start("Marked", &["n=1"]);
    let first = world.agent("first", &["--handlers", "slow.toml"]);
    world.leaves("marks", 1).await;
    let second = world.agent("second", &["--handlers", "quick.toml"]);
    let granted = world.task(&run).await.lease.as_ref().unwrap().expires;
    let leases = i64::try_from(3 * LEASE.as_millis()).unwrap();
    while world.task(&run).await.lease.as_ref().unwrap().expires.since(granted).0 < leases {
        sleep(Duration::from_millis(50)).await;
    }
    world.write("go", "");
    assert_eq!(by(&world, &run).await, "slow");
    assert_eq!((times(&world, &run), world.task(&run).await.token), (1, 1));
    first.end();
    second.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn f5_an_agent_that_cannot_extend_its_lease_stops_its_handler_before_another_begins() {
    let world = world();
    let run = world.start("Marked", &["n=1"]);
    let first = world.agent("first", &["--handlers", "slow.toml"]);
    let pids = world.leaves("pids", 2).await;
    // No process can write: no heartbeat arrives, and no other agent claims.
    let lock = rusqlite::Connection::open(world.store()).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    wait_for_deaths(&pids);
    lock.execute_batch("ROLLBACK").unwrap();
    first.says("lost to another agent");
    world.write("go", "");
    assert_eq!(by(&world, &run).await, "slow");
    assert_eq!(times(&world, &run), 2);
    first.end();
    world.examine();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_ends_work_with_all_its_processes() {
    let world = world();
    let run = world.start("Marked", &["n=1"]);
    let agent = world.agent("only", &["--handlers", "slow.toml"]);
    let pids = world.leaves("pids", 2).await;
    world.said(&["cancel", &run.to_string()]);
    agent.says("canceled");
    wait_for_deaths(&pids);
    assert_eq!(world.ended(&run).await.status, RunStatus::Canceled);
    agent.end();
    world.examine();
}

//! Which worker holds a task, and the end of work whose lease was lost.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use afl_agents::handler::{Call, blocking, concurrent};
use afl_agents::registration::Registration;
use afl_agents::worker::{Profile, Worker, WorkerError, WorkerEvent};
use afl_agents::{Hosts, HostsConfig, Registry, Roots};
use afl_runtime::{Millis, Service, TaskQuery};
use afl_store::record::Tenant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::spy::Hearing;
use crate::world::{World, object, paid, work};

// covers: XR-5
#[tokio::test(start_paused = true)]
async fn a_task_longer_than_its_lease_stays_with_its_holder_in_every_profile() {
    for profile in Profile::ALL.iter().copied() {
        let world = World::simulated(Hearing::Good);
        let holder = world.worker_with(profile, |config| config.http_port = None);
        let (begun, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tell, wait) = (begun.clone(), go.clone());
        holder.register(
            "ProcessPayment",
            concurrent(move |_: Call| {
                let (tell, wait) = (tell.clone(), wait.clone());
                async move {
                    tell.notify_one();
                    wait.notified().await;
                    Ok(paid())
                }
            }),
        );
        let other = world.restarted().worker(Profile::Poller);
        other.register(
            "ProcessPayment",
            blocking(|_| Ok(object(json!({"transaction_id": "stolen", "status": "x"})))),
        );
        let run = world.checkout().await;
        let query = TaskQuery { run: Some(run.clone()), limit: 1, ..TaskQuery::default() };
        let working = work(&holder);
        begun.notified().await;
        // Three leases long.
        for _ in 0..18 {
            world.pass(10_000).await;
            // The extended lease shows that the worker noticed the time.
            loop {
                let task = world.service.tasks(&query).await.unwrap().tasks.remove(0);
                if task.lease.as_ref().expect("it is held").expires == world.clock.now().plus(Millis(60_000))
                {
                    break;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            assert_eq!(other.poll_once().await.unwrap(), 0, "{profile:?}");
        }
        go.notify_one();
        assert_eq!(world.receipt(&run).await, "txn-12345", "{profile:?}");
        let task = world.service.tasks(&query).await.unwrap().tasks.remove(0);
        assert_eq!((task.token, task.deliveries), (1, 1), "{profile:?}");
        working.stop().await;
    }
}

/// A shell with a child of its own; both wait for ever.
const TREE: &str = "#!/bin/sh\nsleep 1000 &\necho $! $$ > FOLDER/pids\nwait\n";

struct Tree {
    folder: TempDir,
    name: &'static str,
}

impl Tree {
    fn new() -> Self {
        Self::of("tree", TREE)
    }

    /// A program, or a module of Python.
    fn of(name: &'static str, text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let program = folder.path().join(name);
        fs::write(&program, text.replace("FOLDER", real.to_str().unwrap())).unwrap();
        let pipe = Command::new("mkfifo").arg(folder.path().join("pids")).status().unwrap();
        assert!(pipe.success());
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, name }
    }

    /// Lets the worker do payments with it.
    fn given_to(&self, worker: Worker) -> Worker {
        worker.with_hosts(self.hosts()).with_registrations(vec![self.registration()])
    }

    fn hosts(&self) -> Arc<Hosts> {
        let roots = Roots::new([self.folder.path()]).unwrap();
        Arc::new(Hosts::new(HostsConfig { roots, ..HostsConfig::default() }).unwrap())
    }

    fn registration(&self) -> Registration {
        let path = self.folder.path().canonicalize().unwrap().join(self.name);
        let scheme = if path.extension().is_some() { "file://" } else { "exec:" };
        let uri = format!("{scheme}{}", path.display());
        Registration { timeout_ms: 600_000, ..Registration::new("billing.ProcessPayment", uri) }
    }

    /// Both processes, when they are there: a pipe blocks until its other end is open.
    async fn pids(&self) -> [i32; 2] {
        let pipe = self.folder.path().join("pids");
        let told = tokio::task::spawn_blocking(|| fs::read_to_string(pipe).unwrap()).await.unwrap();
        let pids: Vec<i32> = told.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        pids.try_into().unwrap()
    }
}

/// Whether a process is gone, or is within this time.
fn is_dead(pid: i32, within: Duration) -> bool {
    let Ok(fd) = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()) else { return true };
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    let span = Timespec { tv_sec: within.as_secs().cast_signed(), tv_nsec: 0 };
    retry_on_intr(|| poll(&mut fds, Some(&span))).unwrap() == 1
}

async fn ended(told: &mut mpsc::Receiver<WorkerEvent>) {
    while !matches!(told.recv().await.expect("it runs"), WorkerEvent::Ended { .. }) {}
}

/// Handlers that do not end when they are asked to.
const DEAF_TREE: &str = "#!/bin/sh\ntrap '' TERM\nsleep 1000 &\necho $! $$ > FOLDER/pids\nwait\n";
const DEAF_PYTHON: &str = r#"
import os, subprocess, time
def handle(payload, ctx):
    child = subprocess.Popen(["sleep", "1000"])
    open("FOLDER/pids", "w").write(f"{child.pid} {os.getpid()}")
    while True:
        time.sleep(1)
"#;

// covers: XR-6
#[tokio::test(start_paused = true)]
async fn f5_a_worker_that_cannot_extend_its_lease_has_ended_its_processes_when_another_begins() {
    for (name, text, lease_ms) in [("tree", DEAF_TREE, 14_000), ("deaf.py", DEAF_PYTHON, 4_000)] {
        let (world, tree) = (World::simulated(Hearing::Good), Tree::of(name, text));
        let (tell, mut told) = mpsc::channel(100);
        let lone = world.worker_with(Profile::Poller, |config| config.lock_duration_ms = lease_ms);
        let lone = tree.given_to(lone).with_listener(tell);
        let run = world.checkout().await;
        let working = work(&lone);
        // The clock stands still while a thread waits for the pipe; afterwards time passes when nothing else happens.
        let pids = tree.pids().await;
        let claimed = Instant::now();
        world.spy.go_away();
        ended(&mut told).await;
        let lease = Duration::from_millis(lease_ms);
        assert!(claimed.elapsed() < lease, "{name}: it was stopped after {:?}", claimed.elapsed());
        // A killed process is dead as soon as the system gets to it.
        assert_eq!(pids.map(|pid| is_dead(pid, Duration::from_mins(1))), [true, true], "{name}");

        // Another process, which reaches the store, gets the task when the lease is over.
        let near = Service::new(world.spy.inner(), Tenant::new(Tenant::LOCAL).unwrap());
        let other = Worker::new(near.clone(), lone.config().clone()).unwrap();
        other.register("ProcessPayment", blocking(|_| Ok(paid())));
        assert_eq!(other.poll_once().await.unwrap(), 0, "{name}: it is not his yet");
        world.clock.advance(lease.into());
        near.sweep_once().await.unwrap();
        assert_eq!(other.poll_once().await.unwrap(), 1, "{name}");
        assert_eq!(near.outputs(&run).await.unwrap()["receipt"], "txn-12345", "{name}");
        drop(working.stop);
        working.done.abort();
    }
}

#[tokio::test]
async fn g4_a_lease_too_short_to_stop_a_handler_is_refused_by_name() {
    let tree = Tree::of("tree", TREE);
    for (name, least_ms) in [("tree", 14_000), ("deaf.py", 4_000)] {
        let (world, tree) = (World::new(), Tree::of(name, TREE));
        let short = world.worker_with(Profile::Poller, |config| config.lock_duration_ms = least_ms - 1);
        let refused = tree.given_to(short).poll_once().await.unwrap_err();
        let WorkerError::Lease(short) = &refused else { panic!("{name}: {refused}") };
        assert_eq!((&*short.name, short.least_ms), ("billing.ProcessPayment", least_ms), "{refused}");
        let enough = world.worker_with(Profile::Poller, |config| config.lock_duration_ms = least_ms);
        assert_eq!(tree.given_to(enough).poll_once().await.unwrap(), 0, "{name}");
    }
    let world = World::new();
    let brief = world.worker_with(Profile::Poller, |config| config.lock_duration_ms = 1_999);
    brief.register("ProcessPayment", blocking(|_| Ok(paid())));
    assert!(matches!(brief.poll_once().await, Err(WorkerError::Lease(_))));

    // The store may have handlers for other agents.
    let (tell, mut told) = mpsc::channel(100);
    let registry = Registry::new(&world.service);
    registry.register(tree.registration()).await.unwrap();
    let agent = world.worker_with(Profile::Registry, |config| config.lock_duration_ms = 5_000);
    let agent = agent.with_hosts(tree.hosts()).with_listener(tell);
    let run = world.checkout().await;
    assert_eq!(agent.poll_once().await.unwrap(), 0, "it leaves the work to others");
    assert_eq!(agent.registered_names(), Vec::<String>::new());
    let WorkerEvent::Unfit(short) = told.recv().await.unwrap() else { panic!("another event came first") };
    assert_eq!(
        short.to_string(),
        "a lease of 5000 ms is too short for the handler of `billing.ProcessPayment`, which needs 6000 ms to stop: \
         it must be at least 14000 ms"
    );
    let query = TaskQuery { run: Some(run), limit: 1, ..TaskQuery::default() };
    assert_eq!(world.service.tasks(&query).await.unwrap().tasks[0].token, 0);
}

// covers: XR-14
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_ends_the_whole_tree_of_processes_of_a_task() {
    let (world, tree) = (World::new(), Tree::new());
    let (tell, mut told) = mpsc::channel(100);
    let worker = world.worker_with(Profile::Service, |config| {
        config.http_port = None;
        config.lock_extend_interval_ms = 50;
    });
    let worker = tree.given_to(worker).with_listener(tell);
    let run = world.checkout().await;
    let working = work(&worker);
    let pids = tree.pids().await;
    world.service.cancel(&run).await.unwrap();
    ended(&mut told).await;
    // A killed process is dead as soon as the system gets to it.
    assert_eq!(pids.map(|pid| is_dead(pid, Duration::from_mins(1))), [true, true]);
    working.stop().await;
    assert_eq!(worker.counts().handled["billing.ProcessPayment"].canceled, 1);
}

// covers: XR-14
#[tokio::test(start_paused = true)]
async fn a_cancel_is_noticed_within_five_seconds_with_the_settings_of_the_documents() {
    for profile in Profile::ALL.iter().copied() {
        let world = World::simulated(Hearing::Good);
        let worker = world.worker_with(profile, |config| config.http_port = None);
        let begun = Arc::new(Notify::new());
        let tell = begun.clone();
        let (tell_heard, mut told) = mpsc::channel(1);
        worker.register(
            "ProcessPayment",
            concurrent(move |call: Call| {
                let (tell, heard) = (tell.clone(), tell_heard.clone());
                async move {
                    tell.notify_one();
                    call.context.stopped().await;
                    heard.send(Instant::now()).await.unwrap();
                    Ok(paid())
                }
            }),
        );
        let run = world.checkout().await;
        let working = work(&worker);
        begun.notified().await;
        let canceled = Instant::now();
        world.service.cancel(&run).await.unwrap();
        let heard = told.recv().await.unwrap();
        assert!(heard - canceled <= Duration::from_millis(5_001), "{profile:?}: {:?}", heard - canceled);
        working.stop().await;
    }
}

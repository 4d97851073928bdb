//! Processes of the tests that stand for agents at moments which `afl agent` cannot be stopped at.

use std::env;
use std::fs::OpenOptions;
use std::io::{Write as _, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use afl_agents::handler::{Call, Object, blocking};
use afl_agents::worker::{Config, Profile, Worker};
use afl_engine::time::Millis;
use afl_runtime::Service;
use afl_runtime::agent::{
    Claim, ClaimRequest, EventError, FacetFilter, LogLevel, LogLine, LogStream, Refusal,
};
use afl_store::fault::{BackendVerb, Fault, FaultMoment, Faulty};
use serde_json::json;

use crate::world::{LEASE, Process, World, backend, tenant};

const ROLE: &str = "AFL_TRIAL_ROLE";
const STORE: &str = "AFL_TRIAL_STORE";
const MARKS: &str = "AFL_TRIAL_MARKS";
/// The facet whose work an actor does, whatever its namespace.
pub(crate) const FACET: &str = "Mark";

/// Without what its parent sets this test is nothing.
#[tokio::test]
async fn actor() {
    let Ok(role) = env::var(ROLE) else { return };
    let store = PathBuf::from(env::var_os(STORE).expect("the parent sets it"));
    if role == LOCKER {
        keep_locked(&store);
    }
    match Phase::ALL.into_iter().find(|phase| phase.name() == role) {
        Some(phase) => die(phase, &store).await,
        None => hold(&store, &role).await,
    }
}

impl World {
    fn actor(&self, role: &str) -> Process {
        let mut command = Command::new(env::current_exe().expect("a test has a file"));
        command.args(["--exact", "actor::actor", "--test-threads=1", "--nocapture"]);
        command.env(ROLE, role).env(STORE, self.store()).env(MARKS, self.path("marks"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Process::listening(&mut command, |child| Box::new(child.stdout.take().expect("it is piped")))
    }

    /// A worker that dies at this moment of its first task.
    pub(crate) fn dies(&self, phase: Phase) {
        let mut victim = self.actor(phase.name());
        match phase {
            Phase::InHandler | Phase::AfterEffect => {
                victim.says(STOPPED_HERE);
                victim.kill();
            }
            Phase::AfterClaim | Phase::AfterReport => {
                assert!(!victim.child.wait().expect("it is our child").success(), "{phase:?} did not strike");
            }
        }
    }

    /// A process in the middle of a transaction.
    pub(crate) fn lock_holder(&self) -> Process {
        let process = self.actor(LOCKER);
        process.says(STOPPED_HERE);
        process
    }

    /// A process of this name that has claimed a task, and follows orders.
    pub(crate) fn holder(&self, owner: &str) -> Holder {
        let process = self.actor(owner);
        process.says(CLAIMED);
        Holder(process)
    }
}

/// Where a worker dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    AfterClaim,
    InHandler,
    /// Before the report.
    AfterEffect,
    /// Before the answer to it.
    AfterReport,
}

impl Phase {
    pub(crate) const ALL: [Self; 4] =
        [Self::AfterClaim, Self::InHandler, Self::AfterEffect, Self::AfterReport];

    const fn name(self) -> &'static str {
        match self {
            Self::AfterClaim => "dies after claim",
            Self::InHandler => "dies in handler",
            Self::AfterEffect => "dies after effect",
            Self::AfterReport => "dies after report",
        }
    }
}

const LOCKER: &str = "keeps the store locked";
const STOPPED_HERE: &str = "this is the moment";

async fn die(phase: Phase, store: &Path) {
    let reporting = Arc::new(AtomicBool::new(false));
    let at_report = reporting.clone();
    let plan = move |call: afl_store::fault::BackendCall| match (phase, call.verb) {
        (Phase::AfterReport, BackendVerb::Commit) if at_report.load(Ordering::SeqCst) => {
            Fault::Abort(FaultMoment::After)
        }
        _ => Fault::None,
    };
    let service = Service::new(Arc::new(Faulty::new(backend(store), plan)), tenant());
    let mut config = Config::of(Profile::Poller);
    config.lock_duration_ms = LEASE.as_millis() as u64;
    let worker = Worker::new(service, config).expect("the configuration is good");
    worker.register(FACET, blocking(move |call: Call| Ok(work(phase, &call, &reporting))));
    worker.poll_once().await.expect("the store works");
    panic!("nothing struck");
}

fn work(phase: Phase, call: &Call, reporting: &AtomicBool) -> Object {
    match phase {
        // The claim is in the store, and nothing of the work has begun.
        Phase::AfterClaim => std::process::abort(),
        Phase::InHandler => wait_for_the_end(),
        Phase::AfterEffect | Phase::AfterReport => {}
    }
    let path = env::var_os(MARKS).expect("the parent sets it");
    let mut marks = OpenOptions::new().create(true).append(true).open(path).expect("it can be written");
    writeln!(marks, "{}", call.context.facts().idempotency_key).expect("it can be written");
    if phase == Phase::AfterEffect {
        wait_for_the_end();
    }
    reporting.store(true, Ordering::SeqCst);
    Object::from_iter([("by".to_owned(), json!("actor"))])
}

fn keep_locked(store: &Path) -> ! {
    let connection = rusqlite::Connection::open(store).expect("the file opens");
    connection.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
    wait_for_the_end()
}

fn wait_for_the_end() -> ! {
    println!("{STOPPED_HERE}");
    loop {
        std::thread::park();
    }
}

pub(crate) struct Holder(pub(crate) Process);

impl Holder {
    /// Sends an order about the task, and returns its result.
    pub(crate) fn told(&mut self, order: Order) -> String {
        let orders = self.0.child.stdin.as_mut().expect("it is piped");
        writeln!(orders, "{}", order.name()).expect("it listens");
        let line = self.0.says(ANSWER);
        line.split_once(ANSWER).expect("it is there").1.to_owned()
    }
}

/// The moves that a holder may make with its task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Extend,
    Log,
    Update,
    Complete,
    Fail,
    Release,
}

impl Order {
    pub(crate) const ALL: [Self; 6] =
        [Self::Extend, Self::Log, Self::Update, Self::Complete, Self::Fail, Self::Release];

    const fn name(self) -> &'static str {
        match self {
            Self::Extend => "extend",
            Self::Log => "log",
            Self::Update => "update",
            Self::Complete => "complete",
            Self::Fail => "fail",
            Self::Release => "release",
        }
    }
}

const CLAIMED: &str = "claimed";
const ANSWER: &str = "answer: ";
pub(crate) const ACCEPTED: &str = "accepted";

async fn hold(store: &Path, owner: &str) {
    let service = Service::new(backend(store), tenant());
    let lease = Millis(i64::try_from(LEASE.as_millis()).expect("it is short"));
    let request =
        ClaimRequest { lease, ..ClaimRequest::new(FacetFilter::Only(vec![FACET.to_owned()]), owner) };
    let mut tasks = service.watch_tasks("default");
    let claim = loop {
        service.sweep_once().await.expect("the store works");
        if let Some(claim) = service.claim(&request).await.expect("the store works").pop() {
            break claim;
        }
        // A lease expires without a notice.
        drop(tokio::time::timeout(LEASE / 10, tasks.changed()).await);
    };
    println!("{CLAIMED}");
    for line in stdin().lines() {
        let line = line.expect("the parent speaks");
        let order = Order::ALL.into_iter().find(|order| order.name() == line).expect("an order");
        let answer = match obey(&service, &claim, order).await {
            Ok(()) => ACCEPTED.to_owned(),
            Err(refusal) => refusal.to_string(),
        };
        println!("{ANSWER}{answer}");
        stdout().flush().expect("the parent listens");
    }
}

async fn obey(service: &Service, claim: &Claim, order: Order) -> Result<(), Refusal> {
    let ticket = &claim.ticket;
    let result = Object::from_iter([("by".to_owned(), json!("holder"))]);
    let error = EventError::new("Broken", "broken");
    let line = LogLine { stream: LogStream::Stdout, level: LogLevel::Info, text: "late".to_owned() };
    match order {
        Order::Extend => service.extend(ticket, Millis(60_000)).await.map(drop),
        Order::Log => service.log(ticket, 0, vec![line]).await,
        Order::Update => service.update(ticket, &result).await,
        Order::Complete => service.complete(ticket, &result).await.map(drop),
        Order::Fail => service.fail(ticket, &error).await.map(drop),
        Order::Release => service.release(ticket).await.map(drop),
    }
}

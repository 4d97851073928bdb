//! What the process that dies does: it starts a run, or finds it, and takes it to its end.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use afl_backends::sqlite::{Options, Sqlite};
use afl_engine::event::EventError;
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_runtime::agent::{Claim, Names, Request};
use afl_runtime::{Service, StartRequest};
use afl_store::clock::{Clock, SimClock};
use afl_store::fault::{Fault, Faulty, Moment, at_write};
use afl_store::record::Tenant;
use serde_json::json;

pub(crate) const DIRECTORY: &str = "AFL_CRASH_DIRECTORY";
pub(crate) const STRIKE: &str = "AFL_CRASH_STRIKE";
pub(crate) const CANONICAL: &str = "canonical";
pub(crate) const WRITES: &str = "writes";
pub(crate) const WORK: &str = "work";

const PROGRAM: &str = include_str!("everything.afl");
/// How often the scenario goes round before it counts as stuck.
const ROUNDS: usize = 1_000;

/// Where the process dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Crash {
    pub(crate) write: u64,
    pub(crate) moment: Moment,
}

pub(crate) struct Finished {
    pub(crate) canonical: String,
    /// Commits and takes of the whole process.
    pub(crate) writes: u64,
    /// The work that was done, by its step and attempt.
    pub(crate) accepted: Vec<String>,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = if self.moment == Moment::Before { "before" } else { "after" };
        write!(f, "{moment} {}", self.write)
    }
}

impl Crash {
    pub(crate) fn parse(text: &str) -> Self {
        let (moment, write) = text.split_once(' ').expect("a moment and a number");
        let moment = if moment.starts_with('b') { Moment::Before } else { Moment::After };
        Self { write: write.parse().expect("a number"), moment }
    }
}

pub(crate) fn run(directory: &Path, crash: Option<Crash>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(act(directory, crash));
}

async fn act(directory: &Path, crash: Option<Crash>) {
    // It starts when the process does and goes by rounds, so that every process commits equally often.
    let clock = SimClock::new(Clock::System.now());
    let options = Options { clock: Clock::Simulated(clock.clone()), ..Options::default() };
    let sqlite = Sqlite::open(&directory.join("store.db"), options).expect("the file opens");
    let plan: Box<dyn FnMut(_) -> Fault + Send> = match crash {
        Some(crash) => Box::new(at_write(crash.write, Fault::Abort(crash.moment))),
        None => Box::new(|_| Fault::None),
    };
    let store = Arc::new(Faulty::new(Arc::new(sqlite), plan));
    let service = Service::new(store.clone(), Tenant::new(Tenant::LOCAL).expect("a good name"));
    let program = afl_runtime::compile("everything.afl", PROGRAM).expect("the program compiles");
    let request = StartRequest {
        inputs: json!({"xs": ["one", "two"]}).as_object().expect("a map").clone(),
        idempotency_key: Some("one".to_owned()),
        ..StartRequest::new(service.publish(&program).await.expect("published"))
    };
    let run = service.start(request).await.expect("started").run;
    for round in 0.. {
        clock.advance(Millis(10));
        service.turn().await.expect("the store works");
        if service.run(&run).await.expect("the run is there").status.is_terminal() {
            break;
        }
        for claim in service.claim(&everything()).await.expect("the store works") {
            work(&service, directory, &claim).await;
        }
        assert!(round < ROUNDS, "the run is stuck: {:?}", service.why(&run).await);
    }
    let canonical = service.canonical(&run).await.expect("the run is there");
    fs::write(directory.join(CANONICAL), canonical).expect("the directory is writable");
    fs::write(directory.join(WRITES), store.counts().writes().to_string())
        .expect("the directory is writable");
}

fn everything() -> Request {
    // Over at once, so that whoever comes after a crash need not wait.
    Request { lease: Millis(1), ..Request::new(Names::All, "agent") }
}

/// The effect comes before the report, as in life.
async fn work(service: &Service, directory: &Path, claim: &Claim) {
    let mut log = OpenOptions::new().create(true).append(true).open(directory.join(WORK)).expect("writable");
    writeln!(log, "{} {}", claim.ticket.step, claim.task.attempts).expect("writable");
    let settled = match answer(claim) {
        Ok(result) => service.complete(&claim.ticket, &result).await,
        Err(message) => service.fail(&claim.ticket, &EventError { kind: "Busy".to_owned(), message }).await,
    };
    settled.expect("the only agent holds its task");
}

fn answer(claim: &Claim) -> Result<Map<String, Value>, String> {
    let text = |name: &str| claim.payload[name].as_str().unwrap_or_default().to_owned();
    let result = match &*claim.task.name {
        "Flaky" if claim.task.attempts == 0 => return Err("busy".to_owned()),
        "Flaky" => json!({"m": 3}),
        "Track" => json!({"id": format!("track {}", text("k"))}),
        _ if text("q").starts_with("fail") => return Err("no answer".to_owned()),
        _ => json!({"a": format!("answer to {}", text("q"))}),
    };
    Ok(result.as_object().expect("a map").clone())
}

//! The work of a process: it starts the run, or finds it, and takes it to its end. The process that dies does the same
//! as the one that continues.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use afl_backends::sqlite::{Options, Sqlite};
use afl_engine::event::EventError;
use afl_engine::history::{Actor, TaskEventType};
use afl_engine::id::RunId;
use afl_engine::run::Run;
use afl_engine::task::{DEFAULT_TASK_LIST, Task};
use afl_engine::time::Millis;
use afl_engine::value::Value;
use afl_runtime::agent::{Claim, ClaimRequest, FacetFilter};
use afl_runtime::doctor::Remedy;
use afl_runtime::{Again, ReportedOutcome, RunQuery, Service, StartRequest, TaskQuery};
use afl_store::clock::{Clock, SimClock};
use afl_store::fault::{Fault, FaultMoment, Faulty, at_write};
use afl_store::record::Tenant;

use crate::programs::{Answer, Program};
use crate::world::{Piece, World, outcomes};

/// How often the scenario goes round before it counts as stuck, and by how much the clock goes on each time.
const ROUNDS: usize = 1_000;
const ROUND: Millis = Millis(10);
/// Each process begins later than all that the ones before it can have seen.
const FIRST_LIFE: Millis = Millis(1_800_000_000_000);
const LIFE: Millis = Millis(60_000);
/// More than any program has.
const TASKS: usize = 100;
const ONE_RUN: RunQuery =
    RunQuery { state: None, workflow: None, since: None, labels: Vec::new(), after: None, limit: 2 };

/// Where the process dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Crash {
    pub(crate) write: u64,
    pub(crate) moment: FaultMoment,
}

/// The result in the store and in the world.
pub(crate) struct Finished {
    pub(crate) canonical: String,
    /// The outcomes that were accepted, by task.
    pub(crate) accepted: Vec<String>,
    pub(crate) done: BTreeMap<Piece, Answer>,
    pub(crate) run: Run,
    pub(crate) outputs: Value,
    /// Commits and takes of this process.
    pub(crate) writes: u64,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = if self.moment == FaultMoment::Before { "before" } else { "after" };
        write!(f, "{moment} {}", self.write)
    }
}

impl Crash {
    pub(crate) fn parse(text: &str) -> Self {
        let (moment, write) = text.split_once(' ').expect("a moment and a number");
        let moment = if moment.starts_with('b') { FaultMoment::Before } else { FaultMoment::After };
        Self { write: write.parse().expect("a number"), moment }
    }
}

pub(crate) fn run(directory: &Path, program: &Program, crash: Option<Crash>) -> Finished {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(act(directory, program, crash))
}

async fn act(directory: &Path, program: &Program, crash: Option<Crash>) -> Finished {
    // It goes by rounds, so that every process commits equally often.
    let life = begin(directory);
    let clock = SimClock::new(FIRST_LIFE.plus(Millis(LIFE.0 * i64::try_from(life).expect("few lives"))));
    let store = open(directory, &clock, program, crash);
    let service = Service::new(store.clone(), Tenant::new(Tenant::LOCAL).expect("a good name"))
        .acting_as(Actor::User("ann".to_owned()));
    examine(&service).await;
    let mut world = World::found(directory, life, &tasks_there(&service).await);
    let run = start(&service, program).await;
    for round in 0.. {
        clock.advance(ROUND);
        service.turn().await.expect("the store works");
        decide(&service, &run, &world).await;
        if service.run(&run).await.expect("the run is there").status.is_terminal() {
            break;
        }
        for claim in service.claim(&everything()).await.expect("the store works") {
            let answer = world.work(&claim);
            settle(&service, &claim, answer).await;
        }
        assert!(round < ROUNDS, "the run is stuck: {:?}", service.why(&run).await);
    }
    examine(&service).await;
    Finished {
        canonical: service.canonical(&run).await.expect("the run is there"),
        accepted: tasks(&service, &run).await.iter().map(accepted).collect(),
        done: world.done().clone(),
        outputs: service.outputs(&run).await.expect("the run is there").into(),
        run: service.run(&run).await.expect("the run is there"),
        writes: store.counts().writes(),
    }
}

fn open(directory: &Path, clock: &SimClock, program: &Program, crash: Option<Crash>) -> Arc<Faulty> {
    let options = Options { clock: Clock::Simulated(clock.clone()), ..Options::default() };
    let sqlite = Sqlite::open(&directory.join("store.db"), options).expect("the file opens");
    let plan: Box<dyn FnMut(_) -> Fault + Send> = match crash {
        Some(crash) => Box::new(at_write(crash.write, Fault::Abort(crash.moment))),
        None => Box::new(|_| Fault::None),
    };
    let store = Faulty::new(Arc::new(sqlite), plan);
    Arc::new(match program.limits {
        Some(limits) => store.limited(limits),
        None => store,
    })
}

/// Leaves a mark of this process, and counts those before it.
fn begin(directory: &Path) -> u64 {
    let mut lives = OpenOptions::new().create(true).append(true).open(directory.join("lives")).expect("ours");
    let before = lives.metadata().expect("it is open").len();
    lives.write_all(b".").expect("there is room");
    before
}

/// G1: a crash leaves the store exactly between two commits, and every promise holds there.
async fn examine(service: &Service) {
    let report = service.doctor(Remedy::Tell).await.expect("the store works");
    assert_eq!((report.findings, report.busy), (Vec::new(), Vec::new()));
}

async fn start(service: &Service, program: &Program) -> RunId {
    let compiled = afl_runtime::compile(program.name, program.text).expect("the program compiles");
    let request = StartRequest {
        workflow: Some(program.workflow.to_owned()),
        inputs: (program.inputs)().as_object().expect("a map").clone(),
        idempotency_key: Some("one".to_owned()),
        ..StartRequest::new(service.publish(&compiled).await.expect("published"))
    };
    service.start(request).await.expect("started").run
}

/// The outcomes of a task that has ended: each failure that was tried again, then the final one.
fn accepted(task: &Task) -> String {
    let outcomes = outcomes(task);
    let (last, before) = outcomes.split_last().expect("somebody did the work");
    let is_end = matches!(last, TaskEventType::Completed | TaskEventType::Error);
    let are_tries = before.iter().all(|outcome| *outcome == TaskEventType::Requeued);
    assert!(is_end && are_tries, "{} has more than one end: {outcomes:?}", task.path);
    format!("{} {} {outcomes:?}", task.step_id, task.name)
}

/// Those of the run, if it was started before.
async fn tasks_there(service: &Service) -> Vec<Task> {
    let list = service.runs(&ONE_RUN).await.expect("the store works");
    assert!(list.unreadable.is_empty() && list.runs.len() < 2, "one key starts one run");
    match list.runs.first() {
        Some(run) => tasks(service, &run.id).await,
        None => Vec::new(),
    }
}

async fn tasks(service: &Service, run: &RunId) -> Vec<Task> {
    let query = TaskQuery { run: Some(run.clone()), limit: TASKS, ..TaskQuery::default() };
    let tasks = service.tasks(&query).await.expect("the store works").tasks;
    assert!(tasks.len() < TASKS, "{TASKS} tasks or more");
    tasks
}

fn everything() -> ClaimRequest {
    ClaimRequest {
        lists: vec![DEFAULT_TASK_LIST.to_owned(), "far".to_owned()],
        capabilities: vec!["gpu".to_owned()],
        // Some are in hand and not begun when the process dies.
        max: 3,
        // The lease expires at once, so that the process after a crash need not wait.
        lease: Millis(1),
        ..ClaimRequest::new(FacetFilter::All, "agent")
    }
}

async fn settle(service: &Service, claim: &Claim, answer: Answer) {
    let settled = match answer {
        Ok(result) => service.complete(&claim.ticket, &result).await,
        Err(message) => service.fail(&claim.ticket, &EventError::new("Busy", message)).await,
    };
    settled.expect("the only agent holds its task");
}

/// A person looks up the result of uncertain work, which must not happen twice.
async fn decide(service: &Service, run: &RunId, world: &World) {
    for task in tasks(service, run).await.into_iter().filter(Task::is_uncertain) {
        let step = &task.step_id;
        match world.answered(&task) {
            Some(answer) => {
                let verdict = ReportedOutcome::Done(answer.clone().expect("such work goes well"));
                service.answer(run, step, &verdict).await.expect("it is uncertain");
            }
            None => {
                service.retry(run, &Again::Step(step.clone())).await.expect("it is uncertain");
            }
        }
    }
}

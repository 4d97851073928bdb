//! One world: a program, a store that fails, drivers, janitors and agents.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use afl_engine::id::RunId;
use afl_engine::run::RunStatus;
use afl_engine::time::Millis;
use afl_engine::value::Value;
use afl_lang::source::Sources;
use afl_lang::{Validation, compile};
use afl_runtime::doctor::Remedy;
use afl_runtime::{Service, StartRequest};
use afl_store::clock::{Clock, SimClock};
use afl_store::entropy::Entropy;
use afl_store::fault::{Fault, Faulty, Moment};
use afl_store::memory::Memory;
use afl_store::record::Tenant;
use afl_store::seed::Seeded;
use serde_json::json;

use crate::agent::{Agent, LEASE, Log, Mood};
use crate::executor::{Actor, Executor, alone, turn};
use crate::operator::Operator;
use crate::random::{Catches, Expected, INPUT, Program, expect, expect_unrefused};

const DRIVERS: usize = 2;
const AGENTS: usize = 3;
/// Of the operator, where there is one.
const DESK: usize = DRIVERS + AGENTS;
/// Turns in which everything may go wrong, and turns after which a run that is not at its end is stuck.
const BAD_TURNS: usize = 1_500;
/// How many outcomes agents may have told that were killed before they heard of it.
const KILLED: usize = BAD_TURNS / 100;
const GOOD_TURNS: usize = 60_000;
/// Every so many turns the doctor looks, if anything was written.
const DOCTOR_EVERY: usize = 40;

/// What happens to steps that fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failures {
    /// They stay so, unless the program catches them.
    Stay,
    /// An operator tries them again at any time.
    Retried,
}

pub(crate) struct World {
    seed: u64,
    failures: Failures,
    rng: Seeded,
    clock: SimClock,
    /// Without faults and without turns.
    bare: Service,
    store: Arc<Faulty>,
    executor: Executor,
    log: Rc<RefCell<Log>>,
    agents_rng: Rc<RefCell<Seeded>>,
    mood: Rc<RefCell<Mood>>,
    expected: Expected,
    source: afl_lang::program::Program,
    pub(crate) text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    AsExpected,
    /// So many deliveries of one task were lost that it was given up, as promised.
    Exhausted,
}

impl World {
    pub(crate) fn new(seed: u64, failures: Failures) -> Self {
        // With a `catch` it would matter who is faster, the operator or the `catch`.
        let (catches, oracle): (_, fn(&Program, i64) -> Expected) = match failures {
            Failures::Stay => (Catches::Some, expect),
            Failures::Retried => (Catches::None, expect_unrefused),
        };
        let program = &Program::generate(seed, catches);
        let clock = SimClock::new(Millis(1_000_000));
        let memory = Arc::new(Memory::new(Clock::Simulated(clock.clone())));
        let store = Faulty::new(memory.clone(), |_| Fault::None).pausing(Arc::new(|| Box::pin(turn())));
        let text = program.text();
        let compiled = compile(&Sources::one("random.afl", text.as_str()), Validation::Require);
        Self {
            seed,
            failures,
            rng: Seeded::new(seed),
            clock,
            bare: Service::with_entropy(memory, tenant(), Entropy::seeded(1)),
            store: Arc::new(store),
            executor: Executor::default(),
            log: Rc::default(),
            agents_rng: Rc::new(RefCell::new(Seeded::new(seed ^ 0xa6e7))),
            mood: Rc::new(RefCell::new(Mood::Bad)),
            expected: oracle(program, INPUT),
            text,
            source: compiled.program.expect("a random program compiles"),
        }
    }

    pub(crate) fn run(mut self) -> Outcome {
        let quiet = self.service(0);
        let hash = alone(quiet.publish(&self.source)).expect("the store works");
        self.break_things();
        let run = self.start(hash);
        let places = match self.failures {
            Failures::Stay => DESK,
            Failures::Retried => DESK + 1,
        };
        for place in 0..places {
            let actor = self.actor(place, &run);
            self.executor.put(place, actor);
        }
        for at in 0..BAD_TURNS {
            self.turn(at, &run);
            if self.rng.below(120) == 0 {
                let place = self.rng.below(places);
                self.executor.kill(place);
                let actor = self.actor(place, &run);
                self.executor.put(place, actor);
            }
        }
        self.mend_things();
        let mut turns = 0;
        while !self.is_over(&run) {
            self.turn(turns, &run);
            turns += 1;
            assert!(turns < GOOD_TURNS, "seed {}: the run is stuck: {:?}", self.seed, alone(quiet.why(&run)));
        }
        self.judge(&run)
    }

    fn turn(&mut self, at: usize, run: &RunId) {
        self.executor.step(&mut self.rng);
        let span = match self.rng.below(100) {
            0 => LEASE.0 / 3,
            1..20 => 15,
            _ => 0,
        };
        self.clock.advance(Millis(span));
        if at.is_multiple_of(DOCTOR_EVERY) {
            self.examine(run);
        }
    }

    /// The promises, by the checker of `afl doctor`, on the bare store.
    fn examine(&self, run: &RunId) {
        let report = alone(self.bare().examine(run, Remedy::Tell)).expect("memory does not fail");
        assert_eq!(report.findings, [], "seed {}: the doctor finds nothing", self.seed);
    }

    fn actor(&self, place: usize, run: &RunId) -> Actor {
        let service = self.service(1 + place as u64);
        if place < DRIVERS {
            return Box::pin(drive(service));
        }
        if place == DESK {
            let operator = Operator {
                service,
                run: run.clone(),
                rng: Seeded::new(self.seed ^ 0x0bed),
                log: self.log.clone(),
                mood: self.mood.clone(),
            };
            return Box::pin(operator.live());
        }
        let agent = Agent {
            service,
            log: self.log.clone(),
            rng: self.agents_rng.clone(),
            name: format!("agent {place}"),
            mood: self.mood.clone(),
            failures: self.failures,
        };
        Box::pin(agent.live())
    }

    fn service(&self, number: u64) -> Service {
        let entropy = Entropy::seeded(self.seed.wrapping_mul(31).wrapping_add(number));
        Service::with_entropy(self.store.clone(), tenant(), entropy)
    }

    fn bare(&self) -> &Service {
        &self.bare
    }

    fn break_things(&self) {
        let mut rng = Seeded::new(self.seed ^ 0xfa17);
        self.store.plan(move |_| match rng.below(100) {
            0 => Fault::ErrorBefore,
            1 => Fault::ErrorAfter,
            2 => Fault::Conflict,
            3 => Fault::StaleScan,
            4 if rng.below(4) == 0 => Fault::Full,
            5 if rng.below(4) == 0 => Fault::Disconnect { calls: 5 },
            5..55 => Fault::Delay(Moment::Before),
            _ => Fault::Delay(Moment::After),
        });
    }

    fn mend_things(&self) {
        *self.mood.borrow_mut() = Mood::Good;
        let mut rng = Seeded::new(self.seed ^ 0x600d);
        self.store.plan(move |_| {
            let moment = if rng.below(2) == 0 { Moment::Before } else { Moment::After };
            Fault::Delay(moment)
        });
    }

    /// Starts until the store says that it has; the key makes it one run.
    fn start(&self, hash: afl_lang::program::ProgramHash) -> RunId {
        let service = self.service(99);
        loop {
            let request = StartRequest {
                inputs: json!({"n": INPUT}).as_object().expect("a map").clone(),
                idempotency_key: Some("once".to_owned()),
                ..StartRequest::new(hash)
            };
            if let Ok(started) = alone(service.start(request)) {
                return started.run;
            }
        }
    }

    /// Whether nothing will happen any more.
    fn is_over(&self, run: &RunId) -> bool {
        let status = alone(self.bare().run(run)).expect("memory does not fail").status;
        match self.failures {
            Failures::Stay => status.is_terminal(),
            Failures::Retried => status == RunStatus::Completed,
        }
    }

    fn judge(&self, run: &RunId) -> Outcome {
        let bare = self.bare();
        let seed = self.seed;
        self.examine(run);
        let record = alone(bare.run(run)).expect("memory does not fail");
        let runs = alone(bare.runs(&afl_runtime::RunQuery { limit: 10, ..Default::default() }))
            .expect("memory does not fail");
        assert_eq!(runs.runs.len(), 1, "seed {seed}: one key, one run");
        if self.failures == Failures::Stay && self.wore_out(run) {
            return Outcome::Exhausted;
        }
        let outputs = alone(bare.outputs(run)).expect("memory does not fail");
        let is_done = record.status == RunStatus::Completed;
        let out = outputs.get("out").and_then(Value::as_i64).filter(|_| is_done);
        let all = outputs.get("all").and_then(Value::as_array).filter(|_| is_done);
        let all = all.map(|all| all.iter().filter_map(Value::as_i64).collect::<Vec<_>>());
        assert_eq!((out, &all), (self.expected.out, &self.expected.all), "seed {seed}: {:?}", record.error);
        self.judge_work();
        Outcome::AsExpected
    }

    /// Whether a task was given up because its deliveries were lost, which changes what a run comes to.
    fn wore_out(&self, run: &RunId) -> bool {
        let bare = self.bare();
        let tasks = alone(bare.store().tasks_page(run, None, 10_000)).expect("memory does not fail");
        tasks.items.iter().any(|task| task.item.error.as_ref().is_some_and(|error| error.contains("lease")))
    }

    /// G3: for each key as many outcomes were accepted as the program asks for; one of which nobody was told counts.
    fn judge_work(&self) {
        let log = self.log.borrow();
        let mut missing = 0;
        let counts: &BTreeMap<String, usize> = &self.expected.counts;
        for (key, accepted) in &log.accepted {
            let wanted = counts.get(key).copied().unwrap_or(0);
            assert!(
                *accepted <= wanted,
                "seed {}: {key} was accepted {accepted} times of {wanted}",
                self.seed
            );
        }
        for (key, wanted) in counts {
            let accepted = log.accepted.get(key).copied().unwrap_or(0);
            missing += wanted - accepted;
            let done = log.done.get(key).copied().unwrap_or(0);
            assert!(done >= *wanted, "seed {}: {key} was done {done} times of {wanted}", self.seed);
        }
        let lost = log.unknown;
        assert!(missing <= lost + KILLED, "seed {}: {missing} outcomes came from nowhere", self.seed);
    }
}

fn tenant() -> Tenant {
    Tenant::new(Tenant::LOCAL).expect("a good name")
}

async fn drive(service: Service) {
    loop {
        // What fails is found again by the next look.
        drop(service.turn().await);
        turn().await;
    }
}

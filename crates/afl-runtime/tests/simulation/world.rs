//! One world: a program, a store that fails, drivers, janitors and agents.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use afl_engine::id::RunId;
use afl_engine::run::RunStatus;
use afl_engine::time::Millis;
use afl_lang::source::Sources;
use afl_lang::{Validation, compile};
use afl_runtime::doctor::Remedy;
use afl_runtime::{Rounds, Service, StartRequest};
use afl_store::clock::{Clock, SimClock};
use afl_store::entropy::Entropy;
use afl_store::fault::{Fault, FaultMoment, Faulty};
use afl_store::memory::Memory;
use afl_store::record::Tenant;
use afl_store::seed::SeededRng;
use serde_json::json;

use crate::agent::{Agent, LEASE, Log, Mood};
use crate::executor::{Actor, Executor, alone, turn};
use crate::operator::Operator;
use crate::random::{Catches, Expected, INPUT, Program, expect, expect_unrefused};
use crate::timers::with_timers;

pub(crate) const DRIVERS: usize = 2;
const AGENTS: usize = 3;
/// Of the operator.
const DESK: usize = DRIVERS + AGENTS;
const PLACES: usize = DESK + 1;
/// Turns in which everything may go wrong, and turns after which a run that is not at its end is stuck.
const BAD_TURNS: usize = 1_500;
/// How many outcomes agents may have sent that were killed before the answer came.
pub(crate) const KILLED: usize = BAD_TURNS / 100;
const GOOD_TURNS: usize = 60_000;
/// How far the clock may jump ahead, and back: by more than a lease.
const AHEAD: Millis = Millis(3_600_000);
const BACK: Millis = Millis(-LEASE.0 * 3 / 2);

/// The acts of the operator besides holding the run now and then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum People {
    /// Nothing: a failure stays, unless the program catches it.
    Watch,
    /// Tries failures again, or decides about them.
    Retry,
    /// Ends the run at some time.
    Cancel,
}

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) people: People,
    rng: SeededRng,
    pub(crate) clock: SimClock,
    pub(crate) memory: Arc<Memory>,
    /// The version that the doctor saw last.
    seen: u64,
    /// Without faults and without turns.
    pub(crate) bare: Service,
    store: Arc<Faulty>,
    executor: Executor,
    pub(crate) log: Rc<RefCell<Log>>,
    agents_rng: Rc<RefCell<SeededRng>>,
    pub(crate) mood: Rc<RefCell<Mood>>,
    pub(crate) expected: Expected,
    pub(crate) source: afl_lang::program::Program,
    pub(crate) text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    AsExpected,
    /// So many deliveries of one task were lost that it was given up, as promised.
    Exhausted,
    Canceled,
}

impl World {
    pub(crate) fn new(seed: u64, people: People) -> Self {
        // With a `catch` the result would depend on a race between the operator and the `catch`.
        let (catches, oracle): (_, fn(&Program, i64) -> Expected) = match people {
            People::Watch | People::Cancel => (Catches::Some, expect),
            People::Retry => (Catches::None, expect_unrefused),
        };
        let program = &Program::generate(seed, catches);
        let clock = SimClock::new(Millis(1_000_000));
        let memory = Arc::new(Memory::new(Clock::Simulated(clock.clone())).with_power_cuts());
        let store = Faulty::new(memory.clone(), |_| Fault::None).pausing(Arc::new(|| Box::pin(turn())));
        let mut text = with_timers(&program.text(), seed);
        if people == People::Retry && (seed / 32).is_multiple_of(2) {
            let risk = "event facet Risk(key: String, by: Long) => (out: Long)";
            text = text.replace(risk, &format!("{risk} with Effect(kind = \"once\")"));
        }
        let compiled = compile(&Sources::one("random.afl", text.as_str()), Validation::Require);
        Self {
            seed,
            people,
            rng: SeededRng::new(seed),
            clock,
            bare: Service::with_entropy(memory.clone(), tenant(), Entropy::seeded(1)),
            memory,
            seen: 0,
            store: Arc::new(store),
            executor: Executor::default(),
            log: Rc::default(),
            agents_rng: Rc::new(RefCell::new(SeededRng::new(seed ^ 0xa6e7))),
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
        for place in 0..PLACES {
            let actor = self.actor(place, &run);
            self.executor.put(place, actor);
        }
        for _ in 0..BAD_TURNS {
            self.turn(&run);
            self.strike(&run);
        }
        self.mend_things();
        let mut turns = 0;
        while !self.is_over(&run) {
            self.turn(&run);
            turns += 1;
            assert!(turns < GOOD_TURNS, "seed {}: the run is stuck: {:?}", self.seed, alone(quiet.why(&run)));
        }
        self.judge(&run)
    }

    /// Now and then a process dies, the database loses relaxed commits, or the clock is set.
    fn strike(&mut self, run: &RunId) {
        match self.rng.below(400) {
            0..3 => {
                let place = self.rng.below(PLACES);
                self.executor.kill(place);
                let actor = self.actor(place, run);
                self.executor.put(place, actor);
            }
            3 => self.memory.power_cut(1 + self.rng.below(6)),
            4 if self.rng.below(4) == 0 => self.clock.set_ahead(AHEAD),
            5 => self.clock.set_ahead(BACK),
            _ => {}
        }
    }

    fn turn(&mut self, run: &RunId) {
        self.executor.step(&mut self.rng);
        let span = match self.rng.below(100) {
            0 => LEASE.0 / 3,
            1..20 => 15,
            _ => 0,
        };
        self.clock.advance(Millis(span));
        let revision = self.memory.revision();
        if std::mem::replace(&mut self.seen, revision) != revision {
            self.examine(run);
        }
    }

    /// The promises, by the checker of `afl doctor`, on the bare store.
    pub(crate) fn examine(&self, run: &RunId) {
        let report = alone(self.bare.examine(run, Remedy::Tell)).expect("memory does not fail");
        assert_eq!(report.findings, [], "seed {}: the doctor finds nothing", self.seed);
    }

    pub(crate) fn actor(&self, place: usize, run: &RunId) -> Actor {
        let service = self.service(1 + place as u64);
        if place < DRIVERS {
            return Box::pin(drive(service));
        }
        if place == DESK {
            let operator = Operator {
                service,
                run: run.clone(),
                rng: SeededRng::new(self.seed ^ 0x0bed),
                log: self.log.clone(),
                mood: self.mood.clone(),
                people: self.people,
            };
            return Box::pin(operator.live());
        }
        let agent = Agent {
            service,
            log: self.log.clone(),
            rng: self.agents_rng.clone(),
            name: format!("agent {place}"),
            mood: self.mood.clone(),
            people: self.people,
        };
        Box::pin(agent.live())
    }

    fn service(&self, number: u64) -> Service {
        let entropy = Entropy::seeded(self.seed.wrapping_mul(31).wrapping_add(number));
        Service::with_entropy(self.store.clone(), tenant(), entropy)
    }

    fn break_things(&self) {
        let mut rng = SeededRng::new(self.seed ^ 0xfa17);
        self.store.plan(move |_| match rng.below(100) {
            0 => Fault::ErrorBefore,
            1 => Fault::ErrorAfter,
            2 => Fault::Conflict,
            3 => Fault::StaleScan,
            4 if rng.below(4) == 0 => Fault::Full,
            5 if rng.below(4) == 0 => Fault::Disconnect { calls: 5 },
            5..55 => Fault::Delay(FaultMoment::Before),
            _ => Fault::Delay(FaultMoment::After),
        });
    }

    fn mend_things(&self) {
        *self.mood.borrow_mut() = Mood::Good;
        let mut rng = SeededRng::new(self.seed ^ 0x600d);
        self.store.plan(move |_| {
            let moment = if rng.below(2) == 0 { FaultMoment::Before } else { FaultMoment::After };
            Fault::Delay(moment)
        });
    }

    /// Starts until the store says that it has; the key makes it one run.
    pub(crate) fn start(&self, hash: afl_lang::program::ProgramHash) -> RunId {
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
    pub(crate) fn is_over(&self, run: &RunId) -> bool {
        let status = alone(self.bare.run(run)).expect("memory does not fail").status;
        match self.people {
            People::Watch | People::Cancel => status.is_terminal(),
            People::Retry => status == RunStatus::Completed,
        }
    }
}

pub(crate) fn tenant() -> Tenant {
    Tenant::new(Tenant::LOCAL).expect("a good name")
}

async fn drive(service: Service) {
    let mut rounds = Rounds::new(service);
    loop {
        // The next look finds failed work again.
        drop(rounds.turn().await);
        turn().await;
    }
}

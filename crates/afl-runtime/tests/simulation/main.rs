//! The virtual world: random programs, drivers that die, agents that crash, stall, answer twice or late, a store that
//! fails, all on one thread with one clock, all from one seed.
//!
//! A failing seed is repeated alone with `AFL_SEED=n cargo test -p afl-runtime --test simulation`.

mod agent;
mod executor;
#[path = "../../../afl-engine/tests/random/mod.rs"]
mod random;
mod world;

use std::env;

use random::Program;
use world::World;

/// How many worlds a run of the tests goes through; `AFL_SEEDS` asks for another number.
const SEEDS: u64 = 2_000;

#[test]
fn every_world_comes_to_what_the_oracle_says() {
    let (first, count) = seeds();
    let mut exhausted = 0;
    for seed in first..first + count {
        let program = Program::generate(seed);
        let found = std::panic::catch_unwind(|| World::new(seed, &program).run());
        let Ok(outcome) = found else {
            panic!("seed {seed} fails; repeat it alone with AFL_SEED={seed}\n{}", program.text());
        };
        exhausted += u64::from(outcome == world::Outcome::Exhausted);
    }
    assert!(exhausted * 20 <= count, "{exhausted} of {count} worlds wore a task's deliveries out");
}

fn seeds() -> (u64, u64) {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    match (number("AFL_SEED"), number("AFL_SEEDS")) {
        (Some(seed), _) => (seed, 1),
        (None, count) => (0, count.unwrap_or(SEEDS)),
    }
}

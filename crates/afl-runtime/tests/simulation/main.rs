//! The virtual world: random programs, drivers that die, agents that crash, stall, answer twice or late, operators who
//! hold a run, cancel it, try failed steps again or say what came of them, a store that fails, a database that crashes
//! under its users, a clock that jumps, all on one thread and from one seed.
//!
//! A failing seed is repeated alone with `AFL_SEED=n cargo test -p afl-runtime --test simulation`.

mod agent;
mod executor;
mod judge;
mod operator;
#[path = "../../../afl-engine/tests/random/mod.rs"]
mod random;
mod world;

use std::env;
use std::ops::Range;

use world::{People, World};

/// How many worlds a run of the tests goes through; `AFL_SEEDS` asks for another number.
const SEEDS: u64 = 2_000;

// G1-G3, G5-G10, G13, asserted by the doctor after every write. In four parts, so that cores share them.
#[test]
fn worlds_of_the_first_quarter_come_to_what_the_oracle_says() {
    quarter(0);
}

#[test]
fn worlds_of_the_second_quarter_come_to_what_the_oracle_says() {
    quarter(1);
}

#[test]
fn worlds_of_the_third_quarter_come_to_what_the_oracle_says() {
    quarter(2);
}

#[test]
fn worlds_of_the_fourth_quarter_come_to_what_the_oracle_says() {
    quarter(3);
}

fn quarter(number: u64) {
    let mut worlds = 0;
    let mut exhausted = 0;
    for seed in seeds().filter(|seed| seed % 4 == number) {
        let people = match seed / 4 % 8 {
            0..4 => People::Watch,
            4..7 => People::Retry,
            _ => People::Cancel,
        };
        let found = std::panic::catch_unwind(|| World::new(seed, people).run());
        let Ok(outcome) = found else {
            let text = World::new(seed, people).text;
            panic!("seed {seed} fails; repeat it alone with AFL_SEED={seed}\n{text}");
        };
        worlds += 1;
        exhausted += u64::from(outcome == world::Outcome::Exhausted);
    }
    assert!(exhausted * 20 <= worlds + 20, "{exhausted} of {worlds} worlds wore a task's deliveries out");
}

fn seeds() -> Range<u64> {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    match (number("AFL_SEED"), number("AFL_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => 0..count.unwrap_or(SEEDS),
    }
}

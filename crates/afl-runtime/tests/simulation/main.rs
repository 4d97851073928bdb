//! The virtual world: random programs, drivers that die, agents that crash, stall, answer twice, late or badly, operators who
//! hold a run, cancel it, try failed steps again or report their outcome, a store that fails, a database that crashes
//! under its users, a clock that jumps, timers and timeouts, all on one thread and from one seed.
//!
//! A failing seed is repeated alone with `AFL_SEED=n cargo test -p afl-runtime --test simulation`.

mod agent;
mod executor;
mod judge;
mod operator;
#[path = "../../../afl-engine/tests/random/mod.rs"]
mod random;
mod timers;
mod world;

use std::env;
use std::ops::Range;
use std::panic::catch_unwind;

use world::{People, World};

/// The worlds of every run of the tests. The range moves with each release; `cargo xtask worlds` plays fresh ones.
const FIXED: Range<u64> = 0..2_000;

/// Worlds outside the range that once broke a promise. In the first five a run was written back, or an answer was
/// decided, on reads from before a crash of the database. In the last a cancel trusted a scan from before it.
const REGRESSIONS: [u64; 6] = [3_360, 6_472, 7_505, 8_880, 11_604, 94_847];

// G1-G10, G13, asserted by the doctor after every write. In four parts, so that cores share them.
#[test]
fn worlds_of_the_first_quarter_end_as_the_oracle_says() {
    quarter(0);
}

#[test]
fn worlds_of_the_second_quarter_end_as_the_oracle_says() {
    quarter(1);
}

#[test]
fn worlds_of_the_third_quarter_end_as_the_oracle_says() {
    quarter(2);
}

#[test]
fn worlds_of_the_fourth_quarter_end_as_the_oracle_says() {
    quarter(3);
}

/// A world that fails does not hide the ones after it: each is played, then all failures are reported.
fn quarter(number: u64) {
    let (mut worlds, mut exhausted) = (0, 0);
    let mut failed = Vec::new();
    for seed in seeds().into_iter().filter(|seed| seed % 4 == number) {
        let people = match seed / 4 % 8 {
            0..4 => People::Watch,
            4..7 => People::Retry,
            _ => People::Cancel,
        };
        worlds += 1;
        if let Ok(outcome) = catch_unwind(|| World::new(seed, people).run()) {
            exhausted += u64::from(outcome == world::Outcome::Exhausted);
        } else {
            eprintln!("seed {seed} fails; repeat it alone with AFL_SEED={seed}");
            eprintln!("{}", World::new(seed, people).text);
            failed.push(seed);
        }
    }
    assert!(failed.is_empty(), "{failed:?}: seeds of worlds that broke a promise");
    assert!(exhausted * 20 <= worlds + 20, "{exhausted} of {worlds} worlds wore a task's deliveries out");
}

/// `AFL_SEED=n` plays one world, `AFL_WORLDS=from..to` a range, else the fixed ones and the regressions.
fn seeds() -> Vec<u64> {
    let number = |text: &str| text.parse::<u64>().expect("a number names a world");
    if let Ok(seed) = env::var("AFL_SEED") {
        return vec![number(&seed)];
    }
    if let Ok(range) = env::var("AFL_WORLDS") {
        let (from, to) = range.split_once("..").expect("a range is written from..to");
        return (number(from)..number(to)).collect();
    }
    FIXED.chain(REGRESSIONS).collect()
}

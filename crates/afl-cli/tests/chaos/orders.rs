//! The runs, and the oracle that gives their results.

use afl_engine::value::{Map, Value};
use afl_store::seed::SeededRng;
use serde_json::json;

pub(crate) const PROGRAM: &str = include_str!("chaos.afl");
/// Its first attempt fails.
pub(crate) const FAILING: &str = "chaos.Shaky";
/// Its work may happen once only.
pub(crate) const ONCE: &str = "chaos.Pay";

/// One run of one of the workflows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    Chain(i64),
    Fan(Vec<i64>),
    Caught(i64),
    Retried(i64),
    Paid(i64),
    Chosen(i64),
    Mixed(i64),
}

const LARGEST: usize = 1_000;
const WIDEST: usize = 6;

impl Order {
    /// The same for every process that knows the seed.
    pub(crate) fn nth(seed: u64, nth: usize) -> Self {
        let mut seeded = SeededRng::new(seed ^ (nth as u64).wrapping_mul(0x9e37_79b9));
        let sort = seeded.below(7);
        let n = number(&mut seeded);
        match sort {
            0 => Self::Chain(n),
            1 => Self::Fan((0..=seeded.below(WIDEST)).map(|_| number(&mut seeded)).collect()),
            2 => Self::Caught(n),
            3 => Self::Retried(n),
            4 => Self::Paid(n),
            5 => Self::Chosen(n),
            _ => Self::Mixed(n),
        }
    }

    pub(crate) fn workflow(&self) -> &'static str {
        match self {
            Self::Chain(_) => "chaos.Chain",
            Self::Fan(_) => "chaos.Fan",
            Self::Caught(_) => "chaos.Caught",
            Self::Retried(_) => "chaos.Retried",
            Self::Paid(_) => "chaos.Paid",
            Self::Chosen(_) => "chaos.Chosen",
            Self::Mixed(_) => "chaos.Mixed",
        }
    }

    pub(crate) fn inputs(&self) -> Map<String, Value> {
        let inputs = match self {
            Self::Fan(items) => json!({ "items": items }),
            Self::Chain(n)
            | Self::Caught(n)
            | Self::Retried(n)
            | Self::Paid(n)
            | Self::Chosen(n)
            | Self::Mixed(n) => json!({ "n": n }),
        };
        inputs.as_object().expect("an object").clone()
    }

    pub(crate) fn outputs(&self) -> Value {
        match self {
            Self::Chain(n) => json!({ "n": 3 * (n + 1) }),
            Self::Fan(items) => json!({ "sums": items.iter().map(|item| item + 10).collect::<Vec<_>>() }),
            Self::Caught(n) => json!({ "n": n + 7 }),
            Self::Retried(n) => json!({ "n": n }),
            Self::Paid(n) => json!({ "n": n + 1 }),
            Self::Chosen(n) => json!({ "n": if *n > 500 { 2 * n } else { n + 1_000 } }),
            Self::Mixed(n) => json!({ "n": n + 3, "note": 7 }),
        }
    }

    /// How many of its steps leave marks.
    pub(crate) fn marked_steps(&self) -> usize {
        match self {
            Self::Chain(_) => 3,
            Self::Fan(items) => items.len(),
            Self::Caught(_) | Self::Paid(_) => 2,
            Self::Retried(_) | Self::Chosen(_) | Self::Mixed(_) => 1,
        }
    }
}

fn number(seeded: &mut SeededRng) -> i64 {
    i64::try_from(seeded.below(LARGEST)).expect("it is small")
}

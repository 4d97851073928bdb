//! What a warm call costs beside the handler's own work.

use std::time::{Duration, Instant};

use afl_agents::registration::Registration;
use serde_json::json;

use crate::world::{FACET, World};

const CALLS: usize = 300;

/// The median, since other work on the machine delays single calls.
#[tokio::test]
async fn a_warm_call_of_python_takes_less_than_two_milliseconds() {
    let world = World::new();
    world.write("handlers.py", "def handle(payload): return {'n': payload['n']}");
    let registration = Registration::new(FACET, "handlers");
    world.run(&registration, json!({"n": 0})).await.result();
    let mut times = Vec::with_capacity(CALLS);
    for n in 0..CALLS {
        let began = Instant::now();
        assert_eq!(world.run(&registration, json!({"n": n})).await.result()["n"], n);
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let median = times[CALLS / 2];
    println!("median {median:?}, 99% {:?}", times[CALLS * 99 / 100]);
    assert!(median < Duration::from_millis(2), "{median:?}");
}

//! The cost of a warm call beside the handler's own work.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use afl_agents::registration::Registration;
use serde_json::json;

use crate::world::{FACET, World};

const CALLS: usize = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_at_once_share_the_workers() {
    let world = Arc::new(World::with(|config| config.python.workers = 4));
    world.write(
        "handlers.py",
        "import os\ndef handle(payload): return {'n': payload['n'], 'pid': os.getpid()}",
    );
    let calls: Vec<_> = (0..CALLS)
        .map(|n| {
            let world = world.clone();
            tokio::spawn(async move {
                world.run(&Registration::new(FACET, "handlers"), json!({"n": n})).await.result()
            })
        })
        .collect();
    let mut pids = BTreeSet::new();
    for (n, call) in calls.into_iter().enumerate() {
        let result = call.await.unwrap();
        assert_eq!(result["n"], n);
        pids.insert(result["pid"].as_i64());
    }
    assert!((1..=4).contains(&pids.len()), "{} processes", pids.len());
}

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

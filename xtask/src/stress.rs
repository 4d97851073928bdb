//! `cargo xtask test --stress N`: repeats the tests beside other work, and lists those that ever failed.
//!
//! A test that passes alone may still depend on the speed of the machine. So every core gets a busy thread while the tests
//! run, and the whole selection runs N times: a test then meets other neighbours and other moments each time. Repeating
//! each test N times in a row would be quicker to report, but it meets the same neighbours again and again.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::Result;

use crate::counts::TestCounts;
use crate::services::Services;
use crate::test::{RunOutput, run_all};
use crate::workspace::Workspace;

pub(crate) fn run(workspace: &Workspace, rounds: u32, args: &[String]) -> Result<ExitCode> {
    let services = Services::start()?;
    let mut failures: BTreeMap<String, u32> = BTreeMap::new();
    let mut total = TestCounts::default();
    let mut broken_rounds = 0;
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        let load = CpuLoad::start();
        let RunOutput { counts, failed, all_succeeded } = run_all(workspace, args, &services)?;
        drop(load);
        total += counts;
        broken_rounds += u32::from(counts.ran() == 0 || (!all_succeeded && failed.is_empty()));
        for test in failed {
            *failures.entry(test).or_default() += 1;
        }
    }
    drop(services);
    for (test, count) in &failures {
        println!("{count} of {rounds}: {test}");
    }
    if broken_rounds > 0 {
        eprintln!("{broken_rounds} of {rounds} rounds ran no test, or failed without naming one; see above");
    }
    println!("{total} in {rounds} rounds; {} tests failed at least once", failures.len());
    Ok(if failures.is_empty() && broken_rounds == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Keeps every core busy until it is dropped.
struct CpuLoad {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl CpuLoad {
    fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let spin = |is_over: Arc<AtomicBool>| {
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = (0..cores).map(|_| spin(is_over.clone())).collect();
        Self { is_over, threads }
    }
}

impl Drop for CpuLoad {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a loop does not panic");
        }
    }
}

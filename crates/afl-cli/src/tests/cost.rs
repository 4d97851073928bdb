//! How many records `afl run` reads and writes. Time is not measured: a busy machine would decide the test.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;

use afl_lang::render::Color;
use afl_runtime::{COUNTED, Service, StartRequest, compile};
use afl_store::clock::Clock;
use afl_store::fault::{Fault, Faulty};
use afl_store::memory::Memory;
use afl_store::record::Tenant;
use clap::Parser;
use serde_json::json;
use tempfile::TempDir;

use super::cases::follow;
use crate::cli::{Cli, Command};
use crate::commands::run;
use crate::foreground::FollowResult;

/// A store in memory that counts, and runs in it.
struct CountedStore {
    folder: TempDir,
    store: Arc<Faulty>,
    service: Service,
}

impl CountedStore {
    fn new() -> Self {
        let store = Arc::new(Faulty::new(Arc::new(Memory::new(Clock::System)), |_| Fault::None));
        let service = Service::new(store.clone(), Tenant::new(Tenant::LOCAL).unwrap());
        Self { folder: tempfile::tempdir().unwrap(), store, service }
    }

    /// Lets tasks of another run wait, all of the facet that the chains call.
    async fn wait(&self, tasks: usize) {
        let hash = self.service.publish(&compile("chain.afl", &program(1)).unwrap()).await.unwrap();
        let inputs = json!({"items": (0..tasks).collect::<Vec<_>>()}).as_object().unwrap().clone();
        let workflow = Some("chain.Wide".to_owned());
        self.service.start(StartRequest { workflow, inputs, ..StartRequest::new(hash) }).await.unwrap();
        let pending = self.service.stats().await.unwrap().pending;
        assert!(pending.values().sum::<usize>() >= tasks.min(COUNTED));
    }

    /// The records that `afl run` reads and writes for so many event steps, one after the other.
    async fn records(&self, steps: usize) -> u64 {
        let [program_file, mock] = ["chain.afl", "mock.json"].map(|name| self.folder.path().join(name));
        fs::write(&program_file, program(steps)).unwrap();
        fs::write(&mock, json!({"Next": {"echo": {"n": "n"}}}).to_string()).unwrap();
        let [program_file, mock] = [&program_file, &mock].map(|path| path.to_str().unwrap());
        let Command::Run(options) = Cli::parse_from([
            "afl",
            "run",
            program_file,
            "--json",
            "--mock",
            mock,
            "-w",
            "chain.Long",
            "-i",
            "n=7",
        ])
        .command
        else {
            panic!("`run` is a command")
        };
        let (launch, mock) = run::prepare(&options, Color::Plain).unwrap();
        let before = self.store.counts().records;
        let FollowResult { service, run, .. } = follow(&self.service, &options, launch, mock.as_ref()).await;
        let records = self.store.counts().records - before;
        assert_eq!(service.outputs(&run.id).await.unwrap()["n"], 7);
        records
    }
}

fn program(steps: usize) -> String {
    let mut text = "namespace chain {
        event facet Next(n: Long) => (n: Long)
        workflow Wide(items: [Long]) => (done: [Long]) andThen foreach item in $.items {
            a = Next(n = $.item)
            yield Wide(done = [a.n])
        }
        workflow Long(n: Long) => (n: Long) andThen {
            s0 = Next(n = $.n)\n"
        .to_owned();
    for step in 1..steps {
        writeln!(text, "s{step} = Next(n = s{}.n)", step - 1).unwrap();
    }
    write!(text, "yield Long(n = s{}.n) }} }}", steps - 1).unwrap();
    text
}

#[tokio::test(start_paused = true)]
async fn a_step_of_a_long_run_costs_what_one_of_a_short_run_does() {
    let [short, long] = [1_000, 10_000];
    let of_short = CountedStore::new().records(short).await;
    let of_long = CountedStore::new().records(long).await;
    // Per step, within 1.3 times, without a division that rounds.
    let is_within = of_long * short as u64 * 10 < of_short * long as u64 * 13;
    assert!(is_within, "{of_short} records for {short} steps, {of_long} for {long}");
}

#[tokio::test(start_paused = true)]
async fn a_run_costs_the_same_beside_any_number_of_waiting_tasks() {
    let [alone, crowded] = [CountedStore::new(), CountedStore::new()];
    crowded.wait(100_000).await;
    assert_eq!(crowded.records(50).await, alone.records(50).await);
}

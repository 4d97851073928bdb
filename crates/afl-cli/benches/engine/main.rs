//! The cost of durable runs on each store, beside the limits of the disk and of the bare database.
//!
//! Prints tables; with `--json` one JSON object, and the tables to stderr. `--store=NAME` chooses a store, `--quick`
//! makes everything smaller, `--disk-writes=N` slows the disk down to N writes a second, and a word chooses the cases
//! whose name contains it. With `--agents` it measures agents instead.
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "figures for people need no 52 bits, and counts are not negative"
)]

mod agent;
mod agents;
mod case;
mod child;
mod counted;
mod disk;
mod ground;
mod load;
mod place;
mod quiet;
mod raw;
mod report;
mod target;
mod usage;

use std::env;
use std::time::Duration;

use case::{AgentAt, Case, Measured};
use child::Role;
use disk::SlowDisk;
use ground::Ground;
use load::Load;
use mimalloc::MiMalloc;
use place::BenchStoreKind;
use quiet::{Idle, Large, PickUp};
use report::Report;

/// As `afl` has it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Debug)]
struct Wanted {
    kinds: Vec<BenchStoreKind>,
    /// Divides all sizes.
    divisor: usize,
    filter: Option<String>,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let role = args.first().and_then(|first| Role::ALL.into_iter().find(|role| role.flag() == *first));
    if let (Some(role), [_, address, size]) = (role, &args[..]) {
        child::run(role, address, size.parse().expect("a number")).await;
        return;
    }
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    let store = args.iter().find_map(|arg| arg.strip_prefix("--store="));
    let wanted = Wanted {
        kinds: BenchStoreKind::all().filter(|kind| store.is_none_or(|store| kind.name() == store)).collect(),
        divisor: if has("--quick") { 10 } else { 1 },
        // Cargo adds `--bench`.
        filter: args.iter().find(|arg| !arg.starts_with("--")).cloned(),
    };
    let writes = args.iter().find_map(|arg| arg.strip_prefix("--disk-writes="));
    let slow = writes.map(|writes| SlowDisk::new(&env::temp_dir(), writes.parse().expect("a number")));
    let output = if has("--json") { Output::Json } else { Output::Tables };
    if has("--agents") {
        let report = agents::measure(&wanted).await;
        drop(slow);
        output.show(&report, &report.json());
    } else {
        let report = measure(&wanted).await;
        drop(slow);
        output.show(&report, &report.json());
    }
}

#[derive(Clone, Copy)]
enum Output {
    Tables,
    Json,
}

impl Output {
    fn show(self, tables: &dyn std::fmt::Display, json: &serde_json::Value) {
        match self {
            Self::Tables => print!("{tables}"),
            Self::Json => {
                eprint!("{tables}");
                println!("{json}");
            }
        }
    }
}

async fn measure(wanted: &Wanted) -> Report {
    let ground = Ground::new(&wanted.kinds);
    let mut report = Report {
        load_before: usage::load_average(),
        command_ready: quiet::command_ready(),
        ..Report::default()
    };
    for kind in &wanted.kinds {
        measure_kind(*kind, wanted, &ground, &mut report).await;
    }
    report.load_after = usage::load_average();
    report
}

async fn measure_kind(kind: BenchStoreKind, wanted: &Wanted, ground: &Ground, report: &mut Report) {
    let cases = cases(kind, wanted.divisor);
    for case in cases.iter().filter(|case| wanted.wants(&case.name())) {
        eprintln!("{kind}: {}", case.name());
        report.cases.push(case.measure(kind, ground).await);
        if case.load == Load::largest_fan(wanted.divisor) {
            measure_growth_again(kind, wanted.divisor, ground, report).await;
        }
    }
    for agent in agents(kind) {
        if wanted.wants("pick-up") {
            report.pick_ups.push(PickUp::measure(kind, *agent, 1_000 / wanted.divisor, ground).await);
        }
    }
    if wanted.wants("idle") && kind.is_kept() {
        report.idle.push(Idle::measure(kind, Duration::from_secs(10), ground).await);
    }
    // In memory all of it stays, and that is its use.
    if wanted.wants("large") && kind.is_kept() {
        eprintln!("{kind}: a large run");
        report.large.push(Large::measure(kind, 1_000_000 / wanted.divisor, ground).await);
    }
}

/// A machine's speed changes from minute to minute, and nothing makes it faster than it is: growth is judged by the best
/// rounds.
async fn measure_growth_again(kind: BenchStoreKind, divisor: usize, ground: &Ground, report: &mut Report) {
    for load in [Load::SMALLEST_FAN, Load::largest_fan(divisor), Load::SMALLEST_FAN] {
        let is_of = |measured: &&mut Measured| measured.kind == kind && measured.case.load == load;
        if let Some(measured) = report.cases.iter_mut().find(is_of) {
            eprintln!("{kind}: {} again", measured.case.name());
            *measured = measured.with(measured.case.measure(kind, ground).await);
        }
    }
}

fn cases(kind: BenchStoreKind, divisor: usize) -> Vec<Case> {
    let loads = [1_000, 10_000].map(|steps| Load::Chain { steps });
    let mut fans = vec![Load::SMALLEST_FAN, Load::Fan { events: 10_000 }, Load::largest_fan(divisor)];
    fans.dedup();
    let sequence = Load::Sequence { events: 1_000 };
    let alone = loads.into_iter().chain([sequence]).chain(fans).map(Case::here);
    let singles = [1, 64].map(|in_flight| Load::Singles { runs: 5_000 / divisor, in_flight });
    let by_agent = agents(kind).iter().flat_map(|agent| singles.map(|load| Case { load, agent: *agent }));
    alone.chain(by_agent).collect()
}

/// Only this process can reach its memory.
fn agents(kind: BenchStoreKind) -> &'static [AgentAt] {
    if kind.is_kept() { &[AgentAt::Here, AgentAt::Elsewhere] } else { &[AgentAt::Here] }
}

impl Wanted {
    fn wants(&self, name: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()))
    }
}

//! Agents: tasks a second, several processes at one store, an idle process, a long backlog.

mod backlog;
mod idle;
mod process;
mod rate;
mod report;
mod work;

use std::time::Duration;

use tokio::time::timeout;

use crate::Wanted;
use crate::ground::Ground;
use crate::place::BenchStoreKind;
use crate::usage;
use backlog::Backlog;
use idle::IdleAgent;
use rate::{Crew, Rate};
use report::Report;
use work::AgentWork;

/// No measurement may take longer, so that one that hangs does not stop the others.
const LIMIT: Duration = Duration::from_mins(4);
/// How many tasks a worker does at once.
const CONCURRENT: [usize; 3] = [1, 8, 64];
/// So many agents, each with a few slots for work that takes a while.
const PROCESSES: [usize; 3] = [1, 2, 4];
const SLOTS: usize = 4;

pub(crate) async fn measure(wanted: &Wanted) -> Report {
    let ground = Ground::new(&wanted.kinds);
    let mut report = Report { load_before: usage::load_average(), ..Report::default() };
    for kind in wanted.kinds.iter().filter(|kind| kind.is_kept()) {
        measure_kind(*kind, wanted, &ground, &mut report).await;
    }
    report.load_after = usage::load_average();
    report
}

async fn measure_kind(kind: BenchStoreKind, wanted: &Wanted, ground: &Ground, report: &mut Report) {
    let tasks = |most: usize| most / wanted.divisor;
    let here = CONCURRENT.map(|slots| {
        let crew = Crew::Here { slots };
        (crew, AgentWork::Echo, tasks(if slots == 1 { 2_000 } else { 10_000 }))
    });
    let python = (Crew::Processes { count: 1, slots: SLOTS }, AgentWork::Python, tasks(4_000));
    let naps = PROCESSES.map(|count| {
        let crew = Crew::Processes { count, slots: SLOTS };
        (crew, AgentWork::Nap, tasks(2_000 * count))
    });
    for (crew, work, tasks) in here.into_iter().chain([python]).chain(naps) {
        let name = rate::name(crew, work);
        if wanted.wants(&name) {
            eprintln!("{kind}: {name}");
            let measured = limited(Rate::measure(kind, crew, work, tasks, ground)).await;
            report.rates.push((kind, name, measured));
        }
    }
    if wanted.wants("idle agent") {
        eprintln!("{kind}: idle agent");
        report.idle.push((kind, limited(IdleAgent::measure(kind, ground)).await));
    }
    if wanted.wants("backlog") {
        eprintln!("{kind}: backlog");
        let sizes = [1_000, 100_000 / wanted.divisor];
        report.backlogs.push((kind, limited(Backlog::measure(kind, sizes, ground)).await));
    }
}

/// Nothing when it took too long.
async fn limited<T>(measure: impl Future<Output = T>) -> Option<T> {
    timeout(LIMIT, measure).await.ok()
}

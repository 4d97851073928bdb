//! The targets, each beside the figure that it judges.

use std::fmt;

use serde_json::{Value, json};

use crate::case::{AgentAt, Measured};
use crate::load::Load;
use crate::place::{BenchStoreKind, KnownStore};
use crate::quiet::{Idle, Large, PickUp};
use crate::report::Report;

#[derive(Clone, Debug)]
pub(crate) struct Target {
    what: String,
    kind: BenchStoreKind,
    figure: f64,
    bound: Bound,
    /// For a figure that is compared with the disk's rate.
    busy: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Target {
    fn is_met(&self) -> bool {
        match self.bound {
            Bound::AtMost(limit) => self.figure <= limit,
            Bound::AtLeast(limit) => self.figure >= limit,
        }
    }

    pub(crate) fn json(&self) -> Value {
        let (bound, limit) = match self.bound {
            Bound::AtMost(limit) => ("atMost", limit),
            Bound::AtLeast(limit) => ("atLeast", limit),
        };
        json!({ "store": self.kind, "what": self.what, "figure": self.figure, bound: limit, "met": self.is_met() })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, limit) = match self.bound {
            Bound::AtMost(limit) => ("<=", limit),
            Bound::AtLeast(limit) => (">=", limit),
        };
        let verdict = if self.is_met() { "met" } else { "MISSED" };
        write!(f, "{:<9} {:<66} {:>9.3} {sign} {limit:<6} {verdict}", self.kind, self.what, self.figure)?;
        match self.busy {
            Some(busy) => write!(f, ", {busy:.1} processors busy"),
            None => Ok(()),
        }
    }
}

/// All that the figures of a report can be judged by.
pub(crate) fn judge(report: &Report) -> Vec<Target> {
    let mut targets: Vec<Target> = report.cases.iter().flat_map(of_case).collect();
    targets.extend(BenchStoreKind::all().filter_map(|kind| growth(kind, report)));
    targets.extend(report.pick_ups.iter().flat_map(of_pick_up));
    targets.extend(report.idle.iter().flat_map(of_idle));
    targets.extend(report.large.iter().map(of_large));
    targets
}

fn of_case(case: &Measured) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut add = |what: &str, figure: f64, bound: Bound| {
        let what = format!("{}: {what}", case.case.name());
        targets.push(Target { what, kind: case.kind, figure, bound, busy: None });
    };
    let durable = case.spent.calls.durable_commits as f64;
    match case.case.load {
        Load::Chain { steps } => {
            add("durable commits", durable / case.runs(), Bound::AtMost(1.0));
            if steps == 10_000 {
                add("CPU ms", case.cpu_ms() / case.runs(), Bound::AtMost(1_000.0));
            }
        }
        Load::Sequence { .. } => {
            add("durable commits a step", (durable - case.runs()) / case.steps(), Bound::AtMost(1.0));
        }
        Load::Fan { events } => {
            if events == 1_000 {
                add("CPU ms", case.cpu_ms() / case.runs(), Bound::AtMost(300.0));
            }
        }
        Load::Singles { in_flight: 1, .. } => {
            add("durable commits a run", durable / case.runs(), Bound::AtMost(2.0));
        }
        Load::Singles { .. } => {
            add("fsyncs a run", case.spent.syncs as f64 / case.runs(), Bound::AtMost(0.15));
            add("CPU ms a run", case.cpu_ms() / case.runs(), Bound::AtMost(1.0));
        }
        Load::Wide { .. } => {}
    }
    targets.extend(of_raw(case));
    targets
}

/// The rate beside that of the simplest program on the same store.
fn of_raw(case: &Measured) -> Option<Target> {
    let (what, raw, share) = match (case.kind.known(), case.case.load) {
        (Some(KnownStore::Sqlite), Load::Sequence { .. }) => ("of raw", case.limits.one_writer?, 0.8),
        (Some(KnownStore::Sqlite), Load::Singles { in_flight: 1, .. }) => {
            ("of raw", case.limits.one_writer?, 0.4)
        }
        (Some(KnownStore::Sqlite), Load::Singles { .. }) => ("of raw", case.limits.one_writer?, 3.0),
        (Some(KnownStore::Postgres), Load::Singles { in_flight: 2.., .. }) => {
            ("of raw, 16 writers", case.limits.sixteen_writers?, 0.3)
        }
        (Some(KnownStore::Sqlite | KnownStore::Postgres) | None, _) => return None,
    };
    Some(Target {
        what: format!("{}: {what}", case.case.name()),
        kind: case.kind,
        figure: case.rate() / raw,
        bound: Bound::AtLeast(share),
        busy: Some(case.busy()),
    })
}

/// How much more an event step costs in the largest `foreach` than in the smallest, in the database too.
fn growth(kind: BenchStoreKind, report: &Report) -> Option<Target> {
    let fans =
        report.cases.iter().filter(|case| case.kind == kind && matches!(case.case.load, Load::Fan { .. }));
    let (mut first, mut last) = (None, None);
    for fan in fans {
        first = first.or(Some(fan));
        last = Some(fan);
    }
    let (first, last) = (first?, last?);
    let figure = last.least_cpu_ms_per_step / first.least_cpu_ms_per_step;
    let what = format!(
        "CPU of an event step, foreach of {} by {}",
        last.steps() / last.runs(),
        first.steps() / first.runs()
    );
    Some(Target { what, kind, figure, bound: Bound::AtMost(1.3), busy: None })
}

fn of_pick_up(pick_up: &PickUp) -> Vec<Target> {
    let target = |what: &str, percent: usize, limit: f64| Target {
        what: what.to_owned(),
        kind: pick_up.kind,
        figure: pick_up.percentile_ms(percent),
        bound: Bound::AtMost(limit),
        busy: None,
    };
    match pick_up.agent {
        AgentAt::Here => vec![
            target("idle pick-up in process, p50 ms", 50, 1.0),
            target("idle pick-up in process, p99 ms", 99, 5.0),
        ],
        AgentAt::Elsewhere => vec![target("idle pick-up across processes, p99 ms", 99, 20.0)],
    }
}

fn of_idle(idle: &Idle) -> Vec<Target> {
    let target = |what: &str, figure: f64, limit: f64| Target {
        what: what.to_owned(),
        kind: idle.kind,
        figure,
        bound: Bound::AtMost(limit),
        busy: None,
    };
    vec![
        target("idle server, queries a second", idle.queries_per_second, 1.0),
        target("idle server, MB", idle.resident_bytes as f64 / 1e6, 20.0),
        target("server ready, ms", idle.ready_after.as_secs_f64() * 1e3, 100.0),
    ]
}

fn of_large(large: &Large) -> Target {
    let what = format!("a run of {} steps, peak MB", large.steps);
    Target {
        what,
        kind: large.kind,
        figure: large.peak_bytes as f64 / 1e6,
        bound: Bound::AtMost(300.0),
        busy: None,
    }
}

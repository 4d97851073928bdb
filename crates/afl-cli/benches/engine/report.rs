//! The results, as tables and as JSON.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::case::{AgentAt, Measured};
use crate::quiet::{Idle, Large, PickUp};
use crate::target::judge;

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) load_before: String,
    pub(crate) load_after: String,
    pub(crate) cases: Vec<Measured>,
    pub(crate) pick_ups: Vec<PickUp>,
    pub(crate) idle: Vec<Idle>,
    pub(crate) large: Vec<Large>,
    pub(crate) command_ready: Duration,
}

impl Report {
    pub(crate) fn json(&self) -> Value {
        json!({
            "loadAverage": { "before": self.load_before, "after": self.load_after },
            "cases": self.cases.iter().map(Measured::json).collect::<Vec<_>>(),
            "pickUp": self.pick_ups.iter().map(PickUp::json).collect::<Vec<_>>(),
            "idle": self.idle.iter().map(Idle::json).collect::<Vec<_>>(),
            "large": self.large.iter().map(Large::json).collect::<Vec<_>>(),
            "commandReadyMs": self.command_ready.as_secs_f64() * 1e3,
            "targets": judge(self).iter().map(crate::target::Target::json).collect::<Vec<_>>(),
        })
    }

    fn limit_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "load average {} before, {} after", self.load_before, self.load_after)?;
        writeln!(f, "operations of the disk and the database in a second, around each case:")?;
        let (syncs, one, sixteen) = ("fdatasync", "1 writer", "16 writers");
        writeln!(f, "{:<9} {:<48} {syncs:>10} {one:>10} {sixteen:>10}", "store", "case")?;
        for case in self.cases.iter().filter(|case| case.kind.is_kept()) {
            let show = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
            let limits = case.limits;
            let [syncs, one, sixteen] = [limits.syncs, limits.one_writer, limits.sixteen_writers].map(show);
            let name = case.case.name();
            writeln!(f, "{:<9} {name:<48} {syncs:>10} {one:>10} {sixteen:>10}", case.kind)?;
        }
        writeln!(f)
    }

    fn case_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<9} {:<48} {:>7} {:>8} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
            "store",
            "case",
            "s",
            "steps/s",
            "cpu/run",
            "cpu/step",
            "server",
            "commits",
            "durable",
            "fsyncs",
            "reads",
            "kB"
        )?;
        writeln!(
            f,
            "{:<9} {:<48} {:>7} {:>8} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
            "", "", "", "", "ms", "ms", "ms/step", "/step", "/step", "/step", "/step", "/step"
        )?;
        for case in &self.cases {
            let steps = case.steps();
            let calls = case.spent.calls;
            let by_step = |count: u64| count as f64 / steps;
            writeln!(
                f,
                "{:<9} {:<48} {:>7.2} {:>8.0} {:>9.2} {:>9.3} {:>8.3} {:>8.3} {:>8.3} {:>8.3} {:>8.3} {:>8.2}",
                case.kind,
                case.case.name(),
                case.wall.as_secs_f64(),
                case.rate(),
                case.cpu_ms() / case.runs(),
                case.cpu_ms() / steps,
                case.server.cpu.as_secs_f64() * 1e3 / steps,
                by_step(calls.commits + calls.takes),
                by_step(calls.durable_commits),
                by_step(case.spent.syncs),
                by_step(calls.reads),
                case.written_bytes() / 1e3 / steps
            )?;
        }
        writeln!(f)
    }

    fn quiet_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pick_up in &self.pick_ups {
            let where_at = match pick_up.agent {
                AgentAt::Here => "in process",
                AgentAt::Elsewhere => "across processes",
            };
            let (p50, p99) = (pick_up.percentile_ms(50), pick_up.percentile_ms(99));
            writeln!(f, "{:<9} idle pick-up {where_at}: p50 {p50:.2} ms, p99 {p99:.2} ms", pick_up.kind)?;
        }
        for idle in &self.idle {
            writeln!(
                f,
                "{:<9} idle server: {:.2} queries/s, {:.1} MB, {:.2} ms of CPU a second; ready in {:.0} ms",
                idle.kind,
                idle.queries_per_second,
                idle.resident_bytes as f64 / 1e6,
                idle.cpu_ms_per_second,
                idle.ready_after.as_secs_f64() * 1e3
            )?;
        }
        for large in &self.large {
            writeln!(
                f,
                "{:<9} a run of {} steps: {:.1} s, {:.1} s of CPU, peak {:.0} MB",
                large.kind,
                large.steps,
                large.wall.as_secs_f64(),
                large.cpu.as_secs_f64(),
                large.peak_bytes as f64 / 1e6
            )?;
        }
        writeln!(f, "          afl --version: {:.0} ms\n", self.command_ready.as_secs_f64() * 1e3)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.limit_table(f)?;
        self.case_table(f)?;
        self.quiet_table(f)?;
        for target in judge(self) {
            writeln!(f, "{target}")?;
        }
        Ok(())
    }
}

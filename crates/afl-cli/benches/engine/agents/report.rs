//! The figures of agents, as tables and as JSON.

use std::fmt;

use serde_json::{Value, json};

use super::backlog::Backlog;
use super::idle::IdleAgent;
use super::rate::Rate;
use super::work::AgentWork;
use crate::place::BenchStoreKind;

/// A measurement that took too long has no figures.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) load_before: String,
    pub(crate) load_after: String,
    pub(crate) rates: Vec<(BenchStoreKind, String, Option<Rate>)>,
    pub(crate) idle: Vec<(BenchStoreKind, Option<IdleAgent>)>,
    pub(crate) backlogs: Vec<(BenchStoreKind, Option<Backlog>)>,
}

impl Report {
    pub(crate) fn json(&self) -> Value {
        let rates = self.rates.iter().map(|(kind, name, rate)| {
            json!({ "store": kind, "case": name, "measured": rate.map(|rate| rate.json()) })
        });
        let idle = self
            .idle
            .iter()
            .map(|(kind, idle)| json!({ "store": kind, "measured": idle.map(|idle| idle.json()) }));
        let backlogs = self
            .backlogs
            .iter()
            .map(|(kind, backlog)| json!({ "store": kind, "measured": backlog.as_ref().map(Backlog::json) }));
        json!({
            "loadAverage": { "before": self.load_before, "after": self.load_after },
            "rates": rates.collect::<Vec<_>>(),
            "scaling": self.scaling().into_iter().map(|(kind, count, ratio)| {
                json!({ "store": kind, "processes": count, "ratioToOne": ratio })
            }).collect::<Vec<_>>(),
            "idle": idle.collect::<Vec<_>>(),
            "backlog": backlogs.collect::<Vec<_>>(),
        })
    }

    /// The rate of several agent processes beside that of one, on the same store.
    fn scaling(&self) -> Vec<(BenchStoreKind, usize, f64)> {
        let naps: Vec<(BenchStoreKind, Rate)> = self
            .rates
            .iter()
            .filter_map(|(kind, _, rate)| Some((*kind, (*rate)?)))
            .filter(|(_, rate)| rate.work == AgentWork::Nap)
            .collect();
        let one =
            |kind: BenchStoreKind| naps.iter().find(|(of, rate)| *of == kind && rate.crew.processes() == 1);
        let several = naps.iter().filter(|(_, rate)| rate.crew.processes() > 1);
        several
            .filter_map(|(kind, rate)| {
                let (_, alone) = one(*kind)?;
                Some((*kind, rate.crew.processes(), rate.per_second() / alone.per_second()))
            })
            .collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "load average {} before, {} after", self.load_before, self.load_after)?;
        writeln!(f, "{:<9} {:<52} {:>9} {:>12} {:>6}", "store", "case", "tasks/s", "cpu ms/task", "busy")?;
        for (kind, name, rate) in &self.rates {
            match rate {
                Some(rate) => writeln!(
                    f,
                    "{kind:<9} {name:<52} {:>9.0} {:>12.3} {:>6.2}",
                    rate.per_second(),
                    rate.cpu_ms_per_task(),
                    rate.busy()
                )?,
                None => writeln!(f, "{kind:<9} {name:<52} took too long")?,
            }
        }
        writeln!(f)?;
        for (kind, count, ratio) in self.scaling() {
            writeln!(f, "{kind:<9} {count} agent processes do {ratio:.2} times the work of one")?;
        }
        for (kind, idle) in &self.idle {
            match idle {
                Some(idle) => {
                    let asks = idle.transactions_per_second;
                    let asks = asks.map_or_else(String::new, |asks| format!(", {asks:.2} transactions/s"));
                    let (cpu, mb) = (idle.cpu_ms_per_second, idle.resident_bytes as f64 / 1e6);
                    writeln!(f, "{kind:<9} idle agent: {cpu:.2} ms of CPU a second, {mb:.1} MB{asks}")?;
                }
                None => writeln!(f, "{kind:<9} idle agent: took too long")?,
            }
        }
        for (kind, backlog) in &self.backlogs {
            match backlog {
                Some(backlog) => {
                    let ([few, many], [short, long]) = (backlog.sizes, backlog.median_ms());
                    let growth = backlog.growth();
                    let verdict = if growth <= 1.3 { "met" } else { "MISSED" };
                    writeln!(
                        f,
                        "{kind:<9} a claim with {few} pending {short:.3} ms, with {many} {long:.3} ms: \
                         {growth:.2} <= 1.3 {verdict}"
                    )?;
                }
                None => writeln!(f, "{kind:<9} backlog: took too long")?,
            }
        }
        Ok(())
    }
}

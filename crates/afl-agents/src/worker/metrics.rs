//! The numbers of a worker for Prometheus, gathered when they are asked for.

use std::fs;
use std::time::Duration;

use afl_runtime::Backlog;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Registry, Unit};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::timeout;

use super::Worker;

/// The format that the crate writes: `OpenMetrics`, which Prometheus reads.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Without an answer of the store within this time, what only it knows is left out.
const PATIENCE: Duration = Duration::from_secs(2);

type Labels = Vec<(&'static str, String)>;

pub(super) async fn text(worker: &Worker) -> String {
    // Without the backlog the other metrics are still served.
    let backlog = timeout(PATIENCE, worker.service.backlog(&worker.config().task_lists)).await;
    let mut registry = Registry::default();
    let of_worker = registry.sub_registry_with_prefix("afl");
    register_work(of_worker, worker);
    if let Ok(Ok(backlog)) = backlog {
        register_backlog(of_worker, &backlog);
    }
    register_process(registry.sub_registry_with_prefix("process"));
    let mut text = String::new();
    encode(&mut text, &registry).expect("a string takes any text");
    text
}

fn register_work(registry: &mut Registry, worker: &Worker) {
    let counts = worker.counts();
    let tasks = Family::<Labels, Counter>::default();
    for (facet, handled) in &counts.handled {
        let outcomes = [
            ("completed", handled.completed),
            ("failed", handled.failed),
            ("lost", handled.lost),
            ("canceled", handled.canceled),
        ];
        for (outcome, count) in outcomes {
            let labels = vec![("facet", facet.clone()), ("outcome", outcome.to_owned())];
            tasks.get_or_create(&labels).inc_by(count);
        }
    }
    registry.register("tasks", "Tasks that this worker ended, by facet and outcome", tasks);
    registry.register(
        "claims",
        "Tasks that were handed out to this worker",
        ConstCounter::new(counts.claims),
    );
    let in_work = ConstGauge::new(counts.current.len() as u64);
    registry.register("tasks_in_work", "Tasks that this worker does now", in_work);
    let slots = ConstGauge::new(worker.config().max_concurrent as u64);
    registry.register("slots", "Tasks that this worker may do at once", slots);
    let driven = ConstCounter::new(worker.service.runs_driven());
    registry.register("runs_driven", "How often a run was driven to a fixed point", driven);
    let latencies = &worker.latencies;
    registry.register_with_unit("task", "From the claim to the end", Unit::Seconds, latencies.work.clone());
    let settle = latencies.settle.clone();
    registry.register_with_unit("settle", "From the outcome to the word of the store", Unit::Seconds, settle);
    let uptime = ConstGauge::new(worker.uptime().as_secs_f64());
    registry.register_with_unit("uptime", "Since the worker started", Unit::Seconds, uptime);
}

fn register_backlog(registry: &mut Registry, backlog: &Backlog) {
    let pending = Family::<Labels, Gauge>::default();
    for (list, facets) in &backlog.pending {
        for (facet, count) in facets {
            let labels = vec![("list", list.clone()), ("facet", facet.clone())];
            pending.get_or_create(&labels).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
    }
    let help = "Tasks of the worker's lists that no worker has claimed, counted up to 1000 for each facet";
    registry.register("tasks_pending", help, pending);
    let lag = ConstGauge::new(Duration::from_millis(backlog.lag_ms).as_secs_f64());
    let help = "How long the oldest outcome has waited to be evaluated";
    registry.register_with_unit("evaluation_lag", help, Unit::Seconds, lag);
}

fn register_process(registry: &mut Registry) {
    let cpu = ConstCounter::new(cpu().as_secs_f64());
    registry.register_with_unit("cpu", "Time of all threads", Unit::Seconds, cpu);
    if let Some(bytes) = resident_bytes() {
        registry.register_with_unit("resident_memory", "In main memory", Unit::Bytes, ConstGauge::new(bytes));
    }
}

/// CPU time of all threads.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Resident memory, on Linux.
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = value.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_of_a_name_cannot_break_a_line() {
        let mut registry = Registry::default();
        let pending = [("x".to_owned(), [("a\"b\\c\nd".to_owned(), 3)].into())].into();
        register_backlog(&mut registry, &Backlog { pending, lag_ms: 1_500 });
        let mut text = String::new();
        encode(&mut text, &registry).expect("a string takes any text");
        assert!(text.contains(r#"tasks_pending{list="x",facet="a\"b\\c\nd"} 3"#), "{text}");
        assert!(text.contains("evaluation_lag_seconds 1.5"), "{text}");
    }
}

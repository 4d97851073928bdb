//! An agent process with nothing to do.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::process::Agent;
use crate::ground::Ground;
use crate::place::{BenchStoreKind, Opened};

/// Until PostgreSQL has counted the work of the start: an idle connection reports its figures after ten seconds.
const SETTLE: Duration = Duration::from_secs(12);
/// Several heartbeats.
const SPAN: Duration = Duration::from_secs(20);
const SLOTS: usize = 5;

#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleAgent {
    pub(crate) cpu_ms_per_second: f64,
    pub(crate) resident_bytes: u64,
    /// As the database counts them; a file counts none.
    pub(crate) transactions_per_second: Option<f64>,
}

impl IdleAgent {
    pub(crate) async fn measure(kind: BenchStoreKind, ground: &Ground) -> Self {
        let address = ground.fresh(kind).await;
        drop(Opened::at(&address).await);
        let folder = tempfile::tempdir().expect("a folder");
        let agent = Agent::start(&address, folder.path(), SLOTS).await;
        sleep(SETTLE).await;
        let before = (agent.cpu(), ground.transactions(&address).await);
        sleep(SPAN).await;
        let after = (agent.cpu(), ground.transactions(&address).await);
        let resident_bytes = agent.resident_bytes();
        agent.stop().await;
        let seconds = SPAN.as_secs_f64();
        let between = |(before, after): (u64, u64)| (after - before) as f64 / seconds;
        Self {
            cpu_ms_per_second: (after.0.saturating_sub(before.0)).as_secs_f64() * 1e3 / seconds,
            resident_bytes,
            transactions_per_second: before.1.zip(after.1).map(between),
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "cpuMsPerSecond": self.cpu_ms_per_second,
            "residentBytes": self.resident_bytes,
            "transactionsPerSecond": self.transactions_per_second,
        })
    }
}

//! How much is in a store, and what of it is old enough to go.

use std::collections::BTreeMap;

use afl_engine::id::RunId;
use afl_engine::time::Millis;
use afl_store::paging::Pages;
use afl_store::store::{RunState, TaskBucket, bucket};
use serde::Serialize;

use crate::doctor::{Finding, Remedy, Repair, shared_record};
use crate::error::{Error, StateRefusal};
use crate::service::Service;

const PAGE: usize = 1_000;
/// Beyond this a store is large, and how large does not matter here.
pub const COUNTED: usize = 10_000;

/// Counts stop at [`COUNTED`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Stats {
    /// By where runs stand: active, paused, held, completed, …
    pub runs: BTreeMap<&'static str, usize>,
    /// By task list and name.
    pub pending: BTreeMap<String, usize>,
    pub running: BTreeMap<String, usize>,
    /// Outcomes that no driver has taken in.
    pub arrived: usize,
    /// Attempts that wait for their time.
    pub retries: usize,
    /// Messages that wait for their delivery, by channel.
    pub outbox: BTreeMap<String, usize>,
    /// Messages that were given up, by channel.
    pub outbox_dead: BTreeMap<String, usize>,
}

/// The work that waits, as far as it can be counted at little cost.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Backlog {
    /// By task list and name. Counts stop at [`BACKLOG_COUNTED`].
    pub pending: BTreeMap<String, BTreeMap<String, usize>>,
    /// How long the oldest outcome has waited for a driver.
    pub lag_ms: u64,
}

/// The most tasks of a name that are counted for callers that poll.
pub const BACKLOG_COUNTED: usize = 1_000;

impl Service {
    /// For who asks every few seconds.
    pub async fn backlog(&self, lists: &[String]) -> Result<Backlog, Error> {
        let mut backlog = Backlog::default();
        for list in lists {
            let pending = self.counts(&bucket::tasks(list, ""), BACKLOG_COUNTED).await?;
            backlog.pending.insert(list.clone(), pending);
        }
        if let Some((_, _, oldest)) = self.store.arrived(None, 1).await?.pop() {
            let waited = self.store.now().await?.since(Millis(oldest.rank));
            backlog.lag_ms = u64::try_from(waited.0).unwrap_or(0);
        }
        Ok(backlog)
    }

    pub async fn stats(&self) -> Result<Stats, Error> {
        let mut stats =
            Stats { arrived: self.store.count(bucket::ARRIVED, COUNTED).await?, ..Stats::default() };
        stats.retries = self.store.count(bucket::RETRIES, COUNTED).await?;
        for shelf in RunState::ALL {
            stats.runs.insert(shelf.name(), self.store.count(&shelf.bucket(), COUNTED).await?);
        }
        stats.pending = self.counts(bucket::TASKS, COUNTED).await?;
        stats.running = self.counts(bucket::RUNNING, COUNTED).await?;
        stats.outbox = self.counts(bucket::OUTBOX, COUNTED).await?;
        stats.outbox_dead = self.counts(bucket::OUTBOX_DEAD, COUNTED).await?;
        Ok(stats)
    }

    async fn counts(&self, prefix: &str, most: usize) -> Result<BTreeMap<String, usize>, Error> {
        let mut counts = BTreeMap::new();
        for bucket in self.store.buckets(prefix).await? {
            let count = self.store.count(&bucket, most).await?;
            let name = &bucket[prefix.len()..];
            let name = if prefix.starts_with(bucket::TASKS) {
                TaskBucket::without_policies(name)
            } else {
                name.to_owned()
            };
            *counts.entry(name).or_default() += count;
        }
        Ok(counts)
    }

    /// Deletes a run that the doctor cannot repair, with everything of it, or such a record of a shared scope. A run
    /// that is sound is canceled and collected instead.
    pub async fn discard(&self, run: &RunId) -> Result<(), Error> {
        if let Some((scope, id)) = shared_record(run) {
            return self.discard_shared(scope, id).await;
        }
        let report = self.examine(run, Remedy::Tell).await?;
        if report.findings.iter().any(|finding| finding.repair == Repair::ByNewerRelease) {
            return Err(StateRefusal::NewerRelease { record: format!("run {run}") }.into());
        }
        let is_hurt = |finding: &Finding| finding.repair == Repair::ByHand;
        if report.findings.iter().any(is_hurt) {
            return Ok(self.store.discard_run(run).await?);
        }
        // A caller whose connection failed during a discard repeats it.
        if self.has_records(run).await? {
            Err(StateRefusal::NotDamaged { run: run.clone() }.into())
        } else {
            Err(Error::no_run(run))
        }
    }

    /// Deletes runs and system tasks that ended before this time, with everything of theirs, but for those whose values
    /// belong to a message that waits. Says which runs.
    pub async fn collect(&self, ended_before: Millis) -> Result<Vec<RunId>, Error> {
        let outbox = self.outbox();
        let channels = outbox.names().await?;
        self.collect_system_tasks(ended_before, &channels).await?;
        let mut old = Vec::new();
        for shelf in [RunState::Completed, RunState::Failed, RunState::Canceled] {
            let mut pages = Pages::first();
            while !pages.is_over() {
                let page = self.store.runs(&[shelf], pages.after(), PAGE).await?;
                let ended = |run: &afl_engine::run::Run| run.ended.is_some_and(|ended| ended < ended_before);
                old.extend(page.items.into_iter().map(|run| run.item).filter(ended));
                pages.follow(page.next);
            }
        }
        let mut deleted = Vec::new();
        for run in old {
            if outbox.refers_to(&run.id, &channels).await? {
                continue;
            }
            match self.store.delete_run(&run).await {
                Ok(()) => deleted.push(run.id),
                // A concurrent retry reopened it, so it is not old any more.
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(deleted)
    }
}

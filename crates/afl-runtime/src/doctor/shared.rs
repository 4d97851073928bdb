//! Checks what all runs share: programs, notifications, handlers and the like.

use afl_engine::id::RunId;
use afl_engine::time::Millis;
use afl_store::backend::ClockStatus;
use afl_store::collection::CollectionItem as _;
use afl_store::notification::Notification;
use afl_store::server::Server;
use afl_store::store::{DiscardResult, SHARED};

use super::{Finding, Promise, Remedy, Repair, Report};
use crate::error::{Error, NotFound, StateRefusal};
use crate::service::Service;

/// Nothing is lost with them: their content is stored elsewhere, or is written again.
const EXPENDABLE: [&str; 2] = [Notification::COLLECTION, Server::COLLECTION];

/// Stands in place of a run for findings about the store itself.
const STORE: &str = "@store";

/// The scope and the id of a record that all runs share, by how the doctor names it: `@notifications/…`.
pub(crate) fn shared_record(name: &RunId) -> Option<(&str, &str)> {
    name.0.split_once('/').filter(|(scope, _)| SHARED.contains(scope))
}

impl Finding {
    /// The run, system task or shared record, as [`Service::examine`] and [`Service::discard`] take it.
    pub fn subject(&self) -> RunId {
        let Self { run, path, .. } = self;
        if SHARED.contains(&&*run.0) { RunId(format!("{run}/{path}").into()) } else { run.clone() }
    }
}

/// Wall clocks of machines that are kept right differ by less.
const MOST_DRIFT: Millis = Millis(60_000);
/// A jump delays nothing after this: the usual leases are over.
const RECENT: Millis = Millis(600_000);

/// A drift delays nothing by itself, but shows that a clock was set.
fn clock_problems(clock: ClockStatus) -> Vec<String> {
    let mut problems = Vec::new();
    let drift_s = clock.drift().0 / 1_000;
    if clock.drift().0.abs() > MOST_DRIFT.0 {
        let side = if drift_s > 0 { "ahead of" } else { "behind" };
        problems.push(format!(
            "it is {} s {side} the wall clock of this machine: one of the two was set; correct the wrong one",
            drift_s.abs()
        ));
    }
    if let Some(jump) = clock.jump.filter(|jump| clock.now.since(jump.at) < RECENT) {
        let by_s = jump.by.0 / 1_000;
        problems.push(format!(
            "it jumped ahead by {by_s} s: leases from before the jump last their whole length again"
        ));
    }
    problems
}

impl Service {
    pub(super) async fn examine_scope(
        &self,
        report: &mut Report,
        scope: &str,
        is_wanted: impl Fn(&str) -> bool,
        remedy: Remedy,
    ) -> Result<(), Error> {
        let (mut findings, _) = self.examine_records(&RunId(scope.into()), remedy).await?;
        findings.retain(|finding| is_wanted(&finding.path));
        if EXPENDABLE.contains(&&scope[1..]) {
            for finding in findings.iter_mut().filter(|finding| finding.repair != Repair::ByNewerRelease) {
                finding.repair = self.expend(scope, &finding.path, remedy).await?;
            }
        }
        report.findings.append(&mut findings);
        Ok(())
    }

    /// How the store keeps its records: one that an index has lost is met nowhere else.
    pub(super) async fn examine_store(&self, report: &mut Report) -> Result<(), Error> {
        let flaws = self.store.backend().check_integrity().await?;
        let store = RunId(STORE.into());
        report.findings.extend(flaws.into_iter().map(|problem| {
            Finding::new(Promise::FailStop, &store, "the store itself", problem, Repair::OfStore)
        }));
        let clock = self.store.clock().await?;
        report.findings.extend(clock_problems(clock).into_iter().map(|problem| {
            Finding::new(Promise::OneClock, &store, "the clock of the store", problem, Repair::OfStore)
        }));
        Ok(())
    }

    async fn expend(&self, scope: &str, id: &str, remedy: Remedy) -> Result<Repair, Error> {
        match remedy {
            Remedy::Tell => Ok(Repair::Possible),
            Remedy::Fix => match self.store.discard_shared(scope, id).await {
                Err(error) if !error.is_conflict() => Err(error.into()),
                // Another writer has replaced it meanwhile, so it is sound.
                Ok(_) | Err(_) => Ok(Repair::Done),
            },
        }
    }

    pub(crate) async fn discard_shared(&self, scope: &str, id: &str) -> Result<(), Error> {
        let (scope, id) = (scope.to_owned(), id.to_owned());
        match self.store.discard_shared(&scope, &id).await? {
            DiscardResult::Gone => Ok(()),
            DiscardResult::Readable => Err(StateRefusal::RecordNotDamaged { scope, id }.into()),
            DiscardResult::Newer => {
                Err(StateRefusal::NewerRelease { record: format!("the record `{id}` of `{scope}`") }.into())
            }
            DiscardResult::Absent => Err(NotFound::Record { scope, id }.into()),
        }
    }
}

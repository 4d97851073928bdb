//! Finds the runs that have something to do, in the few buckets where all work is.

use std::collections::BTreeMap;

use afl_engine::event::Reception;
use afl_engine::id::RunId;
use afl_store::backend::BucketCursor;
use afl_store::paging::{Pages, last_if_full};
use afl_store::store::RunState;

use crate::drive::{Arrival, RunWork};
use crate::error::Error;
use crate::service::Service;

/// How many records one look reads at a time, and in all.
const PAGE: usize = 1_000;
const LOOK: usize = 100_000;

/// How far back a look goes behind the last one: processes write at the same time and commit later.
const OVERLAP_MS: i64 = 2_000;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkScan {
    /// At everything, as after a crash.
    Everywhere,
    /// At outcomes that came since a look before.
    Since(BucketCursor),
}

/// The result of a look, and the place where the next one may begin.
#[derive(Clone, Debug, Default)]
pub struct RunsWithWork {
    pub work: Vec<RunWithWork>,
    pub last: Option<BucketCursor>,
}

#[derive(Clone, Debug)]
pub struct RunWithWork {
    pub work: RunWork,
    /// Where the first of its arrivals stands; a later scan begins there if the run is busy now.
    pub first: Option<BucketCursor>,
}

impl Service {
    /// All work there is. Runs that an operator holds are found too, and left alone when they are driven.
    pub async fn find_work(&self, at: &WorkScan) -> Result<RunsWithWork, Error> {
        let mut runs: BTreeMap<RunId, (Vec<Arrival>, Option<BucketCursor>)> = BTreeMap::new();
        let (mut pages, everywhere) = match at {
            WorkScan::Everywhere => (Pages::first(), true),
            WorkScan::Since(mark) => (Pages::behind(Some(before(mark))), false),
        };
        let (mut seen, mut last) = (0, None);
        while !pages.is_over() && seen < LOOK {
            let page = self.store.arrived(pages.after(), PAGE).await?;
            seen += page.len();
            pages.follow(last_if_full(&page, PAGE).map(|(_, _, mark)| mark.clone()));
            for (run, step, mark) in page {
                let (arrivals, first) = runs.entry(run).or_default();
                arrivals.push(Arrival::of(step));
                first.get_or_insert_with(|| mark.clone());
                last = Some(mark);
            }
        }
        if everywhere {
            for shelf in [RunState::Running, RunState::Canceling] {
                for run in self.all_on(shelf).await? {
                    runs.entry(run).or_default();
                }
            }
        }
        let found = |(run, (arrivals, first))| RunWithWork { work: RunWork { run, arrivals }, first };
        Ok(RunsWithWork { work: runs.into_iter().map(found).collect(), last })
    }

    /// The outcomes of one run that wait for its evaluator, by a look at all its events.
    pub(crate) async fn arrivals_of(&self, run: &RunId) -> Result<Vec<Arrival>, Error> {
        let mut arrivals = Vec::new();
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.store.events_page(run, pages.after(), PAGE).await?;
            let came = page.items.into_iter().filter(|event| event.item.reception == Reception::Arrived);
            arrivals.extend(came.map(|event| Arrival::of(event.item.step_id)));
            pages.follow(page.next);
        }
        Ok(arrivals)
    }

    async fn all_on(&self, from: RunState) -> Result<Vec<RunId>, Error> {
        let mut runs = Vec::new();
        let mut pages = Pages::first();
        while !pages.is_over() && runs.len() < LOOK {
            let page = self.store.ids_on(from, pages.after(), PAGE).await?;
            pages.follow(last_if_full(&page, PAGE).map(|(_, mark)| mark.clone()));
            runs.extend(page.into_iter().map(|(run, _)| run));
        }
        Ok(runs)
    }
}

fn before(mark: &BucketCursor) -> BucketCursor {
    BucketCursor { rank: mark.rank.saturating_sub(OVERLAP_MS), scope: "".into(), id: String::new() }
}

//! Lists runs, steps and tasks page by page.

use std::sync::Arc;

use afl_engine::evaluation::Stored;
use afl_engine::event::Event;
use afl_engine::id::{RunId, StepId};
use afl_engine::run::Run;
use afl_engine::step::Step;
use afl_engine::task::Task;

use super::entity::{self, Entity, decode};
use super::{Error, RunState, Store, bucket, scope};
use crate::backend::{BucketCursor, Ranks, Scan, ScanOrder};

/// Runs, newest first, and where the next page begins.
#[derive(Clone, Debug, Default)]
pub struct RunPage {
    pub runs: Vec<Stored<Run>>,
    /// Runs whose record cannot be read; their errors name them.
    pub unreadable: Vec<Arc<Error>>,
    pub next: Option<BucketCursor>,
}

/// Tasks of a bucket, and where the next page begins.
#[derive(Debug, Default)]
pub struct TaskPage {
    pub tasks: Vec<Stored<Task>>,
    /// Those that cannot be read; the errors name them.
    pub unreadable: Vec<Error>,
    pub next: Option<BucketCursor>,
}

/// Parts of a run in the order of its program, and where the next page begins.
#[derive(Clone, Debug)]
pub struct StepPage<T> {
    pub items: Vec<Stored<T>>,
    pub next: Option<StepId>,
}

impl Store {
    /// The runs of some shelves together, newest first.
    pub async fn runs(
        &self,
        shelves: &[RunState],
        after: Option<&BucketCursor>,
        limit: usize,
    ) -> Result<RunPage, Error> {
        let mut records = Vec::new();
        for shelf in shelves {
            let scan = self.bucket_scan(shelf.bucket(), ScanOrder::Descending, after.cloned(), limit);
            records.extend(self.backend.scan(&scan).await?);
        }
        // Between two looks a run can move from one shelf to another and be seen on both.
        records.sort_by_cached_key(|record| std::cmp::Reverse(BucketCursor::of(record)));
        records.dedup_by(|later, earlier| later.key == earlier.key);
        let more = records.len() > limit;
        records.truncate(limit);
        let mut page = RunPage::default();
        if more || records.len() == limit {
            page.next = records.last().map(BucketCursor::of);
        }
        for record in &records {
            match decode(record) {
                Ok(run) => page.runs.push(run),
                Err(error) => page.unreadable.push(Arc::new(error)),
            }
        }
        Ok(page)
    }

    /// The ids of the runs on a shelf, oldest first; whether they can be read is not asked.
    pub async fn ids_on(
        &self,
        from: RunState,
        after: Option<&BucketCursor>,
        limit: usize,
    ) -> Result<Vec<(RunId, BucketCursor)>, Error> {
        let scan = self.bucket_scan(from.bucket(), ScanOrder::Ascending, after.cloned(), limit);
        let records = self.backend.scan(&scan).await?;
        let named =
            records.iter().filter_map(|record| Some((scope::run_of(&record.key)?, BucketCursor::of(record))));
        Ok(named.collect())
    }

    /// Whose outcomes wait for the evaluator, oldest first.
    pub async fn arrived(
        &self,
        after: Option<&BucketCursor>,
        limit: usize,
    ) -> Result<Vec<(RunId, StepId, BucketCursor)>, Error> {
        let scan = self.bucket_scan(bucket::ARRIVED.to_owned(), ScanOrder::Ascending, after.cloned(), limit);
        let records = self.backend.scan(&scan).await?;
        let named = records.iter().filter_map(|record| {
            let step = entity::step_of(&record.key.id, entity::EVENTS)?;
            Some((scope::run_of(&record.key)?, step, BucketCursor::of(record)))
        });
        Ok(named.collect())
    }

    pub async fn steps_page(
        &self,
        run: &RunId,
        after: Option<&StepId>,
        limit: usize,
    ) -> Result<StepPage<Step>, Error> {
        self.page(run, entity::STEPS, entity::STEPS, after, limit).await
    }

    /// The steps below one step, itself first.
    pub async fn steps_within(
        &self,
        run: &RunId,
        within: &StepId,
        after: Option<&StepId>,
        limit: usize,
    ) -> Result<StepPage<Step>, Error> {
        let mut page = self.page(run, entity::STEPS, &entity::step_record(within), after, limit).await?;
        // A text prefix may split a number: `s1` is before `s1b0`, but `sA1` is no level of `sA12`.
        page.items.retain(|step: &Stored<Step>| step.item.id.is_within(within));
        Ok(page)
    }

    pub async fn events_page(
        &self,
        run: &RunId,
        after: Option<&StepId>,
        limit: usize,
    ) -> Result<StepPage<Event>, Error> {
        self.page(run, entity::EVENTS, entity::EVENTS, after, limit).await
    }

    pub async fn tasks_page(
        &self,
        run: &RunId,
        after: Option<&StepId>,
        limit: usize,
    ) -> Result<StepPage<Task>, Error> {
        self.page(run, entity::TASKS, entity::TASKS, after, limit).await
    }

    /// The tasks of a bucket, in its order.
    pub async fn tasks_in(
        &self,
        bucket: &str,
        after: Option<&BucketCursor>,
        limit: usize,
    ) -> Result<TaskPage, Error> {
        let scan = self.bucket_scan(bucket.to_owned(), ScanOrder::Ascending, after.cloned(), limit);
        let records = self.backend.scan(&scan).await?;
        let mut page = TaskPage::default();
        for record in &records {
            match decode(record) {
                Ok(task) => page.tasks.push(task),
                Err(error) => page.unreadable.push(error),
            }
        }
        page.next = records.last().filter(|_| records.len() == limit).map(BucketCursor::of);
        Ok(page)
    }

    async fn page<T: Entity>(
        &self,
        run: &RunId,
        sort: &str,
        prefix: &str,
        after: Option<&StepId>,
        limit: usize,
    ) -> Result<StepPage<T>, Error> {
        let scan = Scan::Scope {
            tenant: self.tenant.clone(),
            scope: run.0.clone(),
            prefix: prefix.to_owned(),
            after: after.map(|step| format!("{sort}{step}")),
            limit,
        };
        let records = self.backend.scan(&scan).await?;
        let next = match records.last() {
            Some(last) if records.len() == limit => entity::step_of(&last.key.id, sort),
            Some(_) | None => None,
        };
        let items = records.iter().map(decode).collect::<Result<_, _>>()?;
        Ok(StepPage { items, next })
    }

    pub(crate) fn bucket_scan(
        &self,
        bucket: String,
        order: ScanOrder,
        after: Option<BucketCursor>,
        limit: usize,
    ) -> Scan {
        Scan::Bucket { tenant: self.tenant.clone(), bucket, ranks: Ranks::All, order, after, limit }
    }
}

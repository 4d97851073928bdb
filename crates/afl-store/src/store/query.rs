//! Lists runs, steps and tasks page by page.

use afl_engine::evaluation::StoredRecord;
use afl_engine::event::Event;
use afl_engine::id::{RunId, StepId};
use afl_engine::run::Run;
use afl_engine::step::Step;
use afl_engine::task::Task;

use super::entity::{self, Entity, decode};
use super::{Error, RunState, Store, bucket, scope};
use crate::backend::{BucketCursor, Ranks};
use crate::paging::last_if_full;
use crate::record::Record;

/// Records of a bucket, and where the next page begins.
#[derive(Debug)]
pub struct BucketPage<T> {
    pub items: Vec<T>,
    /// The errors of records that cannot be read; each names its record.
    pub unreadable: Vec<Error>,
    pub next: Option<BucketCursor>,
}

impl<T> BucketPage<T> {
    pub(crate) fn read(records: &[Record], limit: usize, read: impl Fn(&Record) -> Result<T, Error>) -> Self {
        let next = last_if_full(records, limit).map(BucketCursor::of);
        let mut page = Self { items: Vec::new(), unreadable: Vec::new(), next };
        for record in records {
            match read(record) {
                Ok(item) => page.items.push(item),
                Err(error) => page.unreadable.push(error),
            }
        }
        page
    }
}

/// Parts of a run in the order of its program, and where the next page begins.
#[derive(Clone, Debug)]
pub struct StepPage<T> {
    pub items: Vec<StoredRecord<T>>,
    pub next: Option<StepId>,
}

impl Store {
    /// The runs of some shelves together, newest first.
    pub async fn runs(
        &self,
        shelves: &[RunState],
        after: Option<&BucketCursor>,
        limit: usize,
    ) -> Result<BucketPage<StoredRecord<Run>>, Error> {
        let mut records = Vec::new();
        for shelf in shelves {
            records.extend(self.scan_newest(shelf.bucket(), after, limit).await?);
        }
        // Between two looks a run can move from one shelf to another and be seen on both.
        records.sort_by_cached_key(|record| std::cmp::Reverse(BucketCursor::of(record)));
        records.dedup_by(|later, earlier| later.key == earlier.key);
        records.truncate(limit);
        Ok(BucketPage::read(&records, limit, decode))
    }

    /// The ids of the runs on a shelf, oldest first; whether they can be read is not asked.
    pub async fn ids_on(
        &self,
        from: RunState,
        after: Option<&BucketCursor>,
        limit: usize,
    ) -> Result<Vec<(RunId, BucketCursor)>, Error> {
        let records = self.scan_bucket(from.bucket(), Ranks::All, after, limit).await?;
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
        let records = self.scan_bucket(bucket::ARRIVED, Ranks::All, after, limit).await?;
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
        page.items.retain(|step: &StoredRecord<Step>| step.item.id.is_within(within));
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
    ) -> Result<BucketPage<StoredRecord<Task>>, Error> {
        let records = self.scan_bucket(bucket, Ranks::All, after, limit).await?;
        Ok(BucketPage::read(&records, limit, decode))
    }

    async fn page<T: Entity>(
        &self,
        run: &RunId,
        sort: &str,
        prefix: &str,
        after: Option<&StepId>,
        limit: usize,
    ) -> Result<StepPage<T>, Error> {
        let after = after.map(|step| format!("{sort}{step}"));
        let records = self.scan_scope(run.0.clone(), prefix, after, limit).await?;
        let next = last_if_full(&records, limit).and_then(|last| entity::step_of(&last.key.id, sort));
        let items = records.iter().map(decode).collect::<Result<_, _>>()?;
        Ok(StepPage { items, next })
    }
}

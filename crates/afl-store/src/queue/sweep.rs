//! The janitor's round: silent holders, timers that fire, due retries, tasks that were put aside.

use afl_engine::event::Event;
use afl_engine::id::{RunId, StepId};
use afl_engine::run::Control;
use afl_engine::task::{MoveRefusal, Task};
use afl_engine::time::Millis;
use std::sync::Arc;

use super::outcome;
use super::settle::Basis;
use super::{Queue, SettleResult};
use crate::backend::{BucketCursor, ClockStatus, Decision, Durability, Head, Ranks, Take, TakeMoment};
use crate::notification::NotifyOn;
use crate::paging::{Pages, last_if_full};
use crate::record::Record;
use crate::store::{Defect, Error, StoredRecord, bucket, decode, encode, task_record};

/// How many records of a bucket one round looks at.
const PAGE: usize = 500;

/// The work of a round, and when the next is due.
#[derive(Debug, Default)]
pub struct SweepReport {
    /// Tasks that others may claim again.
    pub requeued: usize,
    /// Retries whose time has come.
    pub due: usize,
    /// Tasks that were put aside and may be claimed again.
    pub returned: usize,
    /// Steps whose event has its outcome; wake the evaluator.
    pub arrived: Vec<(RunId, StepId)>,
    /// Errors of records that could not be read, so that the round skipped them.
    pub unreadable: Vec<Error>,
    /// The first time at which something is to be done.
    pub next: Option<Millis>,
}

impl SweepReport {
    fn note_next(&mut self, head: &Head) {
        let at = Millis(head.rank);
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    /// Returns the errors that end the round.
    fn note_error(&mut self, error: Error) -> Result<(), Error> {
        if error.is_damage() {
            self.unreadable.push(error);
        } else if !error.is_conflict() {
            return Err(error);
        }
        // In a conflict the holder or another janitor was faster.
        Ok(())
    }
}

/// When a janitor has work next, as one look saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upkeep {
    pub now: Millis,
    /// The first thing that has a time, if it has come or not.
    pub next: Option<Millis>,
}

impl Upkeep {
    pub fn is_due(&self) -> bool {
        self.next.is_some_and(|next| next <= self.now)
    }
}

impl Queue {
    /// Looks whether a round has something to do that cannot wait.
    pub async fn upkeep(&self) -> Result<Upkeep, Error> {
        let running = self.store.heads(bucket::RUNNING).await?;
        let timers = self.timers().await?;
        let next = running.iter().chain(&timers).map(|head| Millis(head.rank)).min();
        Ok(Upkeep { now: self.store.now().await?, next })
    }

    /// The heads of all timers, those of wall time by the store's clock.
    async fn timers(&self) -> Result<Vec<Head>, Error> {
        let mut timers = self.store.heads(bucket::TIMERS).await?;
        if let Some(until) = timers.iter_mut().find(|head| head.bucket == bucket::UNTIL) {
            let clock = self.store.clock().await?;
            until.rank = until.rank.saturating_sub(clock.wall.since(clock.now).0);
        }
        Ok(timers)
    }

    /// One round. It is safe for many to do it at once.
    pub async fn sweep_once(&self) -> Result<SweepReport, Error> {
        let mut swept = SweepReport::default();
        for head in self.timers().await? {
            if head.bucket == bucket::RETRIES {
                self.sweep_retries(&head, &mut swept).await?;
            } else {
                self.sweep_settling(&head, &mut swept).await?;
            }
        }
        for head in self.store.heads(bucket::RUNNING).await? {
            self.sweep_settling(&head, &mut swept).await?;
        }
        self.sweep_aside(&mut swept).await?;
        Ok(swept)
    }

    /// Settles the tasks of a bucket that are due: their holder fell silent, their timer fires or their time is over.
    async fn sweep_settling(&self, head: &Head, swept: &mut SweepReport) -> Result<(), Error> {
        let status = self.store.clock().await?;
        if head.rank > status.now.0 {
            swept.note_next(head);
            return Ok(());
        }
        let clock = if head.bucket == bucket::UNTIL { status.wall } else { status.now };
        let mut pages = Pages::first();
        while !pages.is_over() {
            let due = Ranks::UpTo(clock.0);
            let page = self.store.scan_bucket(&head.bucket, due, pages.after(), PAGE).await?;
            for record in &page {
                self.sweep_one(record, status, swept).await?;
            }
            // Unreadable records stay where they are, and the records behind them are swept too.
            pages.follow(last_if_full(&page, PAGE).map(BucketCursor::of));
        }
        self.look_for_next(&head.bucket, swept).await
    }

    async fn sweep_one(
        &self,
        record: &Record,
        clock: ClockStatus,
        swept: &mut SweepReport,
    ) -> Result<(), Error> {
        let ended = match self.task_of(record).await {
            Ok(Some(task)) => self.settle_due(task, clock).await,
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        match ended {
            Ok(Some(SettleResult::Arrived(event))) => {
                swept.arrived.extend(crate::store::run_of(&record.key).map(|run| (run, event.item.step_id)));
            }
            Ok(Some(SettleResult::Again { .. })) => swept.requeued += 1,
            Ok(Some(SettleResult::Repeated) | None) => {}
            Err(error) => swept.note_error(error)?,
        }
        Ok(())
    }

    /// The task of a record that is a task or its event; `None` when its run was deleted meanwhile.
    async fn task_of(&self, record: &Record) -> Result<Option<StoredRecord<Task>>, Error> {
        if record.content.place.as_ref().is_none_or(|place| place.bucket != bucket::TIMEOUTS) {
            return decode::<Task>(record).map(Some);
        }
        let step = decode::<Event>(record)?.item.step_id;
        match crate::store::run_of(&record.key) {
            Some(run) => self.store.task(&run, &step).await,
            None => Ok(None),
        }
    }

    /// Settles one task if it is due. Reads nothing of other tasks, and leaves an unreadable one to the doctor.
    pub async fn sweep_task(&self, task: StoredRecord<Task>, clock: ClockStatus) -> Result<(), Error> {
        match self.settle_due(task, clock).await {
            Err(Error::Unreadable { .. } | Error::Shared { .. }) => Ok(()),
            // The holder or a janitor was faster.
            Err(error) if error.is_conflict() => Ok(()),
            ended => ended.map(drop),
        }
    }

    async fn settle_due(
        &self,
        task: StoredRecord<Task>,
        clock: ClockStatus,
    ) -> Result<Option<SettleResult>, Error> {
        let (run, step) = (&task.item.workflow_id, &task.item.step_id);
        let key = self.store.run_key(run, task_record(step));
        let Some(StoredRecord::<Event> { item: event, version }) = self.store.event(run, step).await? else {
            return Err(Error::unreadable(&key, Defect::Missing));
        };
        let basis = Basis { task: task.version, event: version };
        let refused = |refusal: MoveRefusal| Error::unreadable(&key, Defect::Body(refusal.to_string()));
        let Some(outcome) = outcome::due(task.item, event, clock).map_err(refused)? else {
            return Ok(None);
        };
        self.write_outcome(outcome, basis, NotifyOn::OnErrors, clock.now).await.map(Some)
    }

    /// Retries whose time has come go back to their queues.
    async fn sweep_retries(&self, head: &Head, swept: &mut SweepReport) -> Result<(), Error> {
        let now = self.store.now().await?;
        if head.rank > now.0 {
            swept.note_next(head);
            return Ok(());
        }
        let make_due = |mut task: Task, now: Millis| {
            task.not_before.is_some_and(|at| at <= now).then(|| {
                task.make_due();
                task
            })
        };
        swept.due += self.move_all(bucket::RETRIES.to_owned(), Ranks::UpTo(now.0), make_due).await?;
        self.look_for_next(bucket::RETRIES, swept).await
    }

    async fn sweep_aside(&self, swept: &mut SweepReport) -> Result<(), Error> {
        for bucket in self.store.buckets(bucket::HELD).await? {
            let run = RunId(bucket[bucket::HELD.len()..].into());
            match self.return_aside(&run).await {
                Ok(returned) => swept.returned += returned,
                Err(error) => swept.note_error(error)?,
            }
        }
        Ok(())
    }

    /// Tasks of a run that goes on return to their queues.
    pub async fn return_aside(&self, run: &RunId) -> Result<usize, Error> {
        if self.store.run(run).await?.is_none_or(|run| run.item.control != Control::Go) {
            return Ok(0);
        }
        self.move_all(bucket::held(run), Ranks::All, |task, _| Some(task)).await
    }

    /// Changes the tasks of a bucket and puts each where it belongs then. Says how many were moved. A damaged task stays
    /// where it is, for the doctor to find.
    async fn move_all(
        &self,
        bucket: String,
        ranks: Ranks,
        change: impl Fn(Task, Millis) -> Option<Task> + Copy + Send + Sync + 'static,
    ) -> Result<usize, Error> {
        let (mut moved, mut after) = (0, None);
        loop {
            let take = Take {
                tenant: self.store.tenant().clone(),
                bucket: bucket.clone(),
                ranks,
                after,
                limit: PAGE,
                max_in_bucket: None,
                durability: Durability::Relaxed,
                decide: Arc::new(move |record, TakeMoment { now, .. }| {
                    let task = decode::<Task>(record).ok().and_then(|task| change(task.item, now));
                    Decision::from(task.map(|task| encode(&record.key, &task, now)))
                }),
                also_read: None,
            };
            let taken = self.store.backend().take(take).await?;
            moved += taken.moved.len();
            if taken.moved.len() < PAGE && taken.gave_up_at.is_none() {
                return Ok(moved);
            }
            after = taken.gave_up_at;
        }
    }

    async fn look_for_next(&self, name: &str, swept: &mut SweepReport) -> Result<(), Error> {
        let heads = if name.starts_with(bucket::TIMERS) {
            self.timers().await?
        } else {
            self.store.heads(name).await?
        };
        heads.iter().filter(|head| head.bucket == name).for_each(|head| swept.note_next(head));
        Ok(())
    }
}

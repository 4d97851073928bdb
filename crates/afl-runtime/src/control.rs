//! Pauses, resumes and cancels runs. The intent is committed first and carried out afterwards, so after a crash any
//! driver that finds the intent completes it.

use afl_engine::evaluation::{Evaluation, StoredRecord, SuspendedRun, Wants};
use afl_engine::history::Actor;
use afl_engine::id::{RunId, StepId};
use afl_engine::run::{Active, Control, Run, RunStatus};
use afl_engine::step::Step;
use afl_store::backend::Durability;
use afl_store::conflict::CONFLICT_TRIES;
use afl_store::memory::LIMITS;
use afl_store::outbox::MAX_CHANNELS;
use afl_store::paging::Pages;
use afl_store::store::step_record;

use crate::drive::damaged;
use crate::error::{Contention, Error, StateRefusal};
use crate::serve::Wake;
use crate::service::Service;

/// How many steps one commit of a cancel ends.
const ENDED_AT_ONCE: usize = 250;
/// A step with its event, its task, and the history of both.
const WRITES_OF_AN_END: usize = 6;
// Each end adds a message for every channel, and concurrent callers may open a few channels above the limit.
const _: () = assert!(ENDED_AT_ONCE * (WRITES_OF_AN_END + 2 * MAX_CHANNELS) <= LIMITS.batch_writes);

/// The records that a cancel ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CancelResult {
    Run,
    /// There was no run yet, and there will be none.
    Start,
}

impl Service {
    /// Nothing of the run is evaluated or handed out from now on. Work that agents have already may be finished,
    /// and its outcome waits. Holding a held run changes nothing.
    pub async fn pause(&self, run: &RunId) -> Result<(), Error> {
        self.set_control(run, Control::Hold, "pause").await
    }

    pub async fn resume(&self, run: &RunId) -> Result<(), Error> {
        self.set_control(run, Control::Go, "resume").await?;
        self.queue.return_aside(run).await?;
        self.wake(Wake::Look);
        Ok(())
    }

    /// Ends the run: no task is created from now on, late results are refused. When it returns, everything of the
    /// run has ended. Canceling a canceled run changes nothing. A start that is left to a runner and not made yet is
    /// taken back instead.
    pub async fn cancel(&self, run: &RunId) -> Result<CancelResult, Error> {
        if self.is_start_taken_back(run).await? {
            return Ok(CancelResult::Start);
        }
        match self.set_control(run, Control::Cancel, "cancel").await {
            Err(Error::Refused(StateRefusal::Ended { status: RunStatus::Canceled, .. })) => {
                return Ok(CancelResult::Run);
            }
            outcome => outcome?,
        }
        self.end_canceled(run, &self.actor).await?;
        Ok(CancelResult::Run)
    }

    async fn set_control(&self, id: &RunId, control: Control, verb: &'static str) -> Result<(), Error> {
        let attempt = || async {
            let StoredRecord { item: run, version } = self.existing(id).await?;
            if run.status.is_terminal() {
                return Err(StateRefusal::Ended { run: id.clone(), status: run.status, verb }.into());
            }
            match (run.control, control) {
                (now, asked) if now == asked => return Ok(()),
                (Control::Cancel, _) => return Err(StateRefusal::Canceling { run: id.clone() }.into()),
                (Control::Go | Control::Hold, _) => {}
            }
            // A resumed run is tried anew.
            let (quarantine, evaluating) = (None, None);
            let updated = self.store.now().await?;
            let item = Run { control, quarantine, evaluating, updated, ..run };
            Ok(self.store.save_run(&StoredRecord { item, version }, Durability::Durable).await?)
        };
        self.redo(Contention::of_run(id), attempt).await
    }

    /// Ends all that is open in a run with the intent to cancel, page by page, the run itself last.
    pub(crate) async fn end_canceled(&self, id: &RunId, by: &Actor) -> Result<(), Error> {
        self.redo(Contention::of_run(id), || self.try_end_canceled(id, by)).await
    }

    /// Repeats an attempt, its reads too, until neither another writer nor a crash of the database comes between.
    pub(crate) async fn redo<T, F: Future<Output = Result<T, Error>>>(
        &self,
        contention: Contention,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, Error> {
        for _ in 0..CONFLICT_TRIES {
            let epoch = self.store.epoch();
            match attempt().await {
                Err(error) if error.is_conflict() || self.is_torn(&error, epoch) => {}
                outcome => return outcome,
            }
        }
        Err(contention.into())
    }

    async fn try_end_canceled(&self, id: &RunId, by: &Actor) -> Result<(), Error> {
        let SuspendedRun { run, active } = self.suspended(id).await?;
        if run.item.status.is_terminal() {
            return Ok(());
        }
        let now = self.store.now().await?;
        let plan = self.plan_of(&run.item).await?;
        // Nothing is evaluated any more, so nothing is active.
        let active = active.map(|active| StoredRecord { item: Active::default(), ..active });
        let suspended = SuspendedRun { run, active };
        let mut evaluator = Evaluation::resume(plan, suspended, now, self.options);
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.store.steps_page(id, pages.after(), ENDED_AT_ONCE).await?;
            pages.follow(page.next);
            let open: Vec<_> = page.items.into_iter().filter(|step| !step.item.is_terminal()).collect();
            let steps: Vec<StepId> = open.iter().map(|step| step.item.id.clone()).collect();
            self.supply_with_work(&mut evaluator, open).await?;
            for step in steps {
                evaluator.cancel(step, by.clone());
            }
            self.evaluate(&mut evaluator, now, Durability::Relaxed).await?;
        }
        // A scan may be older than the run: the run ends when its own counters say that nothing is open.
        if evaluator.run().counts.open() > 0 {
            return Err(Error::overtaken());
        }
        evaluator.finish_canceled();
        self.evaluate(&mut evaluator, now, Durability::Durable).await
    }

    /// Steps with their events and tasks, in one look instead of one for each.
    pub(crate) async fn supply_with_work(
        &self,
        evaluation: &mut Evaluation,
        steps: Vec<StoredRecord<Step>>,
    ) -> Result<(), Error> {
        let mut wants = Wants::default();
        let run = evaluation.run().id.clone();
        for step in steps {
            wants.add_work(&step.item);
            let id = step.item.id.clone();
            let record = step_record(&id);
            evaluation.supply_step(id, Some(step)).map_err(|damage| damaged(&run, record, &damage))?;
        }
        self.supply(evaluation, &wants).await
    }

    pub(crate) async fn existing(&self, id: &RunId) -> Result<StoredRecord<Run>, Error> {
        self.store.run(id).await?.ok_or_else(|| Error::no_run(id))
    }

    pub(crate) async fn suspended(&self, id: &RunId) -> Result<SuspendedRun, Error> {
        self.store.suspended(id).await?.ok_or_else(|| Error::no_run(id))
    }
}

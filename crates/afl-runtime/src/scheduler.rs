//! The runs that a driver has in hand: one evaluation each, and the outcomes that arrive meanwhile.
//!
//! Problem: outcomes of one run arrive while it is being driven, from wake-ups and from scans that overlap. Two drives of
//! one run in one process would only refuse each other's commits, and a new evaluation for each outcome would read again.
//!
//! Approach: a run has one slot, whose state says whether it is idle, ready, busy, or busy with more to do. A busy run
//! collects its arrivals for the next drive. An idle run keeps its evaluation until 256 others were used after it. A run
//! whose records are damaged is quarantined with its reason, until the next scan of everything.
//!
//! Rejected: a lock for each run around independent drives. Waiting drives would hold stale reads.

use std::collections::{BTreeMap, HashMap, VecDeque};

use afl_engine::evaluation::Evaluation;
use afl_engine::id::RunId;
use afl_engine::run::Control;

use crate::drive::{Arrival, DriveResult, RunWork};

/// How many runs are evaluated at once.
const AT_ONCE: usize = 64;
/// How many evaluations are kept for the next arrival of their run.
const HOT: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct RunScheduler {
    slots: HashMap<RunId, RunSlot>,
    ready: VecDeque<RunId>,
    busy: usize,
    /// Counts uses, to find the one longest unused.
    uses: u64,
    idle: BTreeMap<u64, RunId>,
    quarantined: BTreeMap<RunId, String>,
}

#[derive(Debug)]
struct RunSlot {
    state: SlotState,
    arrivals: Vec<Arrival>,
    hot: Option<Box<Evaluation>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SlotState {
    /// Nothing to do; kept because it is hot.
    Idle {
        used: u64,
    },
    Ready,
    Busy,
    /// Being driven, and to be driven once more.
    BusyAgain,
}

impl RunScheduler {
    /// A run has something to do.
    pub(crate) fn note(&mut self, work: RunWork) {
        if self.quarantined.contains_key(&work.run) {
            return;
        }
        let slot = self.slots.entry(work.run.clone()).or_insert_with(|| RunSlot {
            state: SlotState::Idle { used: 0 },
            arrivals: Vec::new(),
            hot: None,
        });
        slot.arrivals.extend(work.arrivals);
        match slot.state {
            SlotState::Idle { used } => {
                self.idle.remove(&used);
                slot.state = SlotState::Ready;
                self.ready.push_back(work.run);
            }
            SlotState::Busy => slot.state = SlotState::BusyAgain,
            SlotState::Ready | SlotState::BusyAgain => {}
        }
    }

    /// Takes work that a scan found, and returns whether it did. A run that is queued or being driven is left alone: its
    /// wake-up may have come before the scan, and if it has not, the next scan finds the run again.
    pub(crate) fn note_found(&mut self, work: RunWork) -> bool {
        let state = self.slots.get(&work.run).map(|slot| slot.state);
        match state {
            Some(SlotState::Ready | SlotState::Busy | SlotState::BusyAgain) => false,
            Some(SlotState::Idle { .. }) | None => {
                self.note(work);
                true
            }
        }
    }

    /// Keeps an evaluation that was made elsewhere in this process, unless a newer one is here. If it is outdated all
    /// the same, its next commit is refused.
    pub(crate) fn adopt(&mut self, evaluator: Box<Evaluation>) {
        let run = evaluator.run().id.clone();
        // No driver evaluates a held run, and a resumed run is evaluated from its stored records.
        if evaluator.run().status.is_terminal() || evaluator.run().control != Control::Go {
            return;
        }
        match self.slots.get_mut(&run) {
            Some(slot) => {
                let both = [Some(evaluator), slot.hot.take()].into_iter().flatten();
                slot.hot = both.max_by_key(|hot| hot.run_version());
            }
            None => self.rest(run, evaluator),
        }
    }

    /// Continues an evaluation that was begun elsewhere in this process.
    pub(crate) fn take_over(&mut self, evaluator: Box<Evaluation>) {
        let run = evaluator.run().id.clone();
        self.adopt(evaluator);
        self.note(RunWork { run, arrivals: Vec::new() });
    }

    /// The next run to drive, if one more may be driven now.
    pub(crate) fn next(&mut self) -> Option<(RunWork, Option<Box<Evaluation>>)> {
        if self.busy >= AT_ONCE {
            return None;
        }
        let run = self.ready.pop_front()?;
        let slot = self.slots.get_mut(&run).expect("a ready run has a slot");
        slot.state = SlotState::Busy;
        self.busy += 1;
        let arrivals = std::mem::take(&mut slot.arrivals);
        Some((RunWork { run, arrivals }, slot.hot.take()))
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy > 0
    }

    pub(crate) fn done(&mut self, run: &RunId, driven: DriveResult) {
        self.busy -= 1;
        let slot = self.slots.get_mut(run).expect("a driven run has a slot");
        // An evaluation may have been adopted during the drive; the newer one knows more.
        let hot = [slot.hot.take(), driven.hot].into_iter().flatten().max_by_key(|hot| hot.run_version());
        match (slot.state, hot) {
            (SlotState::BusyAgain, hot) => {
                slot.hot = hot;
                slot.state = SlotState::Ready;
                self.ready.push_back(run.clone());
            }
            (SlotState::Idle { .. } | SlotState::Ready | SlotState::Busy, Some(hot)) => {
                self.rest(run.clone(), hot);
            }
            (SlotState::Idle { .. } | SlotState::Ready | SlotState::Busy, None) => {
                self.slots.remove(run);
            }
        }
    }

    /// The run could not be driven; the next look finds its arrivals again.
    pub(crate) fn abandon(&mut self, run: &RunId) {
        self.busy -= 1;
        self.slots.remove(run);
    }

    pub(crate) fn quarantine(&mut self, run: &RunId, reason: String) {
        self.abandon(run);
        self.quarantined.insert(run.clone(), reason);
    }

    /// An operator may have repaired the runs.
    pub(crate) fn clear_quarantine(&mut self) {
        self.quarantined.clear();
    }

    pub(crate) fn quarantined(&self) -> &BTreeMap<RunId, String> {
        &self.quarantined
    }

    fn rest(&mut self, run: RunId, hot: Box<Evaluation>) {
        self.uses += 1;
        let state = SlotState::Idle { used: self.uses };
        self.idle.insert(self.uses, run.clone());
        self.slots.insert(run, RunSlot { state, arrivals: Vec::new(), hot: Some(hot) });
        if self.idle.len() > HOT
            && let Some((_, coldest)) = self.idle.pop_first()
        {
            self.slots.remove(&coldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use afl_engine::evaluation::{Advance, Budget, Evaluation, Options, Start};
    use afl_engine::id::StepId;
    use afl_engine::plan::Plan;
    use afl_engine::time::Millis;
    use afl_engine::trace::Tracing;
    use afl_engine::value::Map;
    use afl_engine::version::Epoch;

    use super::*;
    use crate::drive::DriveStatus;

    fn work(run: &str) -> RunWork {
        let arrivals = vec![Arrival { step: StepId::root(), event: None }];
        RunWork { run: RunId(run.into()), arrivals }
    }

    fn driven() -> DriveResult {
        DriveResult { status: DriveStatus::Held, hot: None, was_cold: true }
    }

    #[test]
    fn a_wake_up_during_a_drive_is_driven_after_it_by_the_same_evaluator() {
        let mut scheduler = RunScheduler::default();
        scheduler.note(work("a"));
        let (first, _) = scheduler.next().expect("a run is ready");
        scheduler.note(work("a"));
        scheduler.note(work("a"));
        assert!(scheduler.next().is_none(), "one evaluator for one run");
        scheduler.done(&first.run, driven());
        let (second, _) = scheduler.next().expect("it goes on");
        assert_eq!(second.arrivals.len(), 2);
        scheduler.done(&second.run, driven());
        assert!(scheduler.next().is_none() && scheduler.slots.is_empty());
    }

    #[test]
    fn no_more_runs_are_driven_at_once_than_allowed_and_the_others_wait() {
        let mut scheduler = RunScheduler::default();
        let runs: Vec<String> = (0..AT_ONCE + 5).map(|at| at.to_string()).collect();
        for run in &runs {
            scheduler.note(work(run));
        }
        let at_once: Vec<_> = std::iter::from_fn(|| scheduler.next()).collect();
        assert_eq!(at_once.len(), AT_ONCE);
        for (work, _) in at_once {
            scheduler.done(&work.run, driven());
        }
        assert_eq!(std::iter::from_fn(|| scheduler.next()).count(), 5);
    }

    /// An evaluation of one run that waits, after so many commits.
    fn evaluator(epoch: u64, commits: u64) -> Box<Evaluation> {
        let text = "event facet E()\nworkflow W() andThen { e = E() }";
        let plan = Arc::new(Plan::new(&crate::compile("w.afl", text).expect("it compiles")));
        let start = Start {
            id: RunId("a".into()),
            workflow: "W".into(),
            inputs: Map::new(),
            labels: BTreeMap::new(),
            idempotency_key: None,
            epoch: Epoch(epoch),
        };
        let budget = Budget { writes: 1_000, bytes: 1 << 20 };
        let options = Options { budget, tracing: Tracing::LogsOnly };
        let mut evaluation = Evaluation::start(plan, start, Millis(1), options).expect("it starts");
        assert_eq!(evaluation.advance(Millis(1)), Advance::Rest);
        for _ in 0..commits {
            evaluation.committed();
        }
        Box::new(evaluation)
    }

    #[test]
    fn of_two_evaluators_of_a_run_the_newer_is_kept() {
        // An evaluator of an earlier epoch may hold lost commits, however many it has made.
        for (here, adopted, newer) in
            [((0, 1), (0, 3), (0, 3)), ((0, 3), (0, 1), (0, 3)), ((0, 3), (1, 1), (1, 1))]
        {
            let of = |(epoch, commits)| evaluator(epoch, commits);
            let newer = of(newer).run_version();
            let mut scheduler = RunScheduler::default();
            scheduler.adopt(of(here));
            scheduler.adopt(of(adopted));
            scheduler.note(work("a"));
            let (work, hot) = scheduler.next().expect("a run is ready");
            assert_eq!(hot.expect("it is hot").run_version(), newer);
            scheduler.adopt(of(adopted));
            let (status, hot) = (DriveStatus::Held, Some(of(here)));
            scheduler.done(&work.run, DriveResult { status, hot, was_cold: false });
            scheduler.note(work);
            let (_, hot) = scheduler.next().expect("it goes on");
            assert_eq!(hot.expect("it is hot").run_version(), newer);
        }
    }

    #[test]
    fn a_quarantined_run_is_left_alone_until_the_quarantine_is_cleared() {
        let mut scheduler = RunScheduler::default();
        scheduler.note(work("a"));
        let (hurt, _) = scheduler.next().expect("a run is ready");
        scheduler.quarantine(&hurt.run, "damaged".to_owned());
        scheduler.note(work("a"));
        assert!(scheduler.next().is_none());
        scheduler.clear_quarantine();
        scheduler.note(work("a"));
        assert!(scheduler.next().is_some());
    }
}

//! An operator who holds a run for a while, cancels it, retries failed steps, or reports their outcome, at any time.

use std::cell::RefCell;
use std::rc::Rc;

use afl_engine::attribute::ValueRef;
use afl_engine::id::{RunId, StepId};
use afl_engine::value::Value;
use afl_runtime::{Again, AnswerResult, Error, ReportedOutcome, Service, StepView};
use afl_store::seed::SeededRng;
use serde_json::json;

use crate::agent::{Log, Mood};
use crate::executor::turn;
use crate::random::answer;
use crate::world::People;

pub(crate) struct Operator {
    pub(crate) service: Service,
    pub(crate) run: RunId,
    pub(crate) rng: SeededRng,
    pub(crate) log: Rc<RefCell<Log>>,
    pub(crate) mood: Rc<RefCell<Mood>>,
    pub(crate) people: People,
}

impl Operator {
    pub(crate) async fn live(mut self) {
        loop {
            // A request that the store or the run refuses is tried another time, and often nothing has failed.
            match (self.rng.below(16), self.people) {
                (0 | 1, People::Retry) => {
                    let again = self.choose().await;
                    drop(self.service.retry(&self.run, &again).await);
                }
                (2, People::Retry) => self.decide().await,
                (3, _) if *self.mood.borrow() == Mood::Bad => drop(self.service.pause(&self.run).await),
                (4..8, _) => drop(self.service.resume(&self.run).await),
                (8, People::Cancel) if self.rng.below(8) == 0 => {
                    drop(self.service.cancel(&self.run).await);
                }
                _ => {}
            }
            turn().await;
        }
    }

    /// All failures, or those within one step.
    async fn choose(&mut self) -> Again {
        if self.rng.below(2) == 0 {
            return Again::Run;
        }
        let mut failed: Vec<StepId> = self
            .steps()
            .await
            .into_iter()
            .filter(|view| view.step.error.is_some())
            .map(|view| view.id)
            .collect();
        if failed.is_empty() {
            return Again::Run;
        }
        let step = failed.swap_remove(self.rng.below(failed.len()));
        if self.rng.below(3) == 0 {
            return Again::Within(step);
        }
        // A person who names a step says that its work did not happen.
        self.log.borrow_mut().permit(format!("{}/{step}", self.run));
        Again::Step(step)
    }

    /// Says what an agent would, of a step whose work failed or is open; in bad times also that it failed.
    async fn decide(&mut self) {
        let mut asked: Vec<StepView> = self.steps().await;
        asked.retain(|view| view.task.is_some() && view.step.state != afl_engine::State::Complete);
        if asked.is_empty() {
            return;
        }
        let view = asked.swap_remove(self.rng.below(asked.len()));
        let payload = &view.event.as_ref().expect("a task has an event").payload;
        let (Some(ValueRef::Inline(Value::String(key))), Some(ValueRef::Inline(by))) =
            (payload.get("key"), payload.get("by"))
        else {
            return;
        };
        if *self.mood.borrow() == Mood::Bad && self.rng.below(3) == 0 {
            let verdict = ReportedOutcome::Failed { message: "the operator says so".to_owned() };
            drop(self.service.answer(&self.run, &view.id, &verdict).await);
            return;
        }
        let out = answer(by.as_i64().expect("work has a number"));
        let result = json!({"out": out}).as_object().expect("a map").clone();
        // Whatever an agent did of it does not count.
        *self.log.borrow_mut().done.entry(key.clone()).or_default() += 1;
        self.log.borrow_mut().unknown += 1;
        let answered = self.service.answer(&self.run, &view.id, &ReportedOutcome::Done(result)).await;
        let mut log = self.log.borrow_mut();
        match answered {
            Ok(AnswerResult::Now) => *log.accepted.entry(key.clone()).or_default() += 1,
            Err(Error::Contended(_) | Error::Unavailable(_) | Error::Damaged(_)) => return,
            Ok(AnswerResult::Before) | Err(_) => {}
        }
        log.unknown -= 1;
    }

    async fn steps(&self) -> Vec<StepView> {
        const SEEN: usize = 1_000;
        match self.service.steps(&self.run, None, None, SEEN).await {
            Ok(list) => list.steps,
            // It looks another time.
            Err(_) => Vec::new(),
        }
    }
}

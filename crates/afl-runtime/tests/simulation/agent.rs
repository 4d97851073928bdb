//! An agent that does the work of random programs, well or badly.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use afl_engine::event::{EventError, WorkEvidence};
use afl_engine::id::StepId;
use afl_engine::policy::Effect;
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_runtime::Service;
use afl_store::queue::{Claim, ClaimRequest, FacetFilter, Refusal, SettleResult, Ticket};
use afl_store::seed::SeededRng;
use serde_json::json;

use crate::executor::turn;
use crate::random::{answer, is_refused};
use crate::world::People;

pub(crate) const LEASE: Millis = Millis(60_000);
const FACETS: [&str; 2] = ["Inc", "Risk"];

/// The effects outside the store.
#[derive(Default)]
pub(crate) struct Log {
    /// How often the work for a key was begun.
    pub(crate) done: BTreeMap<String, usize>,
    /// How often an outcome for a key was accepted, by the answers to the agent.
    pub(crate) accepted: BTreeMap<String, usize>,
    /// Outcomes without an answer to the agent.
    pub(crate) unknown: usize,
    /// How often work that must happen at most once was begun, by the key of its task.
    begun: BTreeMap<String, usize>,
    /// How often it may be begun again: a person named it, or its agent said that nothing happened.
    permits: BTreeMap<String, usize>,
    /// The secret of the claim that each token of a step was given to.
    tokens: BTreeMap<(StepId, u64), String>,
}

impl Log {
    /// G3: systems outside fence by the token, so no two claims of a task have the same.
    fn note_token(&mut self, ticket: &Ticket) {
        let given = self.tokens.entry((ticket.step.clone(), ticket.token));
        let secret = given.or_insert_with(|| ticket.secret.clone());
        assert_eq!(*secret, ticket.secret, "token {} of {} was given twice", ticket.token, ticket.step);
    }

    pub(crate) fn permit(&mut self, task: String) {
        *self.permits.entry(task).or_default() += 1;
    }

    /// G4: work that must happen at most once begins again by permission only.
    fn begin(&mut self, task: String) {
        let permits = self.permits.get(&task).copied().unwrap_or_default();
        let begun = self.begun.entry(task).or_default();
        *begun += 1;
        assert!(*begun <= 1 + permits, "once-work was begun {begun} times with {permits} permissions");
    }
}

/// The answer of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reply {
    Result,
    Refusal(WorkEvidence),
    /// A result that does not fit the facet.
    Misfit,
}

#[derive(Clone)]
pub(crate) struct Agent {
    pub(crate) service: Service,
    pub(crate) log: Rc<RefCell<Log>>,
    pub(crate) rng: Rc<RefCell<SeededRng>>,
    pub(crate) name: String,
    pub(crate) mood: Rc<RefCell<Mood>>,
    pub(crate) people: People,
}

/// Whether agents misbehave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    Bad,
    Good,
}

impl Agent {
    pub(crate) async fn live(self) {
        loop {
            let max = 1 + self.below(3);
            // No agent takes `Never`.
            let facets = FacetFilter::Only(FACETS.map(str::to_owned).into());
            let request = ClaimRequest { max, lease: LEASE, ..ClaimRequest::new(facets, &self.name) };
            if let Ok(claims) = self.service.claim(&request).await {
                for claim in claims {
                    self.log.borrow_mut().note_token(&claim.ticket);
                    self.work(claim).await;
                }
            }
            turn().await;
        }
    }

    async fn work(&self, claim: Claim) {
        let key = claim.payload["key"].as_str().expect("work has a key").to_owned();
        *self.log.borrow_mut().done.entry(key.clone()).or_default() += 1;
        if claim.task.policy.effect == Some(Effect::Once) {
            self.log.borrow_mut().begin(claim.idempotency_key());
        }
        let is_bad = *self.mood.borrow() == Mood::Bad;
        // Some deliveries must be left for those who behave.
        if is_bad && claim.task.deliveries < 3 && self.below(8) == 0 {
            return;
        }
        let stall = if is_bad && self.below(6) == 0 { 200 } else { self.below(4) };
        for _ in 0..stall {
            turn().await;
        }
        if is_bad && self.below(4) == 0 {
            // A heartbeat; whether it comes in time does not matter here.
            drop(self.service.extend(&claim.ticket, LEASE).await);
        }
        let by = claim.payload["by"].as_i64().expect("work has a number");
        let reply = match self.people {
            People::Watch | People::Cancel if &*claim.task.name == "Risk" && is_refused(by) => {
                Reply::Refusal(WorkEvidence::Reported)
            }
            People::Retry if is_bad => self.bad_reply(),
            People::Watch | People::Cancel | People::Retry => Reply::Result,
        };
        if reply == Reply::Refusal(WorkEvidence::NotDone) {
            self.log.borrow_mut().permit(claim.idempotency_key());
        }
        let times = if is_bad && self.below(5) == 0 { 2 } else { 1 };
        for _ in 0..times {
            self.settle(&claim, &key, by, reply).await;
        }
    }

    fn bad_reply(&self) -> Reply {
        match self.below(16) {
            0 => Reply::Misfit,
            1 => Reply::Refusal(WorkEvidence::Unknown),
            2 => Reply::Refusal(WorkEvidence::NotDone),
            3 | 4 => Reply::Refusal(WorkEvidence::Reported),
            _ => Reply::Result,
        }
    }

    async fn settle(&self, claim: &Claim, key: &str, by: i64, reply: Reply) {
        // Where failures are tried again, it is unknown how often work is refused, only that it succeeds once.
        let counts = self.people != People::Retry || reply == Reply::Result;
        loop {
            let settled = match reply {
                Reply::Refusal(evidence) => {
                    let error = EventError::new("Refused", format!("{by} is refused"));
                    self.service.fail(&claim.ticket, &error.with_evidence(evidence)).await
                }
                Reply::Result => self.service.complete(&claim.ticket, &out(&json!(answer(by)))).await,
                Reply::Misfit => self.service.complete(&claim.ticket, &out(&json!("none"))).await,
            };
            match settled {
                Ok(SettleResult::Arrived(_) | SettleResult::Again { .. }) if !counts => return,
                Ok(SettleResult::Arrived(_) | SettleResult::Again { .. }) => {
                    *self.log.borrow_mut().accepted.entry(key.to_owned()).or_default() += 1;
                    return;
                }
                Err(Refusal::Store(_)) => {
                    // Accepted or not, the agent cannot know: an honest one asks again.
                    self.log.borrow_mut().unknown += 1;
                    turn().await;
                }
                Ok(SettleResult::Repeated) | Err(_) => return,
            }
        }
    }

    fn below(&self, bound: usize) -> usize {
        self.rng.borrow_mut().below(bound)
    }
}

fn out(value: &Value) -> Map<String, Value> {
    json!({"out": value}).as_object().expect("a map").clone()
}

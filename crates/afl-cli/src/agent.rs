//! An agent in this process that answers the tasks of one run by a mock.

use afl_engine::event::EventError;
use afl_engine::failure::FailureKind;
use afl_engine::id::{RunId, StepId};
use afl_engine::task::{Task, TaskState};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_lang::program::Qualified;
use afl_runtime::{Arrival, Service};
use afl_store::queue::{Asked, Claim, ClaimRequest, FacetFilter, Refusal, SettleResult};

use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::mock::{Handler, Handlers};
use crate::progress::Progress;
use crate::stop::Stop;

const OWNER: &str = "mock";
/// Its answers take no time, so a lease that is still there after this is that of a process that died.
const LEASE: Millis = Millis(5_000);
const PAGE: usize = 500;
/// How many answers are given before the run is evaluated.
const ANSWERS: usize = 2_048;
/// When to try again what others leave no room for.
const FULL: Millis = Millis(50);
/// How many are given at once: a store makes one durable commit of those that come together.
const AT_ONCE: usize = 64;

#[derive(Clone, Debug, Default)]
pub(crate) struct Agent {
    handlers: Handlers,
}

/// What came of looking through the tasks of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    pub(crate) arrivals: Vec<Arrival>,
    /// When there will be more to do.
    pub(crate) next: Option<Millis>,
}

impl Agent {
    pub(crate) fn new(handlers: Handlers) -> Self {
        Self { handlers }
    }

    pub(crate) fn answers(&self, facet: &Qualified) -> bool {
        self.handlers.contains_key(facet)
    }

    /// Answers what is open, in the order of the program.
    pub(crate) async fn answer(
        &self,
        service: &Service,
        run: &RunId,
        progress: &Progress,
        stop: &Stop,
    ) -> Result<Round, Failure> {
        let mut round = Round::default();
        let mut after: Option<StepId> = None;
        if self.handlers.is_empty() {
            return Ok(round);
        }
        loop {
            let page = service.tasks_page(run, after.as_ref(), PAGE).await?;
            let mine = page.items.into_iter().map(|task| task.item).filter(|task| !task.state.is_terminal());
            let mine: Vec<Task> = mine.filter(|task| self.handlers.contains_key(&task.name)).collect();
            for some in mine.chunks(AT_ONCE) {
                if stop.is_asked() || round.arrivals.len() >= ANSWERS {
                    return Ok(round);
                }
                self.answer_some(service, some, progress, &mut round).await?;
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(round),
            }
        }
    }

    async fn answer_some(
        &self,
        service: &Service,
        tasks: &[Task],
        progress: &Progress,
        round: &mut Round,
    ) -> Result<(), Failure> {
        let mut attempts = JoinSet::new();
        let (limited, free): (Vec<_>, Vec<_>) =
            tasks.iter().enumerate().partition(|(_, task)| task.policy.limit.is_some());
        for (place, task) in free {
            let (service, task, handler) = (service.clone(), task.clone(), self.handlers[&task.name].clone());
            progress.working_on(&task.path);
            attempts.spawn(async move { (place, attempt(&service, &task, &handler).await) });
        }
        let mut attempted = attempts.join_all().await;
        // One after the other, so that they do not leave one another without room.
        for (place, task) in limited {
            progress.working_on(&task.path);
            attempted.push((place, attempt(service, task, &self.handlers[&task.name]).await));
        }
        attempted.sort_by_key(|(place, _)| *place);
        for (place, attempt) in attempted {
            match attempt? {
                Attempt::Arrived(arrival) => round.arrivals.push(*arrival),
                Attempt::Again { at, error } => {
                    progress.failed_attempt(&tasks[place], &error, at);
                    round.note(at);
                }
                Attempt::Later(at) => round.note(at),
                Attempt::NotOurs => {}
            }
        }
        Ok(())
    }
}

enum Attempt {
    Arrived(Box<Arrival>),
    /// It failed and has another attempt.
    Again {
        at: Millis,
        error: String,
    },
    Later(Millis),
    /// Somebody else has it, or it needs no answer any more.
    NotOurs,
}

async fn attempt(service: &Service, task: &Task, handler: &Handler) -> Result<Attempt, Failure> {
    match task.state {
        TaskState::Pending => {}
        TaskState::Running | TaskState::AwaitingResponse => {
            let own = task.lease.as_ref().filter(|lease| lease.owner == OWNER);
            return Ok(own.map_or(Attempt::NotOurs, |lease| Attempt::Later(lease.expires)));
        }
        TaskState::Completed | TaskState::Failed | TaskState::Ignored | TaskState::Canceled => {
            return Ok(Attempt::NotOurs);
        }
    }
    // A mock stands for whoever the task wants.
    let request = ClaimRequest {
        capabilities: task.policy.needs.clone(),
        server: task.desired_server.as_deref().map(str::to_owned),
        lease: LEASE,
        ..ClaimRequest::new(FacetFilter::All, OWNER)
    };
    let asked = service.claim_step(&task.workflow_id, &task.step_id, &request).await?;
    match (asked, task.not_before) {
        (Asked::Given(claim), _) => settle(service, &claim, handler).await,
        (Asked::Full, _) => Ok(Attempt::Later(service.now().await?.plus(FULL))),
        (Asked::NotGiven, Some(at)) => Ok(Attempt::Later(at)),
        (Asked::NotGiven, None) => Ok(Attempt::NotOurs),
    }
}

async fn settle(service: &Service, claim: &Claim, handler: &Handler) -> Result<Attempt, Failure> {
    // An operator's retry sets the attempts back to none, but not the tokens; a claim that ended in silence is no answer.
    let answered = claim.task.token.saturating_sub(claim.task.deliveries.into());
    let mut answer = handler.answer(&claim.payload, usize::try_from(answered).unwrap_or(usize::MAX));
    let mut settled = tell(service, claim, &answer).await;
    if let Err(refusal @ Refusal::TooLarge { .. }) = settled {
        // As with any handler: the attempt failed.
        answer = Err(refusal.to_string());
        settled = tell(service, claim, &answer).await;
    }
    match settled {
        Ok(SettleResult::Arrived(event)) => {
            let step = claim.ticket.step.clone();
            Ok(Attempt::Arrived(Box::new(Arrival { step, event: Some(*event) })))
        }
        Ok(SettleResult::Again { not_before }) => {
            Ok(Attempt::Again { at: not_before, error: answer.err().unwrap_or_default() })
        }
        // Somebody canceled the run or answered for us: the next look at the run tells.
        Ok(SettleResult::Repeated) | Err(Refusal::LeaseLost { .. } | Refusal::Canceled { .. }) => {
            Ok(Attempt::NotOurs)
        }
        Err(refusal) => Err(refusal.into()),
    }
}

async fn tell(
    service: &Service,
    claim: &Claim,
    answer: &Result<Map<String, Value>, String>,
) -> Result<SettleResult, Refusal> {
    match answer {
        Ok(result) => service.complete(&claim.ticket, result).await,
        Err(message) => {
            let error = EventError { kind: FailureKind::Event.name().to_owned(), message: message.clone() };
            service.fail(&claim.ticket, &error).await
        }
    }
}

impl Round {
    fn note(&mut self, at: Millis) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }
}

//! An agent in this process that answers the tasks of one run by a mock.

use afl_engine::event::EventError;
use afl_engine::failure::FailureKind;
use afl_engine::id::{RunId, StepId};
use afl_engine::task::{Task, TaskState};
use afl_engine::time::Millis;
use afl_runtime::{Arrival, Service};
use afl_store::queue::{Claim, Refusal, Settled};

use crate::failure::Failure;
use crate::mock::{Handler, Handlers};
use crate::progress::Progress;
use crate::stop::Stop;

const OWNER: &str = "mock";
/// Its answers take no time, so a lease that is still there after this is that of a process that died.
const LEASE: Millis = Millis(5_000);
const PAGE: usize = 500;
/// How many answers are given before the run is evaluated.
const ANSWERS_AT_ONCE: usize = 1_000;

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
            let page = service.store().tasks_page(run, after.as_ref(), PAGE).await?;
            for task in page.items.into_iter().map(|task| task.item) {
                let Some(handler) = self.handlers.get(&task.name) else { continue };
                if stop.is_asked() || round.arrivals.len() >= ANSWERS_AT_ONCE {
                    return Ok(round);
                }
                match claim(service, &task).await? {
                    Claimed::Now(claim) => settle(service, &claim, handler, progress, &mut round).await?,
                    Claimed::Later(at) => round.note(at),
                    Claimed::Never => {}
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(round),
            }
        }
    }
}

enum Claimed {
    Now(Box<Claim>),
    Later(Millis),
    Never,
}

async fn claim(service: &Service, task: &Task) -> Result<Claimed, Failure> {
    match task.state {
        TaskState::Pending => {}
        TaskState::Running | TaskState::AwaitingResponse => {
            let own = task.lease.as_ref().filter(|lease| lease.owner == OWNER);
            return Ok(own.map_or(Claimed::Never, |lease| Claimed::Later(lease.expires)));
        }
        TaskState::Completed | TaskState::Failed | TaskState::Ignored | TaskState::Canceled => {
            return Ok(Claimed::Never);
        }
    }
    let claim = service.claim_step(&task.workflow_id, &task.step_id, OWNER, LEASE).await?;
    Ok(match (claim, task.not_before) {
        (Some(claim), _) => Claimed::Now(Box::new(claim)),
        (None, Some(at)) => Claimed::Later(at),
        (None, None) => Claimed::Never,
    })
}

async fn settle(
    service: &Service,
    claim: &Claim,
    handler: &Handler,
    progress: &Progress,
    round: &mut Round,
) -> Result<(), Failure> {
    progress.working_on(&claim.task.path);
    let settled = match handler.answer(&claim.payload, claim.task.attempts) {
        Ok(result) => service.complete(&claim.ticket, &result).await,
        Err(message) => {
            let error = EventError { kind: FailureKind::Event.name().to_owned(), message };
            let settled = service.fail(&claim.ticket, &error).await;
            if let Ok(Settled::Again { not_before }) = &settled {
                progress.failed_attempt(&claim.task, &error.message, *not_before);
            }
            settled
        }
    };
    match settled {
        Ok(Settled::Arrived(event)) => {
            let step = claim.ticket.step.clone();
            round.arrivals.push(Arrival { step, event: Some(*event) });
        }
        Ok(Settled::Again { not_before }) => round.note(not_before),
        // Somebody canceled the run or answered for us: the next look at the run tells.
        Ok(Settled::Repeated) | Err(Refusal::LeaseLost { .. } | Refusal::Canceled { .. }) => {}
        Err(refusal) => return Err(refusal.into()),
    }
    Ok(())
}

impl Round {
    fn note(&mut self, at: Millis) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }
}

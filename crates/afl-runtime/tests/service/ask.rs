//! Calls each verb of the service in its scene, and recognizes a verb that was done before.

use std::sync::Arc;

use afl_engine::id::RunId;
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_runtime::agent::{
    ClaimRequest, ContinueResult, FacetFilter, LogLevel, LogLine, LogStream, Refusal, SettleResult,
};
use afl_runtime::doctor::Remedy;
use afl_runtime::{Again, Arrival, Error, Mark, NotFound, ReportedOutcome, RunWork, StateRefusal};
use serde_json::json;

use crate::scene::{CHANNEL, Scene, channel};
use crate::verbs::Ask;
use crate::world::{broken, inc};

const LEASE: Millis = Millis(60_000);

/// The errors of a verb of an agent or an operator.
#[derive(Debug)]
pub(crate) enum Trouble {
    Uncertain,
    Other(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        if error.is_uncertain() { Self::Uncertain } else { Self::Other(error.to_string()) }
    }
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Store(error) if error.is_uncertain() => Self::Uncertain,
            other => Self::Other(other.to_string()),
        }
    }
}

impl Scene {
    pub(crate) async fn ask(&self, ask: Ask) -> Result<(), Trouble> {
        match ask {
            Ask::Claim
            | Ask::ClaimNamed
            | Ask::Extend
            | Ask::Update
            | Ask::Log
            | Ask::Complete
            | Ask::Fail
            | Ask::Release
            | Ask::PutOff
            | Ask::Heartbeat
            | Ask::Continue
            | Ask::FailStep => self.ask_as_agent(ask).await,
            Ask::HandOver | Ask::DoStart | Ask::Withdraw | Ask::Again => self.ask_of_runners(ask).await,
            Ask::OpenChannel
            | Ask::CloseChannel
            | Ask::DropChannel
            | Ask::ReviveChannel
            | Ask::Feed
            | Ask::Acknowledge
            | Ask::Dispatch => self.ask_of_outbox(ask).await,
            Ask::WatchOver
            | Ask::Sweep
            | Ask::Drive
            | Ask::Turn
            | Ask::Collect
            | Ask::Discard
            | Ask::DiscardShared
            | Ask::Doctor
            | Ask::Examine => self.ask_for_upkeep(ask).await,
            Ask::Publish
            | Ask::Start
            | Ask::Skip
            | Ask::CancelTask
            | Ask::Pause
            | Ask::Resume
            | Ask::Cancel
            | Ask::CancelStart
            | Ask::Retry
            | Ask::Answer
            | Ask::MarkRead => self.ask_as_person(ask).await,
        }
    }

    async fn ask_as_agent(&self, ask: Ask) -> Result<(), Trouble> {
        let Self { world, run, step, held, .. } = self;
        let service = &world.service;
        let held = || held.as_ref().expect("the scene has a holder");
        let request = ClaimRequest::new(FacetFilter::All, "agent");
        match ask {
            Ask::Claim => drop(service.claim(&request).await?),
            Ask::ClaimNamed => {
                let task = service.task(run, step).await?.map(Arc::new);
                drop(service.claim(&ClaimRequest { task, ..request }).await?);
            }
            Ask::Extend => drop(service.extend(&held().ticket, LEASE).await?),
            Ask::Update => service.update(&held().ticket, &n(5)).await?,
            Ask::Log => {
                let text = "half of it is done".to_owned();
                let line = LogLine { stream: LogStream::Stdout, level: LogLevel::Info, text };
                service.log(&held().ticket, 1, vec![line]).await?;
            }
            Ask::Complete => drop(service.complete(&held().ticket, &inc(held())).await?),
            Ask::Fail => drop(service.fail(&held().ticket, &broken()).await?),
            Ask::Release => drop(service.release(&held().ticket).await?),
            Ask::PutOff => {
                let later = world.clock.now().plus(Millis(30_000));
                drop(service.put_off(&held().ticket, later).await?);
            }
            Ask::Heartbeat => {
                let fields = json!({
                    "uuid": "s", "server_group": "g", "service_name": "afl-agent", "server_name": "host",
                });
                service.heartbeat(serde_json::from_value(fields).unwrap()).await?;
            }
            Ask::Continue => {
                let told = service.continue_step(run, step, &n(2)).await?;
                assert!(matches!(
                    told,
                    ContinueResult::Now(SettleResult::Arrived(_)) | ContinueResult::Before
                ));
            }
            Ask::FailStep => drop(service.fail_step(run, step, &broken()).await?),
            other => unreachable!("{other:?} is not asked by agents"),
        }
        Ok(())
    }

    async fn ask_as_person(&self, ask: Ask) -> Result<(), Trouble> {
        let Self { world, run, step, .. } = self;
        let service = &world.service;
        match ask {
            Ask::Publish => {
                let other = crate::world::PROGRAM.replace("namespace t", "namespace u");
                service.publish(&afl_runtime::compile("u.afl", &other).unwrap()).await?;
            }
            Ask::Start => {
                let mut request = world.request("One", json!({"n": 7})).await;
                request.idempotency_key = Some("the-key".to_owned());
                service.start(request).await?;
            }
            Ask::Skip => once(service.skip(run, step).await)?,
            Ask::CancelTask => once(service.cancel_task(run, step).await)?,
            Ask::Pause => service.pause(run).await?,
            Ask::Resume => service.resume(run).await?,
            Ask::Cancel | Ask::CancelStart => drop(service.cancel(run).await?),
            Ask::Retry => once(service.retry(run, &Again::Run).await.map(drop))?,
            Ask::Answer => drop(service.answer(run, step, &ReportedOutcome::Done(n(2))).await?),
            Ask::MarkRead => drop(service.mark_read(&Mark::All).await?),
            other => unreachable!("{other:?} is not asked by people"),
        }
        Ok(())
    }

    async fn ask_of_runners(&self, ask: Ask) -> Result<(), Trouble> {
        let Self { world, run, held, .. } = self;
        let service = &world.service;
        let payload = || held.as_ref().expect("the scene has a runner").payload.clone();
        match ask {
            Ask::HandOver => {
                let mut request = world.request("One", json!({"n": 7})).await;
                request.idempotency_key = Some("the-key".to_owned());
                service.hand_over(request).await?;
            }
            Ask::DoStart => drop(service.execute(payload()).await?),
            Ask::Withdraw => drop(service.withdraw(&execute(run)).await?),
            Ask::Again => drop(service.ask_again(&execute(run), None).await?),
            other => unreachable!("{other:?} is not asked of runners"),
        }
        Ok(())
    }

    async fn ask_of_outbox(&self, ask: Ask) -> Result<(), Trouble> {
        let service = &self.world.service;
        match ask {
            Ask::OpenChannel => drop(service.open_channel(CHANNEL, channel()).await?),
            Ask::CloseChannel => once(service.close_channel(CHANNEL).await)?,
            Ask::DropChannel => once(service.drop_channel(CHANNEL).await.map(drop))?,
            Ask::ReviveChannel => drop(service.revive_channel(CHANNEL).await?),
            Ask::Feed => drop(service.feed(CHANNEL, 10).await?),
            Ask::Acknowledge => drop(service.acknowledge(CHANNEL, &self.letters).await?),
            Ask::Dispatch => service.dispatch(CHANNEL, &self.run, &self.step).await?,
            other => unreachable!("{other:?} is not asked of the outbox"),
        }
        Ok(())
    }

    async fn ask_for_upkeep(&self, ask: Ask) -> Result<(), Trouble> {
        let Self { world, run, step, .. } = self;
        let service = &world.service;
        match ask {
            Ask::WatchOver => service.watch_over(world.clock.now()).await?,
            Ask::Sweep => drop(service.sweep_once().await?),
            Ask::Drive => {
                let arrivals = vec![Arrival { step: step.clone(), event: None }];
                drop(service.drive_once(&RunWork { run: run.clone(), arrivals }).await?);
            }
            Ask::Turn => drop(service.turn().await?),
            Ask::Collect => drop(service.collect(world.clock.now()).await?),
            Ask::Discard | Ask::DiscardShared => once(service.discard(run).await)?,
            Ask::Doctor => drop(service.doctor(Remedy::Fix).await?),
            Ask::Examine => drop(service.examine(run, Remedy::Fix).await?),
            other => unreachable!("{other:?} is no upkeep"),
        }
        Ok(())
    }
}

/// A verb that was done although its caller saw an error cannot be done again; it is refused by name.
fn once(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(
            Error::Refused(StateRefusal::Task(Refusal::NotOpen { .. }) | StateRefusal::NothingFailed { .. })
            | Error::NotFound(NotFound::Channel { .. } | NotFound::Record { .. } | NotFound::Run { .. }),
        ) => Ok(()),
        other => other,
    }
}

fn n(n: i64) -> Map<String, Value> {
    json!({ "n": n }).as_object().unwrap().clone()
}

/// Under which name the task is kept that starts a run.
fn execute(run: &RunId) -> RunId {
    RunId(format!("@execute/{run}").into())
}

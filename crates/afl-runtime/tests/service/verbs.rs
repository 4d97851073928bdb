//! F8: every verb whose caller saw an error although it was done, or although it was not, is safe to repeat.

use afl_engine::id::{RunId, StepId};
use afl_engine::time::Millis;
use afl_runtime::agent::{Claim, Continued, Refusal, Settled};
use afl_runtime::{Again, Error, Verdict};
use afl_store::fault::{Call, Fault, Verb};
use serde_json::json;

use crate::world::{World, broken, inc};

/// What is asked of a service, and how the world looks like before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ask {
    Publish,
    Start,
    Claim,
    Extend,
    Complete,
    Fail,
    Release,
    Continue,
    FailStep,
    Pause,
    Resume,
    Cancel,
    Retry,
    Answer,
    Skip,
    CancelTask,
    Sweep,
    Turn,
    Collect,
}

const ALL: [Ask; 19] = [
    Ask::Publish,
    Ask::Start,
    Ask::Claim,
    Ask::Extend,
    Ask::Complete,
    Ask::Fail,
    Ask::Release,
    Ask::Continue,
    Ask::FailStep,
    Ask::Pause,
    Ask::Resume,
    Ask::Cancel,
    Ask::Retry,
    Ask::Answer,
    Ask::Skip,
    Ask::CancelTask,
    Ask::Sweep,
    Ask::Turn,
    Ask::Collect,
];

/// How many calls a store that is away fails.
const CUT_OFF: u64 = 2;

/// What a verb of an agent or an operator can answer with.
#[derive(Debug)]
enum Trouble {
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

/// A world in which the verb has something to do.
struct Scene {
    world: World,
    run: RunId,
    /// The first step that waits.
    step: StepId,
    held: Option<Claim>,
}

impl Scene {
    async fn before(ask: Ask) -> Self {
        let world = World::new();
        let workflow = match ask {
            Ask::Retry | Ask::Answer => "Risky",
            Ask::Skip => "Told",
            _ => "Two",
        };
        let run = world.start(workflow, json!({"n": 1})).await;
        let mut step = world.step(&run, &format!("{workflow}.a")).await;
        let mut held = None;
        match ask {
            Ask::Extend | Ask::Complete | Ask::Fail | Ask::Release => held = world.claim(1).await.pop(),
            Ask::Resume => {
                world.service.pause(&run).await.unwrap();
                // It finds the run held and is put aside.
                assert!(world.claim(1).await.is_empty());
            }
            Ask::Retry | Ask::Collect => {
                world.finish().await;
                world.clock.advance(Millis(1));
            }
            Ask::Answer => {
                world.finish().await;
                step = world.step(&run, "Risky.b").await;
            }
            Ask::Sweep => {
                world.claim(1).await;
                world.clock.advance(Millis(61_000));
            }
            Ask::Turn => {
                let claim = world.claim(1).await.remove(0);
                world.service.complete(&claim.ticket, &inc(&claim)).await.unwrap();
            }
            Ask::Publish
            | Ask::Start
            | Ask::Claim
            | Ask::Continue
            | Ask::FailStep
            | Ask::Skip
            | Ask::CancelTask
            | Ask::Pause
            | Ask::Cancel => {}
        }
        Self { world, run, step, held }
    }

    async fn ask(&self, ask: Ask) -> Result<(), Trouble> {
        let Self { world, run, step, held } = self;
        let service = &world.service;
        let held = || held.as_ref().expect("the scene has a holder");
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
            Ask::Claim => {
                let request = afl_runtime::agent::Request::new(afl_runtime::agent::Names::All, "agent");
                service.claim(&request).await?;
            }
            Ask::Extend => drop(service.extend(&held().ticket, Millis(60_000)).await?),
            Ask::Complete => drop(service.complete(&held().ticket, &inc(held())).await?),
            Ask::Fail => drop(service.fail(&held().ticket, &broken()).await?),
            Ask::Release => drop(service.release(&held().ticket).await?),
            Ask::Continue => {
                let result = json!({"n": 2}).as_object().unwrap().clone();
                let told = service.continue_step(run, step, &result).await?;
                assert!(matches!(told, Continued::Now(Settled::Arrived(_)) | Continued::Before));
            }
            Ask::FailStep => drop(service.fail_step(run, step, &broken()).await?),
            Ask::Pause => service.pause(run).await?,
            Ask::Resume => service.resume(run).await?,
            Ask::Cancel => {
                service.cancel(run).await?;
            }
            Ask::Retry => match service.retry(run, &Again::Run).await {
                // It was tried again, although nobody was told.
                Ok(_) | Err(Error::NothingFailed { .. }) => {}
                Err(error) => return Err(error.into()),
            },
            Ask::Answer => {
                let result = json!({"n": 2}).as_object().unwrap().clone();
                service.answer(run, step, &Verdict::Done(result)).await?;
            }
            Ask::Skip => once(service.skip(run, step).await)?,
            Ask::CancelTask => once(service.cancel_task(run, step).await)?,
            Ask::Sweep => drop(service.sweep_once().await?),
            Ask::Turn => drop(service.turn().await?),
            Ask::Collect => drop(service.collect(world.clock.now()).await?),
        }
        Ok(())
    }

    async fn insist(&self, ask: Ask, when: &str) {
        for _ in 0..=CUT_OFF {
            match self.ask(ask).await {
                Ok(()) => return,
                Err(Trouble::Uncertain) => {}
                Err(Trouble::Other(error)) => panic!("{when}: {error}"),
            }
        }
        panic!("{when}: it does not come back");
    }

    /// All that the store holds in the end, without what differs between equal worlds.
    async fn end(&self) -> Vec<String> {
        let world = self.world.restarted();
        // A claim whose answer was lost comes back with its lease.
        world.clock.advance(Millis(61_000));
        for _ in 0..4 {
            world.service.sweep_once().await.unwrap();
            world.finish().await;
        }
        world.examine().await;
        let list =
            world.service.runs(&afl_runtime::RunQuery { limit: 10, ..Default::default() }).await.unwrap();
        let mut ends = Vec::new();
        for run in list.runs {
            ends.push(world.service.canonical(&run.id).await.unwrap());
        }
        ends.sort();
        ends
    }
}

/// What was done although nobody was told cannot be done again.
fn once(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(Error::Refused(Refusal::NotOpen { .. })) => Ok(()),
        other => other,
    }
}

/// Fails the call of this number, of those that write or of all.
fn nth(number: u64, writes_only: bool, fault: Fault) -> impl FnMut(Call) -> Fault + Send {
    let mut seen = 0;
    move |call| {
        let counts = !writes_only || matches!(call.verb, Verb::Commit | Verb::Take);
        seen += u64::from(counts);
        if counts && seen == number { fault } else { Fault::None }
    }
}

// covers: RT-14-a, RT-14-b
#[tokio::test]
async fn f8_a_verb_that_was_done_though_its_caller_saw_an_error_may_be_repeated() {
    for ask in ALL {
        let clean = Scene::before(ask).await;
        let before = clean.world.faulty.counts();
        clean.ask(ask).await.unwrap();
        let after = clean.world.faulty.counts();
        let expected = clean.end().await;
        let (calls, writes) = (after.calls - before.calls, after.writes() - before.writes());
        assert!(writes > 0, "{ask:?} writes nothing");
        for (count, writes_only, fault) in [
            (writes, true, Fault::ErrorAfter),
            (writes, true, Fault::ErrorBefore),
            (writes, true, Fault::Full),
            (calls, false, Fault::ErrorBefore),
            (calls, false, Fault::Disconnect { calls: CUT_OFF }),
        ] {
            for number in 1..=count {
                let when = format!("{ask:?}: {fault:?} at call {number}");
                let scene = Scene::before(ask).await;
                scene.world.faulty.plan(nth(number, writes_only, fault));
                let first = scene.ask(ask).await;
                scene.world.faulty.plan(|_| Fault::None);
                match first {
                    Ok(()) => {}
                    Err(Trouble::Other(error)) if fault != Fault::Full => panic!("{when}: {error}"),
                    Err(Trouble::Uncertain | Trouble::Other(_)) => scene.insist(ask, &when).await,
                }
                assert_eq!(scene.end().await, expected, "{when}");
            }
        }
    }
}

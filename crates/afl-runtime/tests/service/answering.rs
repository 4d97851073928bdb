//! A person reports the outcome of work that failed, that may have happened, or that is still open.

use afl_engine::id::{RunId, StepId};
use afl_engine::run::RunStatus;
use afl_engine::task::{Task, TaskState};
use afl_engine::time::Millis;
use afl_engine::value::{Map, Value};
use afl_runtime::agent::Refusal;
use afl_runtime::{
    Again, AnswerResult, Error, InvalidRequest, On, ReportedOutcome, StartRequest, StateRefusal, compile,
};
use afl_store::fault::{BackendCall, BackendVerb, Fault};
use serde_json::json;

use crate::world::{World, broken};

const PROGRAM: &str = r#"
namespace t {
    event facet Send(n: Long) => (n: Long) with Effect(kind = "once")
    event facet Side(n: Long) => (k: Long) with Effect(kind = "once")
    event facet Bad(n: Long) => (n: Long)
    event facet Tell(n: Long)
    event facet Ask(n: Long) => (any: Json)
    facet Value(v: Long)
    event facet Prepared(n: Long) => (m: Long) script python "result['k'] = 1"

    workflow Letter(n: Long) => (n: Long)
        andThen {
            a = Send(n = $.n)
            b = Send(n = a.n)
            yield Letter(n = b.n)
        }

    workflow Beside(n: Long) => (n: Long)
        andThen {
            a = Send(n = $.n)
            b = Bad(n = $.n)
            yield Beside(n = a.n + b.n)
        }

    workflow Mixed(n: Long) => (n: Long, k: Long)
        andThen {
            a = Send(n = $.n) with Side(n = $.n) as side
            yield Mixed(n = a.n, k = a.side.k)
        }

    workflow Caught(n: Long) => (n: Long)
        andThen {
            a = Send(n = $.n) catch { yield Send(n = 0) }
            yield Caught(n = a.n)
        }

    workflow Timed(n: Long) => (n: Long)
        andThen {
            a = Send(n = $.n) with Timeout(seconds = 5) with Retry(max = 3) catch { yield Send(n = 0) }
            yield Timed(n = a.n)
        }

    facet Two(n: Long) => (n: Long)
        andThen {
            a = Bad(n = $.n)
            b = Send(n = $.n)
            yield Two(n = a.n + b.n)
        }

    workflow Both(n: Long) => (n: Long)
        andThen {
            two = Two(n = $.n) catch { yield Two(n = 0) }
            yield Both(n = two.n)
        }

    workflow Scripted(n: Long) => (m: Long)
        andThen {
            a = Prepared(n = $.n)
            yield Scripted(m = a.m)
        }

    workflow ScriptedOnce(n: Long) => (m: Long)
        andThen {
            a = Prepared(n = $.n) with Effect(kind = "once")
            yield ScriptedOnce(m = a.m)
        }

    workflow Sum(n: Long) => (n: Long)
        andThen {
            a = Ask(n = $.n)
            b = Value(v = a.any)
            yield Sum(n = b.v)
        }

    workflow Told(n: Long) => (n: Long)
        andThen {
            a = Tell(n = $.n)
            yield Told(n = 1)
        }
}
"#;

/// A run and one of its steps.
pub(crate) struct AnswerScene {
    pub(crate) world: World,
    pub(crate) run: RunId,
    pub(crate) step: StepId,
}

impl AnswerScene {
    pub(crate) async fn new(workflow: &str, path: &str) -> Self {
        Self::over(World::new(), workflow, path).await
    }

    async fn over(world: World, workflow: &str, path: &str) -> Self {
        let hash = world.service.publish(&compile("t.afl", PROGRAM).unwrap()).await.unwrap();
        let inputs = json!({"n": 1}).as_object().unwrap().clone();
        let request = StartRequest { workflow: Some(workflow.to_owned()), inputs, ..StartRequest::new(hash) };
        let run = world.service.start(request).await.unwrap().run;
        let step = world.step(&run, path).await;
        Self { world, run, step }
    }

    /// A run whose worker is lost during work that may happen once only.
    pub(crate) async fn uncertain(workflow: &str, path: &str) -> Self {
        let scene = Self::new(workflow, path).await;
        scene.lose_worker().await;
        scene
    }

    pub(crate) async fn lose_worker(&self) {
        assert!(!self.world.claim(10).await.is_empty());
        self.world.clock.advance(Millis(61_000));
        self.world.service.turn().await.unwrap();
        self.world.service.turn().await.unwrap();
        self.world.examine().await;
    }

    pub(crate) async fn done(&self, result: Value) -> Result<AnswerResult, Error> {
        let answered =
            self.world.service.answer(&self.run, &self.step, &ReportedOutcome::Done(object(result))).await;
        self.world.examine().await;
        answered
    }

    pub(crate) async fn give_up(&self) -> Result<AnswerResult, Error> {
        let verdict = ReportedOutcome::Failed { message: "not sent".to_owned() };
        let answered = self.world.service.answer(&self.run, &self.step, &verdict).await;
        self.world.examine().await;
        answered
    }

    pub(crate) async fn task(&self) -> Task {
        self.world.store().task(&self.run, &self.step).await.unwrap().unwrap().item
    }

    pub(crate) async fn at(&self, path: &str) -> Self {
        let world = self.world.restarted();
        let step = world.step(&self.run, path).await;
        Self { world, run: self.run.clone(), step }
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

fn refusal(answered: Result<AnswerResult, Error>) -> String {
    answered.unwrap_err().to_string().replace(|character: char| character.is_ascii_digit(), "")
}

#[tokio::test]
async fn g4_uncertain_work_that_happened_continues_with_the_result_that_a_person_gives() {
    let scene = AnswerScene::uncertain("Letter", "Letter.a").await;
    assert_eq!(scene.world.status(&scene.run).await, RunStatus::Failed);
    assert!(scene.task().await.is_uncertain());
    assert_eq!(scene.done(json!({"n": 7})).await.unwrap(), AnswerResult::Now);
    let task = scene.task().await;
    assert_eq!((task.state, &task.error, task.token), (TaskState::Completed, &None, 1));
    let claims = scene.world.claim(10).await;
    assert_eq!(claims.iter().map(|claim| &*claim.task.path).collect::<Vec<_>>(), ["Letter.b"]);
    assert_eq!(claims[0].payload["n"], 7);
    scene.world.service.complete(&claims[0].ticket, &object(json!({"n": 8}))).await.unwrap();
    scene.world.service.turn().await.unwrap();
    assert_eq!(scene.world.outputs(&scene.run).await, json!({"n": 8}));
    assert_eq!(scene.done(json!({"n": 7})).await.unwrap(), AnswerResult::Before);
}

#[tokio::test]
async fn g4_uncertain_work_that_did_not_happen_is_tried_again_or_given_up() {
    let scene = AnswerScene::uncertain("Letter", "Letter.a").await;
    scene.world.service.retry(&scene.run, &Again::Step(scene.step.clone())).await.unwrap();
    assert_eq!(scene.task().await.state, TaskState::Pending);
    scene.lose_worker().await;
    assert_eq!(scene.give_up().await.unwrap(), AnswerResult::Now);
    let task = scene.task().await;
    assert_eq!((task.state, task.is_uncertain()), (TaskState::Failed, false));
    let run = scene.world.run(&scene.run).await;
    assert_eq!(run.error.unwrap().to_string(), "Letter.a: not sent");
    assert_eq!(scene.give_up().await.unwrap(), AnswerResult::Before, "telling it twice does no harm");
    assert_eq!(scene.world.claim(10).await, []);
}

#[tokio::test]
async fn a_question_for_a_person_names_the_fields_that_the_result_must_have() {
    let scene = AnswerScene::uncertain("Letter", "Letter.a").await;
    let why = scene.world.service.why(&scene.run).await.unwrap();
    let [wait] = &why.waits[..] else { panic!("one thing is open: {why:?}") };
    let On::Decision { name, must_return, failure } = &wait.on else { panic!("{wait:?}") };
    assert_eq!((&**name, &must_return[..], &*failure.kind), ("t.Send", &["n".to_owned()][..], "uncertain"));
}

#[tokio::test]
async fn g4_a_retry_of_the_whole_run_leaves_uncertain_work_alone() {
    let scene = AnswerScene::uncertain("Letter", "Letter.a").await;
    let error = scene.world.service.retry(&scene.run, &Again::Run).await.unwrap_err();
    assert!(
        matches!(&error, Error::Refused(StateRefusal::Undecided { path, .. }) if path == "Letter.a"),
        "{error}"
    );
    assert_eq!(scene.task().await.state, TaskState::Failed);

    let scene = AnswerScene::new("Beside", "Beside.a").await;
    let claims = scene.world.claim(10).await;
    let bad = claims.iter().find(|claim| claim.task.name.ends_with("Bad")).unwrap();
    scene.world.service.fail(&bad.ticket, &broken()).await.unwrap();
    scene.world.clock.advance(Millis(61_000));
    scene.world.service.turn().await.unwrap();
    let opened = scene.world.service.retry(&scene.run, &Again::Run).await.unwrap();
    assert_eq!(opened, std::slice::from_ref(&bad.ticket.step));
    scene.world.examine().await;
}

#[tokio::test]
async fn a_failed_step_gets_its_result_whatever_it_failed_with() {
    let scene = AnswerScene::new("Beside", "Beside.b").await;
    for claim in scene.world.claim(10).await {
        scene.world.service.fail(&claim.ticket, &broken()).await.unwrap();
    }
    scene.world.service.turn().await.unwrap();
    assert_eq!(scene.world.status(&scene.run).await, RunStatus::Failed);
    assert_eq!(scene.done(json!({"n": 2})).await.unwrap(), AnswerResult::Now);
    assert_eq!(scene.world.status(&scene.run).await, RunStatus::Failed, "the other one has failed too");
    assert_eq!(scene.at("Beside.a").await.done(json!({"n": 3})).await.unwrap(), AnswerResult::Now);
    assert_eq!(scene.world.outputs(&scene.run).await, json!({"n": 5}));
}

#[tokio::test]
async fn an_open_task_is_taken_from_its_holder() {
    let scene = AnswerScene::new("Letter", "Letter.a").await;
    let claim = scene.world.claim(1).await.remove(0);
    assert_eq!(scene.done(json!({"n": 2})).await.unwrap(), AnswerResult::Now);
    let late = scene.world.service.complete(&claim.ticket, &object(json!({"n": 9}))).await;
    assert!(matches!(late, Err(Refusal::LeaseLost { .. })), "{late:?}");
    scene.world.service.turn().await.unwrap();
    let next = scene.at("Letter.b").await;
    assert_eq!(next.give_up().await.unwrap(), AnswerResult::Now);
    scene.world.service.turn().await.unwrap();
    assert_eq!(scene.world.run(&scene.run).await.error.unwrap().to_string(), "Letter.b: not sent");
}

#[tokio::test]
async fn an_unprocessed_outcome_is_processed_first() {
    let scene = AnswerScene::new("Beside", "Beside.b").await;
    let claims = scene.world.claim(10).await;
    let bad = claims.iter().find(|claim| claim.task.name.ends_with("Bad")).unwrap();
    scene.world.service.fail(&bad.ticket, &broken()).await.unwrap();
    assert_eq!(scene.done(json!({"n": 2})).await.unwrap(), AnswerResult::Now);
    assert_eq!(scene.task().await.state, TaskState::Completed);
}

#[tokio::test]
async fn a_person_can_also_give_the_result_of_a_script_and_of_the_event_behind_it() {
    let scene = AnswerScene::new("Scripted", "Scripted.a").await;
    for result in [json!({"k": 1}), json!({"m": 2})] {
        for claim in scene.world.claim(10).await {
            scene.world.service.fail(&claim.ticket, &broken()).await.unwrap();
        }
        scene.world.service.turn().await.unwrap();
        assert_eq!(scene.world.status(&scene.run).await, RunStatus::Failed);
        assert_eq!(scene.done(result).await.unwrap(), AnswerResult::Now);
    }
    assert_eq!(scene.world.outputs(&scene.run).await, json!({"m": 2}));
}

#[tokio::test]
async fn a_mixin_is_answered_after_the_step_so_that_nothing_is_done_again() {
    let scene = AnswerScene::uncertain("Mixed", "Mixed.a").await;
    let mixin = scene.at("Mixed.a with Side").await;
    let refused = refusal(mixin.done(json!({"k": 5})).await);
    assert!(refused.contains("the work of `Mixed.a` failed beside it"), "{refused}");
    let error = scene.world.service.retry(&scene.run, &Again::Step(mixin.step.clone())).await.unwrap_err();
    assert!(matches!(error, Error::Refused(StateRefusal::Undecided { .. })), "{error}");
    scene.done(json!({"n": 4})).await.unwrap();
    assert_eq!(scene.world.status(&scene.run).await, RunStatus::Failed);
    mixin.done(json!({"k": 5})).await.unwrap();
    assert_eq!(scene.world.outputs(&scene.run).await, json!({"n": 4, "k": 5}));
    assert_eq!(scene.task().await.token, 1);
}

#[tokio::test]
async fn a_step_is_not_answered_where_that_would_be_wrong() {
    let caught = AnswerScene::new("Caught", "Caught.a").await;
    let claim = caught.world.claim(1).await.remove(0);
    caught.world.service.fail(&claim.ticket, &broken()).await.unwrap();
    caught.world.service.turn().await.unwrap();
    assert_eq!(caught.world.outputs(&caught.run).await, json!({"n": 0}));
    assert!(caught.done(json!({"n": 1})).await.is_err(), "its `catch` dealt with it");

    let canceled = AnswerScene::uncertain("Beside", "Beside.a").await;
    canceled.world.service.cancel(&canceled.run).await.unwrap();
    let refused = refusal(canceled.done(json!({"n": 1})).await);
    assert!(refused.contains("the run was canceled"), "{refused}");

    let scene = AnswerScene::uncertain("Letter", "Letter.a").await;
    let refused = refusal(scene.done(json!({"n": "two"})).await);
    assert!(refused.contains("`n` must be Long, but is String"), "{refused}");
    let root = AnswerScene { world: scene.world.restarted(), run: scene.run.clone(), step: StepId::root() };
    let refused = refusal(root.done(json!({"n": 1})).await);
    assert!(refused.contains("it failed because of `Letter.a`"), "{refused}");

    let failed = AnswerScene::new("Beside", "Beside.b").await;
    for claim in failed.world.claim(10).await {
        failed.world.service.fail(&claim.ticket, &broken()).await.unwrap();
    }
    failed.world.service.turn().await.unwrap();
    let refused = failed.give_up().await.unwrap_err();
    assert!(matches!(refused, Error::Refused(StateRefusal::FailedAlready { .. })), "{refused}");

    let sum = AnswerScene::new("Sum", "Sum.a").await;
    sum.done(json!({"any": "text"})).await.unwrap();
    sum.world.service.turn().await.unwrap();
    let of_itself = sum.at("Sum.b").await;
    let refused = refusal(of_itself.done(json!({"n": 1})).await);
    assert!(refused.contains("no work from outside failed, but the step itself"), "{refused}");
}

#[tokio::test]
async fn an_incomplete_result_is_refused_and_can_be_given_again() {
    let scene = AnswerScene::uncertain("Letter", "Letter.a").await;
    let refused = refusal(scene.done(json!({"m": 3})).await);
    assert!(refused.ends_with("is refused: it lacks `n`"), "{refused}");
    assert!(scene.task().await.is_uncertain());
    assert_eq!(scene.done(json!({"n": 3})).await.unwrap(), AnswerResult::Now);
    assert_eq!(scene.world.claim(10).await[0].payload["n"], 3);
}

#[tokio::test]
async fn an_answer_to_a_held_run_waits_until_it_goes_on() {
    let scene = AnswerScene::new("Beside", "Beside.b").await;
    let claims = scene.world.claim(10).await;
    let bad = claims.iter().find(|claim| claim.task.name.ends_with("Bad")).unwrap();
    scene.world.service.fail(&bad.ticket, &broken()).await.unwrap();
    scene.world.service.turn().await.unwrap();
    scene.world.service.pause(&scene.run).await.unwrap();
    let before = scene.world.run(&scene.run).await.iterations;
    scene.done(json!({"n": 2})).await.unwrap();
    scene.world.service.turn().await.unwrap();
    assert_eq!(scene.world.run(&scene.run).await.iterations, before);
    scene.world.service.resume(&scene.run).await.unwrap();
    scene.world.service.turn().await.unwrap();
    scene.world.examine().await;
    scene.at("Beside.a").await.done(json!({"n": 1})).await.unwrap();
    scene.world.service.turn().await.unwrap();
    assert_eq!(scene.world.outputs(&scene.run).await, json!({"n": 3}));
}

/// An answer is one commit: whichever write of it fails, no agent finds the task to be done.
#[tokio::test]
async fn g1_no_moment_of_an_answer_offers_the_work_to_agents() {
    for number in 1..4 {
        let scene = AnswerScene::uncertain("Letter", "Letter.a").await;
        let mut writes = 0;
        scene.world.faulty.plan(move |call: BackendCall| {
            writes += u64::from(matches!(call.verb, BackendVerb::Commit | BackendVerb::Take));
            if writes >= number { Fault::Disconnect { calls: 100 } } else { Fault::None }
        });
        // It may fail at any of its writes.
        drop(
            scene
                .world
                .service
                .answer(&scene.run, &scene.step, &ReportedOutcome::Done(object(json!({"n": 7}))))
                .await,
        );
        let world = scene.world.restarted();
        let offered = world.claim(10).await;
        assert!(offered.iter().all(|claim| claim.ticket.step != scene.step), "write {number}: {offered:?}");
        world.examine().await;
    }
}

// covers: SDK-3.2-c
#[tokio::test]
async fn m12_m10_a_task_is_ignored_when_skipped_and_canceled_when_canceled() {
    let told = AnswerScene::new("Told", "Told.a").await;
    told.world.service.skip(&told.run, &told.step).await.unwrap();
    assert_eq!(told.task().await.state, TaskState::Ignored);
    told.world.service.turn().await.unwrap();
    assert_eq!(told.world.outputs(&told.run).await, json!({"n": 1}));
    told.world.examine().await;
    let again = told.world.service.skip(&told.run, &told.step).await.unwrap_err().to_string();
    assert_eq!(again, "the task of `Told.a` is ignored, so it cannot be skipped");

    let scene = AnswerScene::new("Letter", "Letter.a").await;
    let error = scene.world.service.skip(&scene.run, &scene.step).await.unwrap_err();
    assert!(
        matches!(&error, Error::Invalid(InvalidRequest::NeedsResult { lacks, .. }) if *lacks == ["n"]),
        "{error}"
    );
    let scene = AnswerScene::new("Sum", "Sum.a").await;
    let claim = scene.world.claim(1).await.remove(0);
    scene.world.service.cancel_task(&scene.run, &scene.step).await.unwrap();
    assert_eq!(scene.task().await.state, TaskState::Canceled);
    let late = scene.world.service.complete(&claim.ticket, &object(json!({"n": 9}))).await;
    assert!(matches!(late, Err(Refusal::Canceled { .. })), "{late:?}");
    scene.world.service.turn().await.unwrap();
    scene.world.examine().await;
    scene.world.service.retry(&scene.run, &Again::Run).await.unwrap();
    assert_eq!(scene.task().await.state, TaskState::Pending);
}

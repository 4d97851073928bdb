//! G4: work that must happen at most once, failed, and may have happened is a person's to decide.

use afl_engine::run::RunStatus;
use afl_engine::task::TaskState;
use afl_engine::time::Millis;
use afl_runtime::agent::WorkEvidence;
use afl_runtime::{Again, AnswerResult, Error, On, StateRefusal};
use serde_json::{Value, json};

use crate::answering::{AnswerScene, object};
use crate::world::broken;

/// A run whose first work failed so.
async fn failed(workflow: &str, evidence: WorkEvidence) -> AnswerScene {
    let scene = AnswerScene::new(workflow, &format!("{workflow}.a")).await;
    let claim = scene.world.claim(1).await.remove(0);
    scene.world.service.fail(&claim.ticket, &broken().with_evidence(evidence)).await.unwrap();
    scene.world.service.turn().await.unwrap();
    scene.world.examine().await;
    scene
}

/// A run whose first work returned this.
async fn returned(workflow: &str, result: Value) -> AnswerScene {
    let scene = AnswerScene::new(workflow, &format!("{workflow}.a")).await;
    let claim = scene.world.claim(1).await.remove(0);
    scene.world.service.complete(&claim.ticket, &object(result)).await.unwrap();
    scene.world.service.turn().await.unwrap();
    scene.world.examine().await;
    scene
}

fn is_undecided(error: &Error) -> bool {
    matches!(error, Error::Refused(StateRefusal::Undecided { must_return, .. }) if *must_return == ["n"])
}

async fn needs_decision(scene: &AnswerScene) {
    for again in [Again::Run, Again::Within(scene.step.clone())] {
        let error = scene.world.service.retry(&scene.run, &again).await.unwrap_err();
        assert!(is_undecided(&error), "{again:?}: {error}");
    }
    assert_eq!(scene.task().await.state, TaskState::Failed);
    let why = scene.world.service.why(&scene.run).await.unwrap();
    assert!(matches!(&why.waits[..], [wait] if matches!(wait.on, On::Decision { .. })), "{why:?}");
}

#[tokio::test]
async fn g4_a_reported_failure_of_once_work_is_repeated_only_when_a_person_names_it() {
    let scene = failed("Letter", WorkEvidence::Reported).await;
    assert_eq!(scene.task().await.error_kind.as_deref(), Some("Broken"));
    needs_decision(&scene).await;
    scene.world.service.retry(&scene.run, &Again::Step(scene.step.clone())).await.unwrap();
    assert_eq!(scene.task().await.state, TaskState::Pending);
}

#[tokio::test]
async fn g4_a_person_may_complete_or_give_up_once_work_whose_failure_was_reported() {
    let scene = failed("Letter", WorkEvidence::Reported).await;
    assert_eq!(scene.done(json!({"n": 7})).await.unwrap(), AnswerResult::Now);
    assert_eq!(scene.task().await.state, TaskState::Completed);

    let scene = failed("Letter", WorkEvidence::Reported).await;
    assert_eq!(scene.give_up().await.unwrap(), AnswerResult::Now);
    assert_eq!(scene.give_up().await.unwrap(), AnswerResult::Before);
    assert_eq!(scene.world.run(&scene.run).await.error.unwrap().to_string(), "Letter.a: not sent");
    // Who gives work up does not say that it did not happen.
    needs_decision(&scene).await;
}

#[tokio::test]
async fn g4_once_work_of_which_nothing_happened_is_retried_with_its_run() {
    let scene = failed("Letter", WorkEvidence::NotDone).await;
    assert_eq!(scene.world.status(&scene.run).await, RunStatus::Failed);
    let opened = scene.world.service.retry(&scene.run, &Again::Run).await.unwrap();
    assert_eq!(opened, std::slice::from_ref(&scene.step));
    assert_eq!(scene.task().await.state, TaskState::Pending);
}

#[tokio::test]
async fn g4_a_result_that_does_not_fit_leaves_once_work_uncertain() {
    for result in [json!({"n": "seven"}), json!({"m": 7}), json!({"n": 7.5}), json!({})] {
        let scene = returned("Letter", result.clone()).await;
        let task = scene.task().await;
        assert!(task.is_uncertain(), "{result}: {task:?}");
        let error = scene.world.run(&scene.run).await.error.unwrap();
        assert!(error.is_uncertain() && error.message.contains("`n`"), "{result}: {error}");
        needs_decision(&scene).await;
        assert_eq!(scene.done(json!({"n": 7})).await.unwrap(), AnswerResult::Now, "{result}");
        let next = scene.world.claim(10).await.remove(0);
        assert_eq!((&*next.task.path, &next.payload["n"]), ("Letter.b", &json!(7)), "{result}");
    }
}

#[tokio::test]
async fn g4_a_result_that_does_not_fit_leaves_the_once_work_of_a_mixin_uncertain() {
    let scene = AnswerScene::new("Mixed", "Mixed.a").await;
    for claim in scene.world.claim(10).await {
        let result = if claim.task.name.ends_with("Side") { json!({"k": "five"}) } else { json!({"n": 1}) };
        scene.world.service.complete(&claim.ticket, &object(result)).await.unwrap();
    }
    scene.world.service.turn().await.unwrap();
    scene.world.examine().await;
    let mixin = scene.at("Mixed.a with Side").await;
    assert!(mixin.task().await.is_uncertain());
    let error = scene.world.service.retry(&scene.run, &Again::Run).await.unwrap_err();
    assert!(matches!(error, Error::Refused(StateRefusal::Undecided { .. })), "{error}");
    mixin.done(json!({"k": 5})).await.unwrap();
    assert_eq!(scene.world.outputs(&scene.run).await, json!({"n": 1, "k": 5}));
}

#[tokio::test]
async fn g4_a_result_that_does_not_fit_leaves_a_script_uncertain_that_must_run_once() {
    let scene = returned("ScriptedOnce", json!({"m": "seven"})).await;
    assert!(scene.task().await.is_uncertain(), "{:?}", scene.task().await);
    let error = scene.world.service.retry(&scene.run, &Again::Run).await.unwrap_err();
    assert!(matches!(error, Error::Refused(StateRefusal::Undecided { .. })), "{error}");
    scene.done(json!({"k": 1})).await.unwrap();
    let next = scene.world.claim(10).await.remove(0);
    assert_eq!((&*next.task.name, next.ticket.token), ("t.Prepared", 2));
    scene.world.service.complete(&next.ticket, &object(json!({"m": 7}))).await.unwrap();
    scene.world.service.turn().await.unwrap();
    assert_eq!(scene.world.outputs(&scene.run).await, json!({"m": 7}));
    scene.world.examine().await;
}

#[tokio::test]
async fn g4_no_catch_decides_about_uncertain_work() {
    let unanswered = AnswerScene::uncertain("Caught", "Caught.a").await;
    let unusable = returned("Caught", json!({"n": "seven"})).await;
    let unknown = failed("Caught", WorkEvidence::Unknown).await;
    for scene in [&unanswered, &unusable, &unknown] {
        assert_eq!(scene.world.status(&scene.run).await, RunStatus::Failed);
        assert!(scene.task().await.is_uncertain());
        needs_decision(scene).await;
    }
    unanswered.done(json!({"n": 7})).await.unwrap();
    assert_eq!(unanswered.world.outputs(&unanswered.run).await, json!({"n": 7}));
    // What a person gives up is a failure as any other.
    unusable.give_up().await.unwrap();
    assert_eq!(unusable.world.outputs(&unusable.run).await, json!({"n": 0}));
    unknown.world.service.retry(&unknown.run, &Again::Step(unknown.step.clone())).await.unwrap();
    assert_eq!(unknown.world.claim(10).await.len(), 1);

    for evidence in [WorkEvidence::Reported, WorkEvidence::NotDone] {
        let caught = failed("Caught", evidence).await;
        assert_eq!(caught.world.outputs(&caught.run).await, json!({"n": 0}), "{evidence}");
    }
}

#[tokio::test]
async fn g4_no_catch_above_ends_uncertain_work_although_another_step_failed_first() {
    let scene = AnswerScene::new("Both", "Both.two.b").await;
    for claim in scene.world.claim(10).await {
        let evidence =
            if claim.task.name.ends_with("Send") { WorkEvidence::Unknown } else { WorkEvidence::Reported };
        scene.world.service.fail(&claim.ticket, &broken().with_evidence(evidence)).await.unwrap();
    }
    scene.world.service.turn().await.unwrap();
    scene.world.examine().await;
    assert_eq!(scene.world.status(&scene.run).await, RunStatus::Failed);
    assert!(scene.world.run(&scene.run).await.error.unwrap().is_uncertain());
    scene.done(json!({"n": 3})).await.unwrap();
    // Now the failure beside it is dealt with.
    assert_eq!(scene.world.outputs(&scene.run).await, json!({"n": 0}));
}

#[tokio::test]
async fn g4_a_timeout_of_once_work_that_has_begun_asks_a_person() {
    let scene = AnswerScene::new("Timed", "Timed.a").await;
    assert_eq!(scene.world.claim(10).await.len(), 1);
    scene.world.clock.advance(Millis(5_001));
    scene.world.service.sweep_once().await.unwrap();
    scene.world.service.turn().await.unwrap();
    scene.world.examine().await;
    assert!(scene.task().await.is_uncertain(), "{:?}", scene.task().await);
    assert_eq!(scene.world.status(&scene.run).await, RunStatus::Failed, "its `catch` did not run");
    needs_decision(&scene).await;
}

#[tokio::test]
async fn g4_a_cancel_of_once_work_that_has_begun_asks_a_person() {
    let scene = AnswerScene::new("Letter", "Letter.a").await;
    let claim = scene.world.claim(1).await.remove(0);
    scene.world.service.cancel_task(&scene.run, &scene.step).await.unwrap();
    scene.world.service.turn().await.unwrap();
    scene.world.examine().await;
    assert!(scene.task().await.is_uncertain());
    assert!(scene.world.service.complete(&claim.ticket, &object(json!({"n": 9}))).await.is_err());
    needs_decision(&scene).await;

    let unbegun = AnswerScene::new("Letter", "Letter.a").await;
    unbegun.world.service.cancel_task(&unbegun.run, &unbegun.step).await.unwrap();
    unbegun.world.service.turn().await.unwrap();
    assert_eq!(unbegun.task().await.state, TaskState::Canceled);
    unbegun.world.service.retry(&unbegun.run, &Again::Run).await.unwrap();
}

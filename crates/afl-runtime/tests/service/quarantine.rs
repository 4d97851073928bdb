//! Runs that are taken out of service: those that kill their processes, and those that the store refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afl_engine::evaluation::StoredRecord;
use afl_engine::id::RunId;
use afl_engine::run::{Control, EvaluationMark, Run, RunStatus};
use afl_engine::time::Millis;
use afl_runtime::doctor::{Promise, Remedy};
use afl_runtime::{StartRequest, WhyReason, compile};
use afl_store::backend::Durability;
use afl_store::fault::{BackendVerb, Fault};
use afl_store::notification::NotificationType;
use serde_json::json;

use crate::world::{World, answer};

const SILENCE: Millis = Millis(10_000);

/// A run whose outcome waits, as processes left it that died in its evaluation.
async fn left_behind(world: &World, deaths: u32) -> RunId {
    let run = world.start("One", json!({"n": 1})).await;
    for claim in world.claim(1).await {
        answer(&world.service, &claim).await;
    }
    let StoredRecord { item, version } = world.store().run(&run).await.unwrap().unwrap();
    let mark =
        EvaluationMark { by: "a dead process".into(), at: world.store().now().await.unwrap(), count: deaths };
    let marked = StoredRecord { item: Run { evaluating: Some(mark), ..item }, version };
    world.store().save_run(&marked, Durability::Relaxed).await.unwrap();
    run
}

/// The run is held, and people learn why; a resume takes it to its end.
async fn assert_held(world: &World, run: &RunId, reason: &str) {
    assert_eq!(world.run(run).await.control, Control::Hold);
    let why = world.service.why(run).await.unwrap();
    let WhyReason::Quarantined(quarantine) = &why.reason else { panic!("{why:?}") };
    assert!(quarantine.reason.contains(reason), "{quarantine:?}");
    let findings = world.service.doctor(Remedy::Tell).await.unwrap().findings;
    assert!(
        findings.iter().any(|finding| finding.promise == Promise::NoSilentStall
            && finding.run == *run
            && finding.problem.contains(reason)),
        "{findings:?}"
    );
    let unread = world.service.unread().await.unwrap();
    let told =
        unread.iter().find(|notice| notice.notification.run.as_ref() == Some(run)).expect("a notification");
    assert_eq!(told.notification.notification_type, NotificationType::RunQuarantined);
    assert!(told.notification.message.contains(reason), "{told:?}");

    world.service.resume(run).await.unwrap();
    world.finish().await;
    assert_eq!(world.status(run).await, RunStatus::Completed);
    assert_eq!((world.run(run).await.quarantine, world.run(run).await.evaluating), (None, None));
}

#[tokio::test]
async fn g5_a_run_is_held_at_the_second_death_of_a_process_in_its_evaluation() {
    let world = World::new();
    let run = left_behind(&world, 2).await;
    let innocent = world.start("Pure", json!({"n": 1})).await;
    world.clock.advance(SILENCE);
    world.service.turn().await.unwrap();
    assert_eq!(world.status(&innocent).await, RunStatus::Completed);
    assert_held(&world, &run, "2 processes in a row ended").await;
}

#[tokio::test]
async fn g5_one_death_holds_no_run_and_its_mark_ends_with_the_next_commit() {
    let world = World::new();
    let run = left_behind(&world, 1).await;
    world.clock.advance(SILENCE);
    world.finish().await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    assert_eq!(world.run(&run).await.evaluating, None);
}

#[tokio::test]
async fn g5_a_mark_whose_process_may_live_holds_no_run() {
    let world = World::new();
    let run = left_behind(&world, 2).await;
    world.clock.advance(Millis(SILENCE.0 - 1));
    world.finish().await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

#[tokio::test]
async fn g9_a_run_whose_changes_the_store_refuses_twice_is_held_with_the_reason() {
    let refusals = Arc::new(AtomicUsize::new(0));
    let left = Arc::clone(&refusals);
    let world = World::with_faults(move |call| {
        let take = |left: usize| left.checked_sub(1);
        let is_refused = call.verb == BackendVerb::Commit
            && left.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok();
        if is_refused { Fault::Refused } else { Fault::None }
    });
    for (refused, status) in [(1, RunStatus::Completed), (2, RunStatus::Paused)] {
        let run = world.start("One", json!({"n": 1})).await;
        for claim in world.claim(1).await {
            answer(&world.service, &claim).await;
        }
        refusals.store(refused, Ordering::Release);
        world.service.turn().await.unwrap();
        assert_eq!(world.status(&run).await, status, "{refused} refusals");
        if refused == 2 {
            assert_held(&world, &run, "a name is too long").await;
        }
    }
}

#[tokio::test]
async fn g6_a_name_from_data_is_refused_by_its_step_on_every_store() {
    let program = "event facet E() => (n: Long)
        workflow W(list: String) andThen { e = E() with afl.policy.TaskList(name = $.list) }
        workflow N(needs: [String]) andThen { e = E() with afl.policy.Needs(capabilities = $.needs) }";
    let world = World::new();
    let hash = world.service.publish(&compile("w.afl", program).unwrap()).await.unwrap();
    for (workflow, inputs, reason) in [
        ("W", json!({"list": "a\u{0}b"}), "`afl.policy.TaskList` has a control character"),
        ("W", json!({"list": "x".repeat(9_000)}), "has 9000 bytes, and 200 is the limit"),
        ("W", json!({"list": ""}), "is empty"),
        ("N", json!({"needs": ["x".repeat(9_000)]}), "takes names of letters"),
        (
            "N",
            json!({"needs": (0..100).map(|at| format!("gpu-number-{at}")).collect::<Vec<_>>()}),
            "fewer or shorter",
        ),
    ] {
        let named = Some(workflow.to_owned());
        let request = StartRequest {
            workflow: named,
            inputs: inputs.as_object().unwrap().clone(),
            ..StartRequest::new(hash)
        };
        let run = world.service.start(request).await.unwrap().run;
        world.finish().await;
        let failure = world.run(&run).await.error.expect("it failed");
        assert!(failure.path == format!("{workflow}.e") && failure.message.contains(reason), "{failure}");
    }
}

//! Timers of the store: timeouts of steps that no agent takes, and steps that wait for a time.

use afl_engine::run::RunStatus;
use afl_engine::time::Millis;
use afl_runtime::agent::Refusal;
use afl_runtime::{Again, On};
use serde_json::json;

use crate::world::{World, inc};

const DAY: Millis = Millis(86_400_000);

#[tokio::test]
async fn g9_any_process_fires_the_timeout_of_a_step_that_no_agent_takes() {
    let world = World::new();
    let run = world.start("Timed", json!({"n": 1})).await;
    let why = world.service.why(&run).await.unwrap();
    let times_out = world.clock.now().plus(Millis(10_000));
    assert!(matches!(why.waits[0].on, On::Agent { .. }));
    assert_eq!((why.waits[0].times_out, why.next), (Some(times_out), Some(times_out)));
    world.clock.advance(Millis(10_000));
    // The process that created the timer is gone.
    let other = world.restarted();
    assert!(other.claim(1).await.is_empty(), "no agent begins work whose time is over");
    other.finish().await;
    assert_eq!(other.status(&run).await, RunStatus::Failed);
    let error = other.run(&run).await.error.unwrap();
    assert_eq!((error.path.as_str(), error.kind.as_str()), ("Timed.a", "timeout"));
    // A retry has the whole time anew.
    other.service.retry(&run, &Again::Step(error.step)).await.unwrap();
    other.examine().await;
    other.clock.advance(Millis(9_999));
    assert_eq!(other.service.sweep_once().await.unwrap().arrived, []);
    other.finish().await;
    assert_eq!(other.outputs(&run).await, json!({"n": 2}));
}

#[tokio::test]
async fn g4_a_timeout_of_begun_once_work_does_not_enter_a_catch() {
    let world = World::new();
    let begun = world.start("OnceTimed", json!({"n": 1})).await;
    let claim = world.claim(1).await.remove(0);
    let waiting = world.start("OnceTimed", json!({"n": 1})).await;
    world.clock.advance(Millis(10_000));
    world.service.sweep_once().await.unwrap();
    let late = world.service.complete(&claim.ticket, &inc(&claim)).await.unwrap_err();
    assert!(matches!(late, Refusal::LeaseLost { .. }), "{late}");
    world.finish().await;
    // Nothing has begun, so the `catch` may deal with it.
    assert_eq!(world.outputs(&waiting).await, json!({"n": 0, "error": "timeout"}));
    assert_eq!(world.status(&begun).await, RunStatus::Failed);
    assert_eq!(world.run(&begun).await.error.unwrap().kind, "uncertain");
    let why = world.service.why(&begun).await.unwrap();
    assert!(why.waits.iter().any(|wait| matches!(wait.on, On::Decision { .. })), "{why:?}");
}

#[tokio::test]
async fn a_wait_needs_no_agent_and_outlives_its_process() {
    let world = World::new();
    let run = world.start("Later", json!({})).await;
    let at = world.clock.now().plus(Millis(3 * DAY.0));
    let why = world.service.why(&run).await.unwrap();
    assert_eq!(why.waits[0].on, On::Timer { name: "afl.time.Wait".to_owned(), at });
    assert_eq!(why.next, Some(at));
    world.finish().await;
    world.clock.advance(Millis(3 * DAY.0 - 1));
    let other = world.restarted();
    assert_eq!(other.service.sweep_once().await.unwrap().next, Some(at));
    other.finish().await;
    assert_eq!(other.status(&run).await, RunStatus::Paused);
    other.clock.advance(Millis(1));
    other.service.sweep_once().await.unwrap();
    other.finish().await;
    assert_eq!(other.outputs(&run).await, json!({"at": "2027-01-18T08:00:00.000Z"}));
}

#[tokio::test]
async fn a_moment_is_waited_for_and_one_that_has_passed_is_not() {
    let world = World::new();
    let past = world.start("Dated", json!({"at": "2001-01-01T00:00:00Z"})).await;
    let future = world.start("Dated", json!({"at": "2027-01-15T10:00:00+01:00"})).await;
    let wrong = world.start("Dated", json!({"at": "at noon"})).await;
    world.service.sweep_once().await.unwrap();
    world.finish().await;
    assert_eq!(world.outputs(&past).await, json!({"at": "2001-01-01T00:00:00.000Z"}));
    assert_eq!(world.status(&future).await, RunStatus::Paused);
    let error = world.run(&wrong).await.error.unwrap().to_string();
    assert!(error.starts_with("Dated.a: `at` of `afl.time.Until` is \"at noon\""), "{error}");
    world.clock.advance(Millis(3_600_000));
    world.service.sweep_once().await.unwrap();
    world.finish().await;
    assert_eq!(world.outputs(&future).await, json!({"at": "2027-01-15T09:00:00.000Z"}));
}

#[tokio::test]
async fn g7_a_canceled_run_leaves_no_timer() {
    let world = World::new();
    let runs = [world.start("Later", json!({})).await, world.start("Timed", json!({"n": 1})).await];
    for run in &runs {
        world.service.cancel(run).await.unwrap();
    }
    world.finish().await;
    let swept = world.service.sweep_once().await.unwrap();
    assert_eq!((swept.next, swept.arrived), (None, Vec::new()));
    for run in &runs {
        assert_eq!(world.status(run).await, RunStatus::Canceled);
    }
}

//! The times of a task: the silence and the length of an attempt, the timeout of a step, timers that answer.

use super::*;
use crate::backend::ClockStatus;
use crate::queue::outcome;

fn timeout(ms: i64) -> Policy {
    Policy { timeout_ms: Some(Millis(ms)), ..Policy::default() }
}

async fn kind(world: &World, step: &StepId) -> Option<String> {
    world.event(step).await.error.map(|error| error.kind)
}

#[tokio::test]
async fn silence_beyond_the_heartbeat_fails_the_attempt_before_the_lease_ends() {
    let world = World::new().await;
    let policy = Policy { heartbeat_ms: Some(Millis(1_000)), ..Policy::default() };
    let step = world.ask(1, "a.F", policy).await;
    let claim = world.one().await;
    world.clock.advance(Millis(900));
    world.queue.extend(&claim.ticket, LEASE).await.unwrap();
    world.clock.advance(Millis(900));
    assert_eq!(world.queue.sweep_once().await.unwrap().arrived.len(), 0);
    world.clock.advance(Millis(100));
    assert_eq!(world.queue.sweep_once().await.unwrap().arrived.len(), 1);
    assert_eq!(kind(&world, &step).await.as_deref(), Some("timeout"));
}

#[tokio::test]
async fn g5_an_attempt_beyond_its_time_fails_although_it_sends_heartbeats() {
    let world = World::new().await;
    let retry = RetryPolicy { max: 2, backoff_ms: Millis(0), factor: 1.0, max_backoff_ms: Millis(0) };
    let policy = Policy { attempt_timeout_ms: Some(Millis(1_000)), retry: Some(retry), ..Policy::default() };
    let step = world.ask(1, "a.F", policy).await;
    for attempt in 1..=2 {
        let claim = world.one().await;
        for _ in 0..9 {
            world.clock.advance(Millis(100));
            world.queue.extend(&claim.ticket, LEASE).await.unwrap();
            assert_eq!(world.queue.sweep_once().await.unwrap().requeued, 0);
        }
        world.clock.advance(Millis(100));
        let swept = world.queue.sweep_once().await.unwrap();
        assert_eq!((swept.requeued, swept.arrived.len()), if attempt == 1 { (1, 0) } else { (0, 1) });
        assert!(matches!(world.queue.extend(&claim.ticket, LEASE).await, Err(Refusal::LeaseLost { .. })));
    }
    assert_eq!(kind(&world, &step).await.as_deref(), Some("timeout"));
}

#[tokio::test]
async fn g9_a_step_that_no_agent_takes_times_out() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", timeout(10_000)).await;
    assert_eq!(world.queue.upkeep().await.unwrap().next, Some(world.clock.now().plus(Millis(10_000))));
    world.clock.advance(Millis(9_999));
    assert_eq!(world.queue.sweep_once().await.unwrap().arrived, []);
    world.clock.advance(Millis(1));
    assert_eq!(world.claim(&[], 1).await, [], "no agent begins work whose time is over");
    let swept = world.queue.sweep_once().await.unwrap();
    assert_eq!(swept.arrived, [(world.run.clone(), step.clone())]);
    let error = world.event(&step).await.error.unwrap();
    assert_eq!(
        (error.kind.as_str(), error.message.as_str()),
        ("timeout", "its Timeout of 10000 ms is over, and no agent took `a.F`: start one for it")
    );
    assert_eq!(world.task(&step).await.state, TaskState::Failed);
    let again = world.queue.sweep_once().await.unwrap();
    assert_eq!((again.arrived.len(), again.next), (0, None), "a timer fires once");
}

#[tokio::test]
async fn a_timeout_counts_all_attempts_and_ends_a_holder_that_sends_heartbeats() {
    let world = World::new().await;
    let retry = RetryPolicy { max: 9, backoff_ms: Millis(400), factor: 1.0, max_backoff_ms: Millis(400) };
    let step = world.ask(1, "a.F", Policy { retry: Some(retry), ..timeout(1_000) }).await;
    let claim = world.one().await;
    world.queue.fail(&claim.ticket, &error()).await.unwrap();
    world.clock.advance(Millis(400));
    assert_eq!(world.queue.sweep_once().await.unwrap().due, 1);
    let claim = world.one().await;
    world.clock.advance(Millis(500));
    world.queue.extend(&claim.ticket, LEASE).await.unwrap();
    world.clock.advance(Millis(100));
    assert_eq!(world.queue.sweep_once().await.unwrap().arrived.len(), 1);
    assert_eq!(kind(&world, &step).await.as_deref(), Some("timeout"));
    let late = world.queue.complete(&claim.ticket, &result()).await;
    assert!(matches!(late, Err(Refusal::LeaseLost { .. })), "{late:?}");
    assert_eq!(world.task(&step).await.state, TaskState::Failed);
}

#[tokio::test]
async fn a_timeout_ends_the_wait_for_a_retry() {
    let world = World::new().await;
    let retry =
        RetryPolicy { max: 9, backoff_ms: Millis(60_000), factor: 1.0, max_backoff_ms: Millis(60_000) };
    let step = world.ask(1, "a.F", Policy { retry: Some(retry), ..timeout(1_000) }).await;
    let claim = world.one().await;
    world.queue.fail(&claim.ticket, &error()).await.unwrap();
    world.clock.advance(Millis(1_000));
    assert_eq!(world.queue.sweep_once().await.unwrap().arrived.len(), 1);
    let error = world.event(&step).await.error.unwrap();
    assert!(error.message.ends_with("the last attempt failed: it broke"), "{}", error.message);
}

#[tokio::test]
async fn g4_a_timeout_of_begun_once_work_asks_a_person() {
    let world = World::new().await;
    let once = Policy { effect: Some(Effect::Once), ..timeout(1_000) };
    let begun = world.ask(1, "a.F", once.clone()).await;
    let claim = world.one().await;
    let waiting = world.ask(2, "a.G", once).await;
    world.clock.advance(Millis(1_000));
    assert_eq!(world.queue.sweep_once().await.unwrap().arrived.len(), 2);
    assert!(world.task(&begun).await.is_uncertain());
    assert_eq!(kind(&world, &begun).await.as_deref(), Some("uncertain"));
    assert_eq!(kind(&world, &waiting).await.as_deref(), Some("timeout"), "it has not begun");
    assert!(matches!(world.queue.complete(&claim.ticket, &result()).await, Err(Refusal::LeaseLost { .. })));
}

#[tokio::test]
async fn a_result_in_time_leaves_no_timer() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", timeout(1_000)).await;
    let claim = world.one().await;
    world.queue.complete(&claim.ticket, &result()).await.unwrap();
    assert_eq!(world.queue.upkeep().await.unwrap().next, None);
    world.clock.advance(Millis(5_000));
    assert_eq!(world.queue.sweep_once().await.unwrap().arrived, []);
    assert_eq!(world.task(&step).await.state, TaskState::Completed);
}

#[tokio::test]
async fn two_janitors_fire_one_timer_once() {
    let world = World::new().await;
    world.ask(1, "a.F", timeout(1_000)).await;
    world.clock.advance(Millis(1_000));
    let (one, other) = tokio::join!(world.queue.sweep_once(), world.queue.sweep_once());
    assert_eq!(one.unwrap().arrived.len() + other.unwrap().arrived.len(), 1);
}

/// The clock of a store and the wall clock may differ: an operator sets the one, and not the other.
#[tokio::test]
async fn g10_the_wall_clock_ends_until_and_the_clock_of_the_store_ends_a_wait() {
    let world = World::new().await;
    let (early, at) = (Millis(999), Millis(1_000));
    for (name, by_store, by_wall) in [("afl.time.Until", false, true), ("afl.time.Wait", true, false)] {
        let new = NewTask {
            step_id: StepId::root(),
            workflow_id: world.run.clone(),
            name: name.into(),
            path: "W.s".to_owned(),
            task_list_name: "default".into(),
            policy: Policy::default(),
            turn: Millis(0),
            token: 0,
            claims: 0,
            fires: Some(at),
        };
        let task = Task::pending(new, Millis(0));
        let event = Event::open(StepId::root(), name.into(), BTreeMap::new());
        let fires = |now, wall| {
            let clock = ClockStatus { now, wall, machine: wall, jump: None };
            outcome::due(task.clone(), event.clone(), clock).unwrap().is_some()
        };
        assert_eq!((fires(at, early), fires(early, at)), (by_store, by_wall), "{name}");
    }
}

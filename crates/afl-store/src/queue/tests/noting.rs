//! Reports of a holder before its outcome.

use afl_engine::attribute::ValueRef;
use afl_engine::event::Payload;

use super::*;
use crate::queue::{LogLevel, LogLine, LogStream};

fn line(text: &str) -> LogLine {
    LogLine { stream: LogStream::Stdout, level: LogLevel::Info, text: text.to_owned() }
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn plain(payload: &Payload) -> Value {
    let values = payload.iter().map(|(name, held)| match held {
        ValueRef::Inline(value) => (name.clone(), value.clone()),
        ValueRef::Blob { .. } => panic!("{name} is small"),
    });
    Value::Object(values.collect())
}

// covers: SDK-8.9-a, SDK-8.9-b
#[tokio::test]
async fn parts_of_a_result_are_seen_at_once_and_the_whole_comes_over_them() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    let claim = world.one().await;
    world.queue.update(&claim.ticket, &object(&json!({"pages": 1, "note": "begun"}))).await.unwrap();
    world.queue.update(&claim.ticket, &object(&json!({"pages": 2}))).await.unwrap();
    let event = world.event(&step).await;
    assert_eq!(plain(&event.told_by(claim.ticket.token)), json!({"note": "begun", "pages": 2}));
    assert_eq!(event.reception, Reception::Open, "the step goes on");
    world.queue.complete(&claim.ticket, &result()).await.unwrap();
    let whole = world.event(&step).await.result.unwrap();
    assert_eq!(plain(&whole), json!({"note": "begun", "pages": 2, "out": 3}));
}

// covers: XR-4
#[tokio::test]
async fn f4_t15_an_agent_that_has_lost_a_task_writes_no_notes_of_it() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    let stale = world.one().await;
    world.clock.advance(LEASE);
    world.queue.sweep_once().await.unwrap();
    world.one().await;
    let updated = world.queue.update(&stale.ticket, &result()).await;
    assert!(matches!(updated, Err(Refusal::LeaseLost { .. })), "{updated:?}");
    let logged = world.queue.log(&stale.ticket, 0, vec![line("late")]).await;
    assert!(matches!(logged, Err(Refusal::LeaseLost { .. })), "{logged:?}");
    let completed = world.queue.complete(&stale.ticket, &result()).await;
    assert!(matches!(completed, Err(Refusal::LeaseLost { .. })), "{completed:?}");
    let failed = world.queue.fail(&stale.ticket, &error()).await;
    assert!(matches!(failed, Err(Refusal::LeaseLost { .. })), "{failed:?}");
    assert_eq!(world.event(&step).await.partial, None);
    assert_eq!(world.queue.log_after(&world.run, &step, None).await.unwrap(), []);
}

#[tokio::test]
async fn t15_notes_of_a_lost_attempt_are_no_part_of_anothers_result() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    let first = world.one().await;
    world.queue.update(&first.ticket, &object(&json!({"pages": 1, "draft": "by the first"}))).await.unwrap();
    world.clock.advance(LEASE);
    world.queue.sweep_once().await.unwrap();
    let second = world.one().await;
    world.queue.update(&second.ticket, &object(&json!({"pages": 2}))).await.unwrap();
    let parts = world.event(&step).await.told_by(second.ticket.token);
    assert_eq!(plain(&parts), json!({"pages": 2}));
    world.queue.complete(&second.ticket, &result()).await.unwrap();
    let whole = world.event(&step).await.result.unwrap();
    assert_eq!(plain(&whole), json!({"pages": 2, "out": 3}));
}

// T19: each attempt numbers its own lines.
#[tokio::test]
async fn lines_are_kept_in_order_for_each_attempt_and_may_be_sent_twice() {
    let world = World::new().await;
    let policy = Policy { retry: Some(RETRY), ..Policy::default() };
    let step = world.ask(1, "a.F", policy).await;
    let first = world.one().await;
    world.queue.log(&first.ticket, 0, vec![line("one"), line("two")]).await.unwrap();
    world.queue.log(&first.ticket, 1, vec![line("three")]).await.unwrap();
    world.queue.log(&first.ticket, 1, vec![line("three")]).await.unwrap();
    world.queue.fail(&first.ticket, &error()).await.unwrap();
    world.queue.log(&first.ticket, 2, vec![line("after the end")]).await.unwrap();
    let second = world.one().await;
    world.queue.log(&second.ticket, 0, vec![line("again")]).await.unwrap();
    let pages = world.queue.log_after(&world.run, &step, None).await.unwrap();
    let shown: Vec<String> = pages
        .iter()
        .flat_map(|page| page.lines.iter().map(|line| format!("{}: {}", page.token, line.text)))
        .collect();
    assert_eq!(shown, ["1: one", "1: two", "1: three", "1: after the end", "2: again"]);
    let rest = world.queue.log_after(&world.run, &step, Some((1, 2))).await.unwrap();
    assert_eq!(rest.len(), 1);
}

const RETRY: RetryPolicy =
    RetryPolicy { max: 2, backoff_ms: Millis(0), factor: 1.0, max_backoff_ms: Millis(0) };

//! Messages to the outside: each end has exactly one, which stays until it is confirmed.

use std::sync::Arc;

use afl_engine::event::{EventState, Reception};
use afl_engine::id::RunId;
use afl_engine::run::RunStatus;
use afl_engine::task::TaskState;
use afl_engine::time::Millis;
use afl_runtime::doctor::Remedy;
use afl_runtime::outbox::{Channel, ChannelTarget, DeliveryFailure, Envelope};
use afl_runtime::{Again, Error, StateRefusal};
use afl_store::backend::{Backend, Batch, Change, Durability, Expect, Scan, Write};
use afl_store::fault::{Fault, FaultMoment, at_write};
use afl_store::outbox::Outbox;
use afl_store::record::Tenant;
use serde_json::{Value, json};

use crate::world::{World, broken, inc};

const DAY: Millis = Millis(24 * 3_600_000);

fn channel(topics: &[&str], facets: &[&str]) -> Channel {
    let texts = |patterns: &[&str]| patterns.iter().map(|it| (*it).to_owned()).collect();
    Channel {
        to: ChannelTarget::Feed,
        topics: texts(topics),
        facets: texts(facets),
        secret: None,
        enabled: true,
        created: Millis(0),
        updated: Millis(0),
    }
}

async fn open(world: &World, name: &str, topics: &[&str], facets: &[&str]) {
    world.service.open_channel(name, channel(topics, facets)).await.unwrap();
}

async fn read(world: &World, name: &str) -> Vec<Envelope> {
    world.service.feed(name, 100).await.unwrap()
}

/// Topic, path and outcome.
async fn told(world: &World, name: &str) -> Vec<(String, String, Value)> {
    let outcome = |letter: &Envelope| match (&letter.result, &letter.error) {
        (Some(result), _) => json!(result),
        (None, Some(error)) => json!(error.message),
        (None, None) => Value::Null,
    };
    let letters = read(world, name).await;
    letters.iter().map(|it| (it.topic.to_string(), it.path.clone(), outcome(it))).collect()
}

fn line(topic: &str, path: &str, outcome: Value) -> (String, String, Value) {
    (topic.to_owned(), path.to_owned(), outcome)
}

#[tokio::test]
async fn each_end_is_published_to_the_channels_that_want_it() {
    let world = World::new();
    open(&world, "all", &["*"], &[]).await;
    open(&world, "runs", &["run.*"], &[]).await;
    open(&world, "bad", &["task.*"], &["t.B*"]).await;
    world.start("One", json!({"n": 1})).await;
    world.finish().await;
    let one =
        [line("task.completed", "One.a", json!({"n": 2})), line("run.completed", "t.One", json!({"n": 2}))];
    assert_eq!(told(&world, "all").await, one);

    world.clock.advance(Millis(1));
    let skipped = world.start("Told", json!({"n": 1})).await;
    world.service.skip(&skipped, &world.step(&skipped, "a").await).await.unwrap();
    assert_eq!(told(&world, "all").await[2], line("task.ignored", "Told.a", json!({})));
    world.clock.advance(Millis(1));
    world.service.cancel(&skipped).await.unwrap();
    let canceled = json!("the run was canceled");
    assert_eq!(
        told(&world, "all").await[3..],
        [line("task.canceled", "Told.b", canceled), line("run.canceled", "t.Told", Value::Null),]
    );

    world.clock.advance(Millis(1));
    let risky = world.start("Risky", json!({"n": 1})).await;
    world.finish().await;
    assert_eq!(told(&world, "bad").await, [line("task.failed", "Risky.b", json!("it broke"))]);
    world.service.retry(&risky, &Again::Run).await.unwrap();
    world.finish().await;
    assert_eq!(told(&world, "bad").await.len(), 2, "a second failure is another fact");
    let runs = told(&world, "runs").await;
    let topics: Vec<&str> = runs.iter().map(|(topic, ..)| topic.as_str()).collect();
    assert_eq!(topics, ["run.completed", "run.canceled", "run.failed", "run.failed"]);
    world.examine().await;
}

#[tokio::test]
async fn an_end_without_channels_costs_no_read_and_no_write_more() {
    let world = World::new();
    let mut costs = Vec::new();
    for facets in [&[][..], &["nobody.*"]] {
        if !facets.is_empty() {
            open(&world, "others", &["*"], facets).await;
        }
        for _ in 0..2 {
            world.start("Two", json!({"n": 1})).await;
            let claim = world.claim(1).await.remove(0);
            let before = world.faulty.counts();
            world.service.complete(&claim.ticket, &inc(&claim)).await.unwrap();
            let after = world.faulty.counts();
            costs.push((after.calls - before.calls, after.writes() - before.writes()));
        }
    }
    // The task with its event and run, the time, the commit; and a look at the channels when they may have changed.
    assert_eq!(costs, [(4, 1), (3, 1), (4, 1), (3, 1)]);
}

#[tokio::test]
async fn xr9_an_outcome_is_stored_with_all_that_follows_from_it_or_not_at_all() {
    for moment in [FaultMoment::Before, FaultMoment::After] {
        let world = World::new();
        open(&world, "all", &["*"], &[]).await;
        let run = world.start("Risky", json!({"n": 1})).await;
        let claim = world.claim(1).await.remove(0);
        world.service.complete(&claim.ticket, &inc(&claim)).await.unwrap();
        world.service.turn().await.unwrap();
        let claim = world.claim(1).await.remove(0);
        let next = world.faulty.counts().writes() + 1;
        world.faulty.plan(at_write(next, Fault::Gone(moment)));
        world.service.fail(&claim.ticket, &broken()).await.unwrap_err();

        let world = world.restarted();
        let step = claim.ticket.step.clone();
        let task = world.store().task(&run, &step).await.unwrap().unwrap().item;
        let event = world.store().event(&run, &step).await.unwrap().unwrap().item;
        let last = task.events().last().unwrap().event_type.name();
        let notices = world.service.notifications(10).await.unwrap().len();
        let letters = told(&world, "all").await;
        let is_settled = moment == FaultMoment::After;
        // The evaluator takes the arrived event, which lets the step continue.
        let expected = if is_settled {
            (TaskState::Failed, EventState::Error, Reception::Arrived, "ERROR", 1, 2)
        } else {
            (TaskState::Running, EventState::Created, Reception::Open, "STARTED", 0, 1)
        };
        let found = (task.state, event.state, event.reception, last, notices, letters.len());
        assert_eq!(found, expected, "{moment:?}");
        // A caller without an answer repeats the call.
        world.service.fail(&claim.ticket, &broken()).await.unwrap();
        world.finish().await;
        let failed = line("task.failed", "Risky.b", json!("it broke"));
        assert_eq!(told(&world, "all").await.into_iter().filter(|it| *it == failed).count(), 1);
        assert_eq!(world.status(&run).await, RunStatus::Failed);
    }
}

#[tokio::test]
async fn the_end_of_a_run_and_its_message_are_one_commit_wherever_it_breaks_off() {
    for moment in [FaultMoment::Before, FaultMoment::After] {
        let world = World::new();
        open(&world, "runs", &["run.*"], &[]).await;
        let run = world.start("One", json!({"n": 1})).await;
        let claim = world.claim(1).await.remove(0);
        world.service.complete(&claim.ticket, &inc(&claim)).await.unwrap();
        let next = world.faulty.counts().writes() + 1;
        world.faulty.plan(at_write(next, Fault::Gone(moment)));
        world.service.turn().await.unwrap_err();
        let world = world.restarted();
        let told = read(&world, "runs").await.len();
        assert_eq!(
            (moment == FaultMoment::After, told == 1),
            (told == 1, world.status(&run).await.is_terminal())
        );
        world.finish().await;
        assert_eq!(read(&world, "runs").await.len(), 1);
    }
}

#[tokio::test]
async fn no_power_cut_takes_back_a_published_message() {
    let world = World::with_power_cuts();
    open(&world, "runs", &["run.*"], &[]).await;
    let run = world.start("One", json!({"n": 1})).await;
    world.finish().await;
    assert_eq!(read(&world, "runs").await.len(), 1);
    world.memory.power_cut(10);
    let world = world.restarted();
    assert_eq!((world.status(&run).await, read(&world, "runs").await.len()), (RunStatus::Completed, 1));
}

// covers: EVT-3-b
#[tokio::test]
async fn events_are_dispatched_to_the_outside_and_polled_until_acknowledged() {
    let world = World::new();
    open(&world, "work", &["run.canceled"], &[]).await;
    open(&world, "done", &["task.*"], &[]).await;
    let run = world.start("One", json!({"n": 1})).await;
    let step = world.step(&run, "a").await;
    for _ in 0..2 {
        world.service.dispatch("work", &run, &step).await.unwrap();
    }
    let [sent] = &read(&world, "work").await[..] else { panic!("an event is dispatched once") };
    let id = format!("{run}/{step}");
    assert_eq!(
        (sent.event_id.as_ref(), sent.payload.clone()),
        (Some(&id), json!({"n": 1}).as_object().cloned())
    );
    assert_eq!(world.service.feed("done", 10).await.unwrap(), []);

    world.service.continue_step(&run, &step, json!({"n": 5}).as_object().unwrap()).await.unwrap();
    for _ in 0..2 {
        let polled = read(&world, "done").await;
        let completed: Vec<_> = polled.iter().map(|it| (it.event_id.clone(), json!(it.result))).collect();
        assert_eq!(completed, [(Some(id.clone()), json!({"n": 5}))], "it comes until it is acknowledged");
    }
    let ids: Vec<String> = read(&world, "done").await.into_iter().map(|letter| letter.id).collect();
    let strange = [ids.clone(), vec!["work/x".to_owned(), "nothing".to_owned()]].concat();
    assert_eq!(world.service.acknowledge("done", &strange).await.unwrap(), 1);
    assert_eq!(world.service.acknowledge("done", &ids).await.unwrap(), 0);
    assert_eq!(read(&world, "done").await, []);
    let late = world.service.dispatch("work", &run, &step).await.unwrap_err().to_string();
    assert!(late.contains("completed"), "{late}");
}

#[tokio::test]
async fn a_run_stays_while_a_message_needs_its_values() {
    let world = World::new();
    open(&world, "all", &["task.completed"], &[]).await;
    let (large, small) =
        (world.start("One", json!({"n": 1})).await, world.start("One", json!({"n": 2})).await);
    let text = "long ".repeat(2_000);
    for claim in world.claim(2).await {
        let mut result = inc(&claim);
        if claim.ticket.run == large {
            result.insert("note".to_owned(), json!(text));
            result.extend((0..3_000).map(|at| (format!("field{at}"), json!("some text of a field"))));
        }
        world.service.complete(&claim.ticket, &result).await.unwrap();
    }
    world.finish().await;
    world.clock.advance(DAY);
    assert_eq!(world.service.collect(world.clock.now()).await.unwrap(), [small]);
    let letters = read(&world, "all").await;
    let whole = letters.iter().find(|letter| letter.run == large).unwrap().result.clone().unwrap();
    assert_eq!((&whole["note"], whole.len()), (&json!(text), 3_002));
    let ids: Vec<String> = letters.into_iter().map(|letter| letter.id).collect();
    assert_eq!(world.service.acknowledge("all", &ids).await.unwrap(), 2);
    assert_eq!(world.service.collect(world.clock.now()).await.unwrap(), [large]);
}

async fn flip(world: &World, prefix: &str) {
    let tenant = Tenant::new(Tenant::LOCAL).unwrap();
    let (scope, prefix) = ("@outbox".into(), prefix.to_owned());
    let scan = Scan::Scope { tenant, scope, prefix, after: None, limit: 1 };
    let store: Arc<dyn Backend> = world.memory.clone();
    let mut record = store.scan(&scan).await.unwrap().remove(0);
    let middle = record.content.body.len() / 2;
    record.content.body[middle] ^= 1;
    let (expect, change) = (Expect::Version(record.version), Change::Put(record.content));
    let writes = vec![Write { key: record.key, expect, change }];
    store.commit(Batch::new(writes, Durability::Durable)).await.unwrap();
}

#[tokio::test]
async fn a_damaged_message_blocks_no_other_and_is_reported_once() {
    let world = World::new();
    open(&world, "all", &["task.completed"], &[]).await;
    let mut runs = Vec::new();
    for n in 0..3 {
        runs.push(world.start("One", json!({ "n": n })).await);
        world.finish().await;
        world.clock.advance(Millis(1));
    }
    flip(&world, &format!("all/{}/", runs[0])).await;
    let letters = world.service.feed("all", 1).await.unwrap();
    assert_eq!(letters.iter().map(|letter| &letter.run).collect::<Vec<_>>(), [&runs[1]]);
    let standing = world.outbox().status("all", 100).await.unwrap();
    assert_eq!((standing.waiting, standing.dead), (2, 1));
    for _ in 0..2 {
        world.service.watch_over(world.clock.now()).await.unwrap();
        let notices = world.service.notifications(10).await.unwrap();
        let types: Vec<&str> = notices.iter().map(|it| it.notification.notification_type.name()).collect();
        assert_eq!(types, ["OUTBOX_DEAD"]);
    }
    assert_eq!(world.outbox().revive("all").await.unwrap(), 0, "it cannot be read");
    let found = world.service.doctor(Remedy::Tell).await.unwrap().findings;
    assert_eq!(found.iter().map(|finding| &*finding.run.0).collect::<Vec<_>>(), ["@outbox"]);
    world.service.discard(&found[0].subject()).await.unwrap();
    world.examine().await;
    assert_eq!(world.service.drop_channel("all").await.unwrap(), 2);
}

/// As a store that has lost them.
async fn lose_values(world: &World, run: &RunId) {
    let tenant = Tenant::new(Tenant::LOCAL).unwrap();
    let (scope, prefix) = (run.to_string().into(), "x/".to_owned());
    let scan = Scan::Scope { tenant, scope, prefix, after: None, limit: 100 };
    let store: Arc<dyn Backend> = world.memory.clone();
    let lost = store.scan(&scan).await.unwrap().into_iter();
    let writes: Vec<Write> = lost
        .map(|record| Write {
            key: record.key,
            expect: Expect::Version(record.version),
            change: Change::Delete,
        })
        .collect();
    assert!(!writes.is_empty());
    store.commit(Batch::new(writes, Durability::Durable)).await.unwrap();
}

#[tokio::test]
async fn a_message_without_its_values_takes_nobodys_place_in_a_feed() {
    let world = World::new();
    open(&world, "all", &["task.completed"], &[]).await;
    let mut runs = Vec::new();
    for n in 0..3 {
        runs.push(world.start("One", json!({ "n": n })).await);
        let claim = world.claim(1).await.remove(0);
        let mut result = inc(&claim);
        if n == 0 {
            result.extend((0..3_000).map(|at| (format!("field{at}"), json!("some text of a field"))));
        }
        world.service.complete(&claim.ticket, &result).await.unwrap();
        world.finish().await;
        world.clock.advance(Millis(1));
    }
    lose_values(&world, &runs[0]).await;
    let letters = world.service.feed("all", 2).await.unwrap();
    assert_eq!(letters.iter().map(|letter| &letter.run).collect::<Vec<_>>(), [&runs[1], &runs[2]]);
}

#[tokio::test]
async fn messages_for_a_deleted_channel_reach_no_receiver() {
    let world = World::new();
    open(&world, "all", &["run.*"], &[]).await;
    world.start("Pure", json!({"n": 1})).await;
    let outbox = world.outbox();
    let remove = async || {
        let version = world.service.channel("all").await.unwrap().version;
        outbox.channels().remove("all", version).await.unwrap();
        world.clock.advance(Millis(1));
    };
    // As a process writes it that has the removed channel cached.
    remove().await;
    open(&world, "all", &["run.*"], &[]).await;
    assert_eq!(read(&world, "all").await, []);
    assert_eq!(outbox.waiting().await.unwrap(), []);
    world.start("Pure", json!({"n": 2})).await;
    assert_eq!(read(&world, "all").await.len(), 1);
    world.service.watch_over(world.clock.now()).await.unwrap();
    assert_eq!(read(&world, "all").await.len(), 1);
    remove().await;
    world.service.watch_over(world.clock.now()).await.unwrap();
    assert_eq!(outbox.waiting().await.unwrap(), []);
}

async fn due(world: &World, outbox: &Outbox) -> Vec<u32> {
    let page = outbox.due("all", world.clock.now(), None, 10).await.unwrap();
    page.items.iter().map(|row| row.message.delivery.attempts).collect()
}

#[tokio::test]
async fn a_message_that_fails_is_tried_later_and_given_up_after_a_day() {
    let world = World::new();
    open(&world, "all", &["run.*"], &[]).await;
    world.start("Pure", json!({"n": 1})).await;
    let outbox = world.outbox();
    let fail = async |hope| {
        let row = outbox.due("all", world.clock.now(), None, 10).await.unwrap().items.remove(0);
        outbox.failed(row, "away", hope).await.unwrap();
    };
    let mut waits = Vec::new();
    while waits.iter().sum::<i64>() < DAY.0 {
        fail(DeliveryFailure::Transient).await;
        let next = outbox.waiting().await.unwrap()[0].1;
        waits.push(next.since(world.clock.now()).0);
        world.clock.advance(Millis(waits.last().unwrap() - 1));
        assert_eq!(due(&world, &outbox).await, Vec::<u32>::new());
        world.clock.advance(Millis(1));
    }
    assert_eq!(waits[..10], [1, 2, 4, 8, 16, 32, 64, 128, 256, 300].map(|seconds| seconds * 1_000));
    fail(DeliveryFailure::Transient).await;
    assert_eq!((due(&world, &outbox).await, outbox.status("all", 9).await.unwrap().dead), (vec![], 1));
    assert_eq!(outbox.revive("all").await.unwrap(), 1);
    assert_eq!(due(&world, &outbox).await, [0]);
    let row = outbox.due("all", world.clock.now(), None, 10).await.unwrap().items.remove(0);
    outbox.failed(row, &"é".repeat(20 << 20), DeliveryFailure::Unreachable).await.unwrap();
    assert_eq!(outbox.status("all", 9).await.unwrap().last_error.map(|error| error.len()), Some(2_000));
    fail(DeliveryFailure::Permanent).await;
    let standing = outbox.status("all", 9).await.unwrap();
    assert_eq!((standing.waiting, standing.dead, standing.last_error.as_deref()), (0, 1, Some("away")));
}

#[tokio::test]
async fn a_feed_without_a_reader_for_a_day_is_reported_once() {
    let world = World::new();
    open(&world, "all", &["run.*"], &[]).await;
    world.start("Pure", json!({"n": 1})).await;
    world.clock.advance(Millis(DAY.0 - 1));
    let told = async || {
        world.service.watch_over(world.clock.now()).await.unwrap();
        world.service.notifications(10).await.unwrap().len()
    };
    assert_eq!(told().await, 0);
    world.clock.advance(Millis(1));
    assert_eq!((told().await, told().await), (1, 1));
    world.service.open_channel("all", Channel { enabled: false, ..channel(&["*"], &[]) }).await.unwrap();
    world.clock.advance(DAY);
    assert_eq!(told().await, 1, "it is meant to wait");
}

#[tokio::test]
async fn a_channel_is_checked_and_goes_when_nothing_waits_for_it() {
    let world = World::new();
    let refused = async |name: &str, channel: Channel| {
        world.service.open_channel(name, channel).await.unwrap_err().to_string()
    };
    for (name, topics, facets, part) in [
        ("a/b", &["*"][..], &[][..], "is no name"),
        ("", &["*"], &[], "is no name"),
        ("a", &["task.done"], &[], "no topic fits `task.done`"),
        ("a", &["task.["], &[], "is no pattern"),
        ("a", &["*"], &["["], "is no pattern"),
    ] {
        let message = refused(name, channel(topics, facets)).await;
        assert!(message.contains(part), "{message}");
    }
    for to in ["ftp://x", "https://", "x", ""] {
        assert!(to.parse::<ChannelTarget>().is_err(), "{to}");
    }
    let refusal = "https://me:hidden@example.org/".parse::<ChannelTarget>().unwrap_err();
    assert!(!format!("{refusal} {refusal:?}").contains("hidden"), "{refusal}");
    let to: ChannelTarget = "https://example.org/hook?key=hidden".parse().unwrap();
    let shown = format!("{:?}", Channel { to, ..channel(&["*"], &[]) });
    assert!(shown.contains("example.org/hook") && !shown.contains("hidden"), "{shown}");
    open(&world, "orders", &["run.*"], &[]).await;
    world.start("Pure", json!({"n": 1})).await;
    assert!(matches!(
        world.service.close_channel("orders").await,
        Err(Error::Refused(StateRefusal::ChannelHolds { left: 1, .. }))
    ));
    let unknown = world.service.feed("order", 1).await.unwrap_err().to_string();
    assert_eq!(unknown, "there is no channel `order`; did you mean `orders`?");
    assert_eq!(world.service.drop_channel("orders").await.unwrap(), 1);
    world.start("Pure", json!({"n": 1})).await;
    assert_eq!(world.outbox().waiting().await.unwrap(), []);
}

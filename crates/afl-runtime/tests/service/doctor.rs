//! The doctor finds each promise broken where it is broken: the simulation and the crash tests believe what it says.

use afl_engine::id::RunId;
use afl_engine::time::Millis;
use afl_runtime::doctor::{Finding, Promise, Remedy};
use afl_store::store::RecordKind;
use serde_json::{Value, json};

use crate::world::{World, answer};

/// How far the run is that is harmed.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// `Two.a` waits for an agent.
    Waits,
    /// An agent has `Two.a`.
    Held,
    /// `Two.a` is complete, `Two.b` waits.
    Between,
    Ended,
    /// `Retried.a`, which may be tried three times, waits.
    Retried,
    /// An agent works on `Once.a`, which must happen at most once.
    Once,
    /// The agent fell silent.
    Uncertain,
    /// `Timed.a` waits for an agent, and times out.
    Timed,
    /// `Later.a` waits for a timer.
    Later,
    /// `Fan` waits, over more items than a record holds.
    Large,
}

/// Damage to one record that no process notices.
#[derive(Clone, Copy, Debug)]
enum Harm {
    /// Under a seal that fits, as after a mistake of the engine.
    Rewrite(&'static str, fn(&mut Value)),
    Lose(&'static str),
    Flip(&'static str),
    /// It stands in no list.
    Hide(&'static str),
    /// The first large value.
    LoseValue,
}

/// The doctor's findings then: all of them, each line from its beginning.
type Said = &'static [&'static str];

const PROMISES: [Promise; 10] = [
    Promise::AtomicStep,
    Promise::Acknowledged,
    Promise::OneOutcome,
    Promise::HonestEffects,
    Promise::CrashesCount,
    Promise::Completion,
    Promise::PinnedDefinition,
    Promise::NoSilentStall,
    Promise::OneClock,
    Promise::FailStop,
];

/// Every way to break a promise that the doctor knows.
fn harms(promise: Promise) -> Vec<(Stage, Harm, Said)> {
    match promise {
        Promise::AtomicStep => atomic_step(),
        Promise::Acknowledged => acknowledged(),
        Promise::OneOutcome => one_outcome(),
        Promise::HonestEffects => honest_effects(),
        Promise::CrashesCount => crashes_count(),
        Promise::Completion => completion(),
        Promise::PinnedDefinition => vec![(
            Stage::Waits,
            Harm::Rewrite("run", |run| run["workflow_version"] = json!("sha256:0")),
            &["PinnedDefinition t.Two: "],
        )],
        Promise::NoSilentStall => no_silent_stall(),
        Promise::OneClock => vec![(
            Stage::Held,
            Harm::Rewrite("t/wb0s0", |task| task["lease"]["heartbeat"] = json!(9_000_000_000_000_i64)),
            &["OneClock Two.a: its lease ended before it began"],
        )],
        Promise::FailStop => {
            vec![(Stage::Waits, Harm::Flip("s/wb0s0"), &["FailStop Two.a (record s/wb0s0): "])]
        }
    }
}

fn atomic_step() -> Vec<(Stage, Harm, Said)> {
    vec![
        (
            Stage::Waits,
            Harm::Lose("s/wb0"),
            &[
                "AtomicStep Two.a: the step or block that it belongs to is missing",
                "AtomicStep Two: it counts 3 steps (0 complete, 0 failed, 1 waiting), but has 2 steps",
            ],
        ),
        (
            Stage::Between,
            Harm::Lose("s/wb0s0"),
            &[
                "AtomicStep Two.a: there is a record `e/wb0s0`, but the step is missing",
                "AtomicStep Two.a: there is a record `t/wb0s0`, but the step is missing",
                "AtomicStep Two: it counts 4 steps (1 complete, 0 failed, 1 waiting), but has 3 steps",
            ],
        ),
        (
            Stage::Waits,
            Harm::Rewrite("s/wb0", |block| block["children"]["open"] = json!(0)),
            &["AtomicStep Two: it counts 0 open and 0 failed children, but has 1 and 0"],
        ),
        (
            Stage::Between,
            Harm::Rewrite("s/wb0", |block| block["children"]["failed"] = json!(2)),
            &["AtomicStep Two: it counts 1 open and 2 failed children, but has 1 and 0"],
        ),
        (
            Stage::Waits,
            Harm::Rewrite("run", |run| run["counts"]["complete"] = json!(1)),
            &[
                "AtomicStep Two: it counts 3 steps (1 complete, 0 failed, 1 waiting), but has 3 steps (0 complete",
            ],
        ),
        (
            Stage::Waits,
            Harm::Rewrite("s/wb0s0", |step| step["event"] = json!("answered")),
            &["AtomicStep Two.a: its event is open, but the step's is answered"],
        ),
    ]
}

fn acknowledged() -> Vec<(Stage, Harm, Said)> {
    vec![
        (
            Stage::Waits,
            Harm::Lose("e/wb0s0"),
            &[
                "Acknowledged Two.a: it was sent out, but its event or its task is missing",
                "AtomicStep Two: it counts 3 steps (0 complete, 0 failed, 1 waiting), but has 3 steps (0 complete, 0 failed, 0 waiting)",
                "NoSilentStall Two: it waits, but nothing will ever wake it",
            ],
        ),
        (
            Stage::Between,
            Harm::Lose("t/wb0s0"),
            &["Acknowledged Two.a: it was sent out, but its event or its task is missing"],
        ),
        (Stage::Waits, Harm::Lose("run"), &["Acknowledged run: the run itself is missing"]),
        (Stage::Large, Harm::LoseValue, &["Acknowledged Fan: the value of `items` is not in the store"]),
    ]
}

fn one_outcome() -> Vec<(Stage, Harm, Said)> {
    vec![
        (
            Stage::Waits,
            Harm::Rewrite("t/wb0s0", |task| task["state"] = json!("completed")),
            &[
                "NoSilentStall Two.a (record t/wb0s0): it is in `tasks/default/t.Inc`",
                "OneOutcome Two.a: its event is event.Created, but its task is completed",
            ],
        ),
        (
            Stage::Between,
            Harm::Rewrite("e/wb0s0", |event| event["reception"] = json!("open")),
            &[
                "OneOutcome Two.a: its event is event.Completed, but its reception is open",
                "AtomicStep Two: it counts 4 steps (1 complete, 0 failed, 1 waiting), but has 4 steps (1 complete, 0 failed, 2 waiting)",
            ],
        ),
        (
            Stage::Held,
            Harm::Rewrite("t/wb0s0", |task| task["lease"] = Value::Null),
            &[
                "NoSilentStall Two.a (record t/wb0s0): it is in `running/default/t.Inc`",
                "OneOutcome Two.a: an agent works on it without a lease",
            ],
        ),
        (
            Stage::Held,
            Harm::Rewrite("t/wb0s0", |task| task["token"] = json!(0)),
            &["OneOutcome Two.a: it counts 1 deliveries in 1 claims up to token 0"],
        ),
    ]
}

fn honest_effects() -> Vec<(Stage, Harm, Said)> {
    vec![
        (
            Stage::Once,
            Harm::Rewrite("t/wb0s0", |task| hand_out(task, 2)),
            &["HonestEffects Once.a: it must happen at most once, but was handed out 2 times"],
        ),
        (
            Stage::Uncertain,
            Harm::Rewrite("t/wb0s0", |task| task["error_kind"] = json!("EventError")),
            &["HonestEffects Once.a: it may have happened, but no person is asked"],
        ),
        (
            Stage::Uncertain,
            Harm::Rewrite("s/wb0s0", |step| step["caught"] = step["error"].clone()),
            &["HonestEffects Once.a: it may have happened, but a `catch` dealt with it"],
        ),
    ]
}

fn hand_out(task: &mut Value, times: u32) {
    for count in ["deliveries", "claims", "token"] {
        task[count] = json!(times);
    }
}

fn crashes_count() -> Vec<(Stage, Harm, Said)> {
    vec![
        (
            Stage::Waits,
            Harm::Rewrite("t/wb0s0", |task| hand_out(task, 6)),
            &["CrashesCount Two.a: it was handed out 6 times without an answer"],
        ),
        (
            Stage::Retried,
            Harm::Rewrite("t/wb0s0", |task| task["attempts"] = json!(4)),
            &["CrashesCount Retried.a: it was tried 4 times"],
        ),
    ]
}

fn completion() -> Vec<(Stage, Harm, Said)> {
    vec![
        (
            Stage::Ended,
            Harm::Rewrite("s/wb0s2", |step| step["state"] = json!("state.statement.Created")),
            &[
                "Completion Two.yield.Two: the run has ended, but this step has not",
                "AtomicStep Two: it counts 0 open and 0 failed children, but has 1 and 0",
                "AtomicStep Two: it counts 5 steps (5 complete, 0 failed, 0 waiting), but has 5 steps (4 complete",
            ],
        ),
        (
            Stage::Ended,
            Harm::Rewrite("e/wb0s1", |event| event["reception"] = json!("arrived")),
            &[
                "NoSilentStall Two.b (record e/wb0s1): it is in no bucket",
                "Completion Two.b: the run has ended, but its task or event has not",
                "AtomicStep Two: it counts 5 steps (5 complete, 0 failed, 0 waiting), but has 5 steps (5 complete, 0 failed, 1 waiting)",
            ],
        ),
        (
            Stage::Ended,
            Harm::Rewrite("t/wb0s1", |task| task["state"] = json!("pending")),
            &[
                "NoSilentStall Two.b (record t/wb0s1): it is in no bucket",
                "OneOutcome Two.b: its event is event.Completed, but its task is pending",
                "Completion Two.b: the run has ended, but its task or event has not",
            ],
        ),
    ]
}

fn no_silent_stall() -> Vec<(Stage, Harm, Said)> {
    vec![
        (Stage::Waits, Harm::Hide("run"), &["NoSilentStall run: it is in no bucket"]),
        (Stage::Waits, Harm::Hide("t/wb0s0"), &["NoSilentStall Two.a (record t/wb0s0): it is in no bucket"]),
        (
            Stage::Timed,
            Harm::Hide("e/wb0s0"),
            &["NoSilentStall Timed.a (record e/wb0s0): it is in no bucket"],
        ),
        (
            Stage::Later,
            Harm::Hide("t/wb0s0"),
            &["NoSilentStall Later.a (record t/wb0s0): it is in no bucket"],
        ),
        (
            Stage::Timed,
            Harm::Rewrite("t/wb0s0", |task| task["times_out"] = json!(1)),
            &["NoSilentStall Timed.a: its event and its task time out at different times"],
        ),
        (
            Stage::Timed,
            Harm::Rewrite("t/wb0s0", |task| task["policy"] = json!({})),
            &["NoSilentStall Timed.a: it has a timeout without a timer, or a timer without a timeout"],
        ),
        (
            Stage::Later,
            Harm::Rewrite("t/wb0s0", |task| task["not_before"] = Value::Null),
            &[
                "NoSilentStall Later.a (record t/wb0s0): it is in `timers/wait`",
                "NoSilentStall Later.a: only a timer can answer it, and it has none",
            ],
        ),
        (
            Stage::Ended,
            Harm::Rewrite("run", |run| run["status"] = json!("paused")),
            &[
                "NoSilentStall run: it is in `runs/completed`",
                "NoSilentStall Two: it waits, but nothing will ever wake it",
            ],
        ),
    ]
}

async fn reach(world: &World, stage: Stage) -> RunId {
    let run = match stage {
        Stage::Retried => world.start("Retried", json!({"n": 1})).await,
        Stage::Once | Stage::Uncertain => world.start("Once", json!({"n": 1})).await,
        Stage::Timed => world.start("Timed", json!({"n": 1})).await,
        Stage::Later => world.start("Later", json!({})).await,
        Stage::Large => world.start("Fan", json!({"items": vec![1_000_000; 2_000]})).await,
        Stage::Waits | Stage::Held | Stage::Between | Stage::Ended => {
            world.start("Two", json!({"n": 1})).await
        }
    };
    match stage {
        Stage::Waits | Stage::Retried | Stage::Timed | Stage::Later | Stage::Large => {}
        Stage::Held | Stage::Once => drop(world.claim(1).await),
        Stage::Uncertain => {
            drop(world.claim(1).await);
            world.clock.advance(Millis(61_000));
            world.service.turn().await.unwrap();
            world.service.turn().await.unwrap();
        }
        Stage::Between => {
            answer(&world.service, &world.claim(1).await[0]).await;
            world.service.turn().await.unwrap();
        }
        Stage::Ended => world.finish().await,
    }
    run
}

async fn harm(world: &World, run: &RunId, harm: Harm) {
    match harm {
        Harm::Rewrite(record, change) => world.falsify(&run.0, record, change).await,
        Harm::Lose(record) => world.lose(&run.0, record).await,
        Harm::Flip(record) => world.damage(&run.0, record).await,
        Harm::Hide(record) => world.rewrite(&run.0, record, |content| content.place = None).await,
        Harm::LoseValue => {
            let records = world.store().inspect(run, None, 10_000).await.unwrap();
            let value = records.into_iter().find(|one| one.sort == RecordKind::Blob).unwrap();
            world.lose(&run.0, &value.record).await;
        }
    }
}

fn said(Finding { promise, path, problem, .. }: &Finding) -> String {
    format!("{promise:?} {path}: {problem}")
}

#[tokio::test]
async fn each_promise_that_is_broken_is_found_by_its_name_where_it_is_broken() {
    for promise in PROMISES {
        for (stage, done, expected) in harms(promise) {
            let world = World::new();
            let run = reach(&world, stage).await;
            world.examine().await;
            harm(&world, &run, done).await;
            let findings = world.service.doctor(Remedy::Tell).await.unwrap().findings;
            let found: Vec<String> = findings.iter().map(said).collect();
            let fits = |(found, expected): (&String, &&str)| found.starts_with(expected);
            assert!(
                found.len() == expected.len() && found.iter().zip(expected).all(fits),
                "{promise:?}, {stage:?}, {done:?}: {found:#?}"
            );
            assert!(findings.iter().any(|finding| finding.promise == promise), "{promise:?}: {found:?}");
            assert!(findings.iter().all(|finding| finding.run == run), "{promise:?}: {findings:?}");
        }
    }
}

#[tokio::test]
async fn a_system_task_that_has_ended_by_halves_is_found() {
    let world = World::new();
    let handed = world.service.hand_over(world.request("One", json!({"n": 1})).await).await.unwrap();
    let task = format!("@execute/{}", handed.run);
    world.examine().await;
    world.falsify(&task, "e/w", |event| event["reception"] = json!("taken")).await;
    let findings = world.service.doctor(Remedy::Tell).await.unwrap().findings;
    let found: Vec<String> = findings.iter().map(said).collect();
    assert_eq!(found, ["Completion start t.One: it is pending, but its event is not"]);
    world.lose(&task, "e/w").await;
    let findings = world.service.doctor(Remedy::Tell).await.unwrap().findings;
    assert_eq!(
        findings.iter().map(said).collect::<Vec<_>>(),
        ["Completion start t.One: its event is missing"]
    );
}

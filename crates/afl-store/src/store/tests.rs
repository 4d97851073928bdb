//! The promises of the typed store, on the memory backend.

mod delete;

use crate::conformance::unread;
use std::collections::BTreeMap;
use std::sync::Arc;

use afl_engine::attribute::{Blob, BlobHash};
use afl_engine::evaluation::Wants;
use afl_engine::id::{RunId, Segment, StepId};
use afl_engine::policy::Policy;
use afl_engine::run::{Active, Control, Counts, Run, RunStatus};
use afl_engine::task::{NewTask, Task};
use afl_engine::time::Millis;

use super::{Defect, Error, RunState, Store};
use crate::backend::{Backend, Batch, Change, Durability, Expect, Limits, Write};
use crate::clock::{Clock, SimClock};
use crate::memory::{LIMITS, Memory};
use crate::record::Tenant;

fn store(limits: Limits) -> Store {
    let clock = Clock::Simulated(SimClock::new(Millis(1_000)));
    let memory: Arc<dyn Backend> = Arc::new(Memory::new(clock).with_limits(limits));
    Store::new(memory, Tenant::new(Tenant::LOCAL).unwrap())
}

fn run(id: &str, status: RunStatus, created: i64) -> Run {
    Run {
        id: RunId(id.into()),
        workflow: "Test".into(),
        workflow_version: "sha256:0".to_owned(),
        status,
        control: Control::Go,
        created: Millis(created),
        updated: Millis(created),
        ended: None,
        labels: BTreeMap::new(),
        idempotency_key: None,
        iterations: 1,
        iterations_per_run: vec![1],
        iterations_now: 0,
        active: 0,
        counts: Counts::default(),
        turn: None,
        error: None,
        evaluating: None,
        quarantine: None,
    }
}

async fn keep(store: &Store, run: &Run) {
    let write = store.put(&run.id, run, Expect::Absent, Millis(0));
    store.write(vec![write], Durability::Durable).await.unwrap();
}

#[tokio::test]
async fn runs_are_listed_newest_first_over_all_their_shelves() {
    let store = store(LIMITS);
    let statuses = [RunStatus::Paused, RunStatus::Failed, RunStatus::Running, RunStatus::Completed];
    for (at, status) in (0..10).zip(statuses.into_iter().cycle()) {
        keep(&store, &run(&format!("r{at}"), status, at)).await;
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = store.runs(RunState::ALL, after.as_ref(), 3).await.unwrap();
        seen.extend(page.items.iter().map(|run| run.item.created.0));
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!(seen, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    let failed = store.runs(&[RunState::Failed], None, 100).await.unwrap();
    assert_eq!(failed.items.len(), 3);
}

// covers: RT-17-b
#[tokio::test]
async fn f12_a_flipped_byte_or_a_newer_version_names_its_run_and_stops_no_other() {
    let store = store(LIMITS);
    for id in ["good", "flipped", "newer form", "newer rules"] {
        keep(&store, &run(id, RunStatus::Paused, 1)).await;
    }
    let newer = Defect::Newer { found: 2, known: 1 };
    for (id, defect) in [("flipped", Defect::Checksum), ("newer form", newer.clone()), ("newer rules", newer)]
    {
        let run_id = RunId(id.into());
        let mut write =
            store.put(&run_id, &run(id, RunStatus::Paused, 1), Expect::Version(unread(1)), Millis(0));
        let Change::Put(content) = &mut write.change else { unreachable!("a put is a put") };
        match id {
            "flipped" => content.body[10] ^= 1,
            "newer form" => content.seal.schema += 1,
            _ => content.seal.runtime += 1,
        }
        store.write(vec![write], Durability::Durable).await.unwrap();
        let error = store.run(&run_id).await.unwrap_err();
        assert!(
            matches!(&error, Error::Unreadable { run, record, defect: found }
                if *run == run_id && record == "run" && *found == defect),
            "{error}"
        );
    }
    let page = store.runs(RunState::ALL, None, 10).await.unwrap();
    assert_eq!(page.items.len(), 1);
    assert_eq!(page.unreadable.len(), 3);
}

#[tokio::test]
async fn f12_a_lost_or_cut_list_of_active_steps_is_named() {
    let store = store(LIMITS);
    let midway = Run { active: 2, ..run("midway", RunStatus::Running, 1) };
    keep(&store, &midway).await;
    let lost = store.suspended(&midway.id).await.unwrap_err().to_string();
    assert!(
        lost.starts_with("run midway is quarantined: its record `active` is damaged (it names 0"),
        "{lost}"
    );
    for (steps, is_whole) in [(1, false), (2, true)] {
        let active = Active(vec![StepId::root(); steps]);
        let write = store.put(&midway.id, &active, Expect::Absent, Millis(0));
        store.write(vec![write], Durability::Durable).await.unwrap();
        assert_eq!(store.suspended(&midway.id).await.is_ok(), is_whole);
        let key = store.run_key(&midway.id, "active".to_owned());
        let delete = Write { key, expect: Expect::Version(unread(1)), change: Change::Delete };
        store.write(vec![delete], Durability::Durable).await.unwrap();
    }
}

#[tokio::test]
async fn f14_a_value_larger_than_a_record_or_a_batch_is_kept_in_pieces() {
    let store = store(Limits { batch_writes: 100, batch_bytes: 4_000, body_bytes: 1_000 });
    let run = RunId("big".into());
    let blobs: Vec<Blob> = [100, 900, 30_000]
        .map(|length| "é".repeat(length))
        .map(|text| Blob { hash: BlobHash::of(&text), text })
        .into();
    for _ in 0..2 {
        store.write_with_blobs(&run, Batch::new(Vec::new(), Durability::Durable), &blobs).await.unwrap();
    }
    let wants = Wants { blobs: blobs.iter().map(|blob| blob.hash.clone()).collect(), ..Wants::default() };
    for (hash, text) in store.load(&run, &wants).await.unwrap().blobs {
        let blob = blobs.iter().find(|blob| blob.hash == hash).unwrap();
        assert_eq!(text.as_ref(), Some(&blob.text));
    }
}

#[test]
fn tasks_are_ranked_by_priority_then_age() {
    let task = |priority, created| {
        let task = NewTask {
            step_id: StepId::root().child(Segment::Clause(0)),
            workflow_id: RunId("r".into()),
            name: "a.F".into(),
            path: String::new(),
            task_list_name: "default".into(),
            policy: Policy { priority, ..Policy::default() },
            turn: Millis(created),
            token: 0,
            claims: 0,
            fires: None,
        };
        let task = Task::pending(task, Millis(created));
        super::place::of_task(&task).unwrap().rank
    };
    let now = 1_800_000_000_000;
    let ranks = [
        task(Some(90), now),
        task(Some(51), now + 1),
        task(None, now),
        task(None, now + 1),
        task(Some(-3), 5),
    ];
    assert!(ranks.is_sorted(), "{ranks:?}");
}

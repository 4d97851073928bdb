//! F13: the clock of the store jumps. That may delay work; no agent gets a task that another holds.

use std::collections::BTreeMap;

use afl_engine::run::RunStatus;
use afl_engine::time::Millis;
use afl_runtime::agent::{Claim, ClaimRequest, FacetFilter, Refusal, SettleResult};
use afl_runtime::doctor::Remedy;
use afl_store::seed::SeededRng;
use serde_json::json;

use crate::world::{World, inc};

const HOUR: Millis = Millis(3_600_000);
const LEASE: Millis = Millis(60_000);
/// 2038-01-19, when 32 bits of seconds end; 2106-02-07, when those without a sign do; and the year 2600.
const MOMENTS: [i64; 3] = [2_147_483_647_000, 4_294_967_295_000, 19_880_899_200_000];

#[tokio::test]
async fn f13_an_hour_back_during_a_lease_keeps_the_holder_and_delays_only() {
    let world = World::new();
    let run = world.start("One", json!({"n": 1})).await;
    let held = world.claim(1).await.remove(0);
    world.clock.advance(Millis(-HOUR.0));
    world.service.sweep_once().await.unwrap();
    assert!(world.claim(1).await.is_empty());
    world.service.extend(&held.ticket, LEASE).await.unwrap();
    // The heartbeat brought the lease back to the clock that counts now.
    world.clock.advance(Millis(LEASE.0 + 1));
    assert_eq!(world.service.sweep_once().await.unwrap().requeued, 1);
    let next = world.claim(1).await.remove(0);
    let late = world.service.complete(&held.ticket, &inc(&held)).await.unwrap_err();
    assert!(matches!(late, Refusal::LeaseLost { .. }), "{late}");
    world.service.complete(&next.ticket, &inc(&next)).await.unwrap();
    world.finish().await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    world.examine().await;
}

#[tokio::test]
async fn g10_a_clock_that_is_set_ahead_takes_no_task_from_a_living_holder() {
    let world = World::new();
    let run = world.start("One", json!({"n": 1})).await;
    let held = world.claim(1).await.remove(0);
    world.clock.advance(Millis(LEASE.0 / 2));
    world.clock.set_ahead(HOUR);
    world.clock.advance(Millis(LEASE.0 - 1));
    assert_eq!(world.service.sweep_once().await.unwrap().requeued, 0);
    assert!(world.claim(1).await.is_empty());
    let findings = world.service.doctor(Remedy::Tell).await.unwrap().findings;
    let problems: Vec<&str> = findings.iter().map(|finding| finding.problem.as_str()).collect();
    assert_eq!(
        problems,
        ["it jumped ahead by 3600 s: leases from before the jump last their whole length again"]
    );
    world.service.extend(&held.ticket, LEASE).await.unwrap();
    world.clock.advance(Millis(LEASE.0 - 1));
    assert_eq!(world.service.sweep_once().await.unwrap().requeued, 0);
    world.service.complete(&held.ticket, &inc(&held)).await.unwrap();
    world.clock.advance(HOUR);
    world.finish().await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
}

#[tokio::test]
async fn g10_a_holder_that_died_before_a_jump_loses_its_task_one_lease_after_it() {
    let world = World::new();
    world.start("One", json!({"n": 1})).await;
    world.claim(1).await;
    world.clock.set_ahead(HOUR);
    world.clock.advance(LEASE);
    assert_eq!(world.service.sweep_once().await.unwrap().requeued, 1);
    assert_eq!(world.claim(1).await.len(), 1);
}

#[tokio::test]
async fn f13_an_hour_forward_during_a_lease_gives_the_task_to_one_other_and_notifies_the_first() {
    let world = World::new();
    let run = world.start("One", json!({"n": 1})).await;
    let held = world.claim(1).await.remove(0);
    world.clock.advance(HOUR);
    // No sweep has run yet, so the holder can still renew its lease.
    world.service.extend(&held.ticket, LEASE).await.unwrap();
    world.clock.advance(HOUR);
    assert_eq!(world.service.sweep_once().await.unwrap().requeued, 1);
    let next = world.claim(2).await;
    assert_eq!(next.len(), 1);
    // The clock comes back; the task stays with its holder.
    world.clock.advance(Millis(-2 * HOUR.0));
    world.service.sweep_once().await.unwrap();
    assert!(world.claim(1).await.is_empty());
    let late = world.service.complete(&held.ticket, &inc(&held)).await.unwrap_err();
    assert!(matches!(late, Refusal::LeaseLost { .. }), "{late}");
    world.service.complete(&next[0].ticket, &inc(&next[0])).await.unwrap();
    world.finish().await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    world.examine().await;
}

#[tokio::test]
async fn f13_runs_that_live_through_the_ends_of_time_stamps_end_well() {
    for moment in MOMENTS {
        let world = World::new();
        world.clock.advance(Millis(moment - 1 - world.clock.now().0));
        let runs = [
            world.start("Fan", json!({"items": [1, 2, 3]})).await,
            world.start("Two", json!({"n": 1})).await,
        ];
        let held = world.claim(1).await.remove(0);
        world.clock.advance(Millis(2));
        world.service.extend(&held.ticket, LEASE).await.unwrap();
        world.service.complete(&held.ticket, &inc(&held)).await.unwrap();
        world.finish().await;
        for run in &runs {
            assert_eq!(world.status(run).await, RunStatus::Completed, "at {moment}");
        }
        let failed = world.start("Retried", json!({"n": 1})).await;
        for _ in 0..3 {
            world.service.sweep_once().await.unwrap();
            world.finish().await;
            world.clock.advance(HOUR);
        }
        assert_eq!(world.status(&failed).await, RunStatus::Failed, "at {moment}");
        world.examine().await;
    }
}

/// Agents come and go while the clock jumps to and fro; a task never has two who may settle it.
#[tokio::test]
async fn f13_g10_no_jump_gives_a_task_to_two() {
    for seed in 0..40 {
        let world = World::new();
        let run = world.start("Fan", json!({"items": [1, 2, 3, 4]})).await;
        let mut rng = SeededRng::new(seed);
        let mut held: BTreeMap<String, Claim> = BTreeMap::new();
        let mut accepted: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..120 {
            match rng.below(6) {
                0 => world.clock.advance(Millis(*rng.pick(&[-HOUR.0, HOUR.0, 1_000, LEASE.0]))),
                1 => drop(world.service.sweep_once().await.unwrap()),
                2 | 3 => {
                    let now = world.clock.now();
                    let request =
                        ClaimRequest { lease: LEASE, ..ClaimRequest::new(FacetFilter::All, "agent") };
                    for claim in world.service.claim(&request).await.unwrap() {
                        let path = claim.task.path.clone();
                        if let Some(before) = held.insert(path.clone(), claim) {
                            let told = world.service.complete(&before.ticket, &inc(&before)).await;
                            let lost = matches!(told, Err(Refusal::LeaseLost { .. }));
                            assert!(lost, "seed {seed}: two may settle {path} at {now:?}");
                        }
                    }
                }
                4 => {
                    if let Some((_, claim)) = held.iter().next() {
                        drop(world.service.extend(&claim.ticket, LEASE).await);
                    }
                }
                _ => {
                    if let Some((path, claim)) = held.pop_last()
                        && let Ok(SettleResult::Arrived(_)) =
                            world.service.complete(&claim.ticket, &inc(&claim)).await
                    {
                        *accepted.entry(path).or_default() += 1;
                    }
                }
            }
        }
        assert!(accepted.values().all(|times| *times == 1), "seed {seed}: {accepted:?}");
        world.examine().await;
        for _ in 0..4 {
            world.clock.advance(Millis(4 * HOUR.0));
            world.service.sweep_once().await.unwrap();
            world.finish().await;
        }
        assert!(world.status(&run).await.is_terminal(), "seed {seed}: {:?}", world.service.why(&run).await);
        world.examine().await;
    }
}

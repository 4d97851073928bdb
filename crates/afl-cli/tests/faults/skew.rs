//! F13: processes whose clocks differ by an hour, on one file. That may delay work or move it; nothing is done twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use afl_backends::sqlite::{Options, Sqlite};
use afl_engine::run::RunStatus;
use afl_engine::time::Millis;
use afl_runtime::Service;
use afl_runtime::agent::{Claim, Refusal, SettleResult};
use afl_store::clock::{Clock, SimClock};
use afl_store::seed::SeededRng;
use serde_json::json;

use crate::site::Site;
use crate::work::{claim, examine, finish, output, result, start};

const NOW: Millis = Millis(1_800_000_000_000);
const HOUR: Millis = Millis(3_600_000);
const LEASE: Millis = Millis(60_000);

/// Two processes: the clock of the second is an hour ahead.
struct Skewed {
    _site: Site,
    clocks: [SimClock; 2],
    services: [Service; 2],
}

impl Skewed {
    fn new() -> Self {
        let site = Site::of("sqlite");
        let clocks = [SimClock::new(NOW), SimClock::new(NOW.plus(HOUR))];
        let services = clocks.clone().map(|clock| {
            let options = Options { clock: Clock::Simulated(clock), ..Options::default() };
            let store = Sqlite::open(&site.file(), options).unwrap();
            Service::new(Arc::new(store), site.tenant.clone())
        });
        Self { _site: site, clocks, services }
    }

    fn advance(&self, span: Millis) {
        self.clocks.iter().for_each(|clock| clock.advance(span));
    }
}

#[track_caller]
fn is_lost(told: &Result<SettleResult, Refusal>) {
    assert!(matches!(told, Err(Refusal::LeaseLost { .. })), "{told:?}");
}

#[tokio::test]
async fn f13_an_agent_that_loses_a_task_to_a_skewed_clock_learns_it_and_one_outcome_counts() {
    let skewed = Skewed::new();
    let [behind, ahead] = &skewed.services;
    let run = start(behind, "Two", json!({"n": 1})).await;
    let slow = claim(behind, 1).await.remove(0);
    // By its clock the lease is over for long.
    assert_eq!(ahead.sweep_once().await.unwrap().requeued, 1);
    let quick = claim(ahead, 1).await.remove(0);
    assert!(claim(behind, 1).await.is_empty());
    let extended = behind.extend(&slow.ticket, LEASE).await;
    assert!(matches!(extended, Err(Refusal::LeaseLost { .. })), "{extended:?}");
    is_lost(&behind.complete(&slow.ticket, &result(&slow)).await);
    let ten = json!({"n": 10}).as_object().unwrap().clone();
    let told = ahead.complete(&quick.ticket, &ten).await;
    assert!(matches!(told, Ok(SettleResult::Arrived(_))), "{told:?}");
    is_lost(&behind.complete(&slow.ticket, &result(&slow)).await);
    behind.turn().await.unwrap();

    // The other way round: the process behind waits for a lease of the one ahead, by an hour longer.
    let gone = claim(ahead, 1).await.remove(0);
    skewed.advance(LEASE.plus(Millis(1)));
    assert_eq!(behind.sweep_once().await.unwrap().requeued, 0);
    skewed.advance(HOUR);
    assert_eq!(behind.sweep_once().await.unwrap().requeued, 1);
    finish(behind).await;
    is_lost(&ahead.complete(&gone.ticket, &result(&gone)).await);
    assert_eq!(output(ahead, &run).await, json!({"n": 11}));
    examine(behind).await;
    examine(ahead).await;
}

/// Both claim, extend, settle and sweep in any order.
#[tokio::test]
async fn f13_g3_no_order_of_two_processes_an_hour_apart_gives_a_step_two_outcomes() {
    const ITEMS: [i64; 4] = [1, 2, 3, 4];
    let mut completed = 0;
    for seed in 0..10 {
        let skewed = Skewed::new();
        let services = &skewed.services;
        let run = start(&services[0], "Fan", json!({ "items": ITEMS })).await;
        let mut rng = SeededRng::new(seed);
        // All that was ever claimed, by who claimed it.
        let mut claims: Vec<(usize, Claim)> = Vec::new();
        let mut accepted: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..80 {
            let who = rng.below(2);
            match rng.below(5) {
                0 => skewed.advance(*rng.pick(&[Millis(1_000), LEASE])),
                1 => drop(services[who].sweep_once().await.unwrap()),
                2 => {
                    let claimed = claim(&services[who], 1).await;
                    claims.extend(claimed.into_iter().map(|claim| (who, claim)));
                }
                3 if !claims.is_empty() => {
                    let (who, claim) = rng.pick(&claims);
                    drop(services[*who].extend(&claim.ticket, LEASE).await);
                }
                _ if !claims.is_empty() => {
                    let (who, claim) = rng.pick(&claims);
                    match services[*who].complete(&claim.ticket, &result(claim)).await {
                        Ok(SettleResult::Arrived(_)) => {
                            *accepted.entry(claim.task.path.clone()).or_default() += 1;
                        }
                        Ok(SettleResult::Repeated) | Err(Refusal::LeaseLost { .. }) => {}
                        other => panic!("seed {seed}: {other:?}"),
                    }
                }
                _ => {}
            }
        }
        assert!(accepted.values().all(|times| *times == 1), "seed {seed}: {accepted:?}");
        assert!(!accepted.is_empty(), "seed {seed}");
        skewed.advance(HOUR.plus(LEASE).plus(LEASE));
        services[0].sweep_once().await.unwrap();
        finish(&services[0]).await;
        examine(&services[0]).await;
        let ended = services[1].run(&run).await.unwrap();
        match ended.status {
            RunStatus::Completed => {
                let all: Vec<i64> = ITEMS.iter().map(|item| item + 1).collect();
                assert_eq!(output(&services[1], &run).await, json!({ "all": all }), "seed {seed}");
                completed += 1;
            }
            // A lease that is swept too early counts as lost, and so many losses fail the run.
            RunStatus::Failed => {
                assert!(ended.error.unwrap().to_string().contains("its lease ran out 5 times"));
            }
            status => panic!("seed {seed}: {status}"),
        }
    }
    assert!(completed > 5, "{completed}");
}

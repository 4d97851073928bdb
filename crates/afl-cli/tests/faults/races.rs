//! F6, F7: many do the same at once, on every store.

use std::sync::Arc;

use afl_engine::run::RunStatus;
use afl_engine::value::{Map, Value};
use afl_runtime::agent::{Claim, ContinueResult, Refusal, SettleResult, Ticket};
use afl_runtime::{AnswerResult, CancelResult, Error, ReportedOutcome, RunQuery, Service, StateRefusal};
use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::site::Site;
use crate::work::{claim, ended, examine, finish, output, request, result, start};

// covers: SDK-10.7-a
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f6_fifty_starts_at_once_with_one_key_are_one_run_on_every_store() {
    const STARTS: usize = 50;
    for site in Site::all() {
        let services = [site.service().await, site.service().await];
        let mut asked = request(&services[0], "Two", json!({"n": 1})).await;
        asked.idempotency_key = Some("order-7".to_owned());
        let gate = Arc::new(Barrier::new(STARTS));
        let mut starts = JoinSet::new();
        for nth in 0..STARTS {
            let (service, asked, gate) = (services[nth % 2].clone(), asked.clone(), gate.clone());
            starts.spawn(async move {
                gate.wait().await;
                service.start(asked).await.unwrap()
            });
        }
        let started = starts.join_all().await;
        assert!(started.iter().all(|one| one.run == started[0].run), "{:?}", site.kind);
        let new = started.iter().filter(|one| one.is_new).count();
        assert_eq!(new, 1, "{:?}", site.kind);
        let list = services[1].runs(&RunQuery { limit: 9, ..RunQuery::default() }).await.unwrap();
        assert_eq!(list.runs.len(), 1, "{:?}", site.kind);
        finish(&services[0]).await;
        assert_eq!(output(&services[1], &started[0].run).await, json!({"n": 3}));
        examine(&services[0]).await;
    }
}

fn n(n: i64) -> Map<String, Value> {
    json!({ "n": n }).as_object().unwrap().clone()
}

/// Settles the task with an outcome of its own, in one of the possible ways; returns whether that outcome counts.
async fn tell(service: &Service, held: &Claim, way: usize, outcome: i64) -> bool {
    let Ticket { run, step, .. } = &held.ticket;
    let outcome = n(outcome);
    match way % 3 {
        0 => match service.continue_step(run, step, &outcome).await {
            Ok(told) => matches!(told, ContinueResult::Now(_)),
            Err(Refusal::Canceled { .. }) => false,
            Err(refusal) => panic!("{refusal}"),
        },
        1 => match service.answer(run, step, &ReportedOutcome::Done(outcome)).await {
            Ok(answered) => answered == AnswerResult::Now,
            Err(Error::Refused(
                StateRefusal::Task(Refusal::Canceled { .. }) | StateRefusal::Unanswerable { .. },
            )) => false,
            Err(error) => panic!("{error}"),
        },
        // A holder that the step's continuation overtakes has lost the lease.
        _ => match service.complete(&held.ticket, &outcome).await {
            Ok(told) => matches!(told, SettleResult::Arrived(_)),
            Err(Refusal::LeaseLost { .. } | Refusal::Canceled { .. }) => false,
            Err(refusal) => panic!("{refusal}"),
        },
    }
}

// covers: RT-12.1-b, EVT-7-e, RT-6-b
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f6_of_many_concurrent_outcomes_for_one_step_one_counts_on_every_store() {
    const CALLS: usize = 24;
    for site in Site::all() {
        let services = [site.service().await, site.service().await];
        let run = start(&services[0], "Two", json!({"n": 1})).await;
        let held = claim(&services[0], 1).await.remove(0);
        let gate = Arc::new(Barrier::new(CALLS));
        let mut calls = JoinSet::new();
        for nth in 0..CALLS {
            let (service, held, gate) = (services[nth / 3 % 2].clone(), held.clone(), gate.clone());
            let outcome = 100 * i64::try_from(nth).unwrap();
            calls.spawn(async move {
                gate.wait().await;
                tell(&service, &held, nth, outcome).await.then_some(outcome)
            });
        }
        let heard: Vec<i64> = calls.join_all().await.into_iter().flatten().collect();
        let [heard] = heard[..] else { panic!("{:?}: {heard:?} were heard", site.kind) };
        finish(&services[1]).await;
        let end = json!({ "n": heard + 1 });
        assert_eq!(output(&services[0], &run).await, end, "{:?}", site.kind);

        // Whatever comes late changes nothing.
        for late in 0..3 {
            assert!(!tell(&services[late % 2], &held, late, -1).await, "{:?}", site.kind);
        }
        let canceled = services[0].cancel(&run).await.unwrap_err();
        assert!(
            matches!(canceled, Error::Refused(StateRefusal::Ended { status: RunStatus::Completed, .. })),
            "{canceled}"
        );
        assert_eq!(services[0].turn().await.unwrap(), 0);
        assert_eq!(output(&services[0], &run).await, end, "{:?}", site.kind);
        examine(&services[0]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f6_cancels_among_the_outcomes_of_a_step_end_the_run_on_every_store() {
    const CALLS: usize = 24;
    for site in Site::all() {
        let services = [site.service().await, site.service().await];
        let run = start(&services[0], "Two", json!({"n": 1})).await;
        let held = claim(&services[0], 1).await.remove(0);
        let gate = Arc::new(Barrier::new(CALLS));
        let mut calls = JoinSet::new();
        for nth in 0..CALLS {
            let (service, held, gate) = (services[nth / 4 % 2].clone(), held.clone(), gate.clone());
            calls.spawn(async move {
                gate.wait().await;
                if nth % 4 == 3 {
                    assert_eq!(service.cancel(&held.ticket.run).await.unwrap(), CancelResult::Run);
                    return false;
                }
                tell(&service, &held, nth % 4, 7).await
            });
        }
        let heard = calls.join_all().await.into_iter().filter(|heard| *heard).count();
        assert!(heard <= 1, "{:?}: {heard} were heard", site.kind);
        assert_eq!(services[1].run(&run).await.unwrap().status, RunStatus::Canceled, "{:?}", site.kind);
        let canonical = services[0].canonical(&run).await.unwrap();

        // Those that come late, and again.
        assert_eq!(services[0].cancel(&run).await.unwrap(), CancelResult::Run);
        for late in 0..3 {
            assert!(!tell(&services[late % 2], &held, late, -1).await, "{:?}", site.kind);
        }
        assert_eq!(claim(&services[1], 9).await, [], "{:?}", site.kind);
        assert_eq!(services[0].turn().await.unwrap(), 0);
        assert_eq!(services[1].canonical(&run).await.unwrap(), canonical, "{:?}", site.kind);
        examine(&services[0]).await;
    }
}

// covers: SDK-3.3-d, SDK-3.3-e, SDK-3.3-f, EVT-4-g
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f7_a_thousand_elements_that_finish_together_are_all_counted_on_every_store() {
    const ELEMENTS: i64 = 1_000;
    const AGENTS: usize = 4;
    for site in Site::all() {
        let services = [site.service().await, site.service().await];
        let run = start(&services[0], "Fan", json!({"items": (0..ELEMENTS).collect::<Vec<_>>()})).await;
        let mut agents = JoinSet::new();
        for nth in 0..AGENTS {
            let service = services[nth % 2].clone();
            agents.spawn(async move {
                let mut claimed = Vec::new();
                loop {
                    let claims = claim(&service, 50).await;
                    if claims.is_empty() {
                        return claimed;
                    }
                    claimed.extend(claims.iter().map(|claim| claim.ticket.step.clone()));
                    let together = claims.into_iter().map(|claim| {
                        let service = service.clone();
                        async move { service.complete(&claim.ticket, &result(&claim)).await.unwrap() }
                    });
                    together.collect::<JoinSet<_>>().join_all().await;
                    // Every agent evaluates, as those of the documents do; one commits, the others look again.
                    drop(service.turn().await);
                }
            });
        }
        let mut claimed = agents.join_all().await.concat();
        finish(&services[0]).await;
        assert_eq!(ended(&services[1], &run).await, RunStatus::Completed, "{:?}", site.kind);
        let all = (1..=ELEMENTS).collect::<Vec<_>>();
        assert_eq!(output(&services[1], &run).await, json!({ "all": all }), "{:?}", site.kind);
        let claims = claimed.len();
        claimed.sort();
        claimed.dedup();
        assert_eq!(claimed.len(), claims, "{:?}: a task had two holders", site.kind);
        examine(&services[0]).await;
    }
}

// covers: SDK-10.3-a, SDK-10.3-b, SDK-10.3-c
#[tokio::test]
async fn a_caller_owns_the_records_it_read_or_wrote_on_every_store() {
    for site in Site::all() {
        let service = site.service().await;
        let run = start(&service, "Two", json!({"n": 1})).await;
        let stored = service.run(&run).await.unwrap();
        let mut read = stored.clone();
        read.labels.insert("changed".to_owned(), "here only".to_owned());
        read.iterations_per_run.clear();
        assert_eq!(service.run(&run).await.unwrap(), stored, "{:?}", site.kind);
        let mut given = claim(&service, 1).await.remove(0);
        let mut told = result(&given);
        service.complete(&given.ticket, &told).await.unwrap();
        told.insert("n".to_owned(), json!(70));
        given.payload.clear();
        finish(&service).await;
        assert_eq!(output(&service, &run).await, json!({"n": 3}), "{:?}", site.kind);
    }
}

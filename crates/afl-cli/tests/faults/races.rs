//! F6, F7: many do the same at once, on every store.

use std::sync::Arc;

use afl_engine::run::RunStatus;
use afl_runtime::agent::{Continued, Settled};
use afl_runtime::{Origin, RunQuery};
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
        let new = started.iter().filter(|one| one.origin == Origin::New).count();
        assert_eq!(new, 1, "{:?}", site.kind);
        let list = services[1].runs(&RunQuery { limit: 9, ..RunQuery::default() }).await.unwrap();
        assert_eq!(list.runs.len(), 1, "{:?}", site.kind);
        finish(&services[0]).await;
        assert_eq!(output(&services[1], &started[0].run).await, json!({"n": 3}));
        examine(&services[0]).await;
    }
}

// covers: RT-12.1-b, EVT-7-e, RT-6-b
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f6_of_many_who_settle_one_task_at_once_one_is_heard_on_every_store() {
    const CALLS: usize = 24;
    for site in Site::all() {
        let services = [site.service().await, site.service().await];
        let run = start(&services[0], "Two", json!({"n": 1})).await;
        let held = claim(&services[0], 1).await.remove(0);
        let gate = Arc::new(Barrier::new(CALLS));
        let mut calls = JoinSet::new();
        for nth in 0..CALLS {
            let (service, held, gate, run) =
                (services[nth % 2].clone(), held.clone(), gate.clone(), run.clone());
            calls.spawn(async move {
                gate.wait().await;
                if nth % 3 == 0 {
                    let told = service.continue_step(&run, &held.ticket.step, &result(&held)).await;
                    return matches!(told.unwrap(), Continued::Now(_));
                }
                // Whoever is overtaken by the step's continuation has lost the lease.
                let told = service.complete(&held.ticket, &result(&held)).await;
                matches!(told, Ok(Settled::Arrived(_)))
            });
        }
        let heard = calls.join_all().await.into_iter().filter(|heard| *heard).count();
        assert_eq!(heard, 1, "{:?}", site.kind);
        finish(&services[1]).await;
        assert_eq!(output(&services[0], &run).await, json!({"n": 3}), "{:?}", site.kind);
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
async fn what_was_read_or_written_is_the_callers_own_on_every_store() {
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

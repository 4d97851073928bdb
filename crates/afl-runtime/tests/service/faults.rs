//! Invariants when the store fails or the process dies, at every write of a whole life of a run.

use crate::world::{World, answer, broken, inc};
use afl_engine::attribute::ValueRef;
use afl_engine::id::RunId;
use afl_engine::run::RunStatus;
use afl_engine::state::State;
use afl_engine::time::Millis;
use afl_engine::value::Map;
use afl_runtime::agent::{Claim, ClaimRequest, FacetFilter, Refusal, Ticket};
use afl_runtime::doctor::{Promise, Remedy, Repair};
use afl_runtime::{AnswerResult, Error, ReportedOutcome, Service, StartRequest, WhyReason, WorkScan};
use afl_store::fault::{BackendVerb, Fault, FaultMoment, at_write};
use serde_json::{Value, json};

/// Programs that end in different ways.
const LIVES: &[(&str, &str)] = &[
    ("Two", r#"{"n": 1}"#),
    ("Fan", r#"{"items": [1, 2, 3]}"#),
    ("Risky", r#"{"n": 1}"#),
    ("Pure", r#"{"n": 1}"#),
];

/// How often a caller tries a verb again whose outcome it does not know.
const TRIES: usize = 5;

async fn request(world: &World, workflow: &str, inputs: &str) -> StartRequest {
    let inputs: Value = serde_json::from_str(inputs).unwrap();
    let mut request = world.request(workflow, inputs).await;
    request.idempotency_key = Some("the-key".to_owned());
    request
}

/// The whole life of a run whose callers repeat what they do not know the outcome of.
async fn live(world: &World, request: &StartRequest) -> RunId {
    let started = match again(|| world.service.start(request.clone())).await {
        Ok(started) => started,
        Err(error) => panic!("cannot start: {error}"),
    };
    for _ in 0..50 {
        let claim = ClaimRequest { max: 10, ..ClaimRequest::new(FacetFilter::All, "agent") };
        let claims = again(|| world.service.claim(&claim)).await.unwrap();
        for claim in &claims {
            for _ in 0..TRIES {
                let settled = if claim.task.name.ends_with("Bad") {
                    world.service.fail(&claim.ticket, &broken()).await
                } else {
                    world.service.complete(&claim.ticket, &inc(claim)).await
                };
                match settled {
                    Ok(_) => break,
                    Err(Refusal::Store(error)) if error.is_uncertain() => {}
                    Err(refusal) => panic!("refused: {refusal}"),
                }
            }
        }
        again(|| world.service.turn()).await.unwrap();
        let run = again(|| world.service.run(&started.run)).await.unwrap();
        if run.status.is_terminal() {
            break;
        }
        // A claim whose answer was lost comes back when its lease ends.
        world.clock.advance(Millis(20_000));
    }
    started.run
}

async fn again<T, F: Future<Output = Result<T, Error>>>(call: impl Fn() -> F) -> Result<T, Error> {
    for _ in 0..TRIES {
        match call().await {
            Err(error) if error.is_uncertain() => {}
            outcome => return outcome,
        }
    }
    call().await
}

async fn undisturbed(workflow: &str, inputs: &str) -> (String, u64) {
    let world = World::new();
    let request = request(&world, workflow, inputs).await;
    let published = world.faulty.counts().writes();
    let run = live(&world, &request).await;
    world.examine().await;
    (world.service.canonical(&run).await.unwrap(), world.faulty.counts().writes() - published)
}

// covers: RT-1-e, RT-14-b, RT-15-d, XR-10
#[tokio::test]
async fn f8_g6_a_write_that_fails_or_only_seems_to_changes_nothing_in_the_end() {
    for (workflow, inputs) in LIVES {
        let (expected, writes) = undisturbed(workflow, inputs).await;
        for write in 1..=writes {
            for fault in
                [Fault::ErrorBefore, Fault::ErrorAfter, Fault::Conflict, Fault::Disconnect { calls: 3 }]
            {
                let world = World::new();
                let request = request(&world, workflow, inputs).await;
                world.faulty.plan(at_write(world.faulty.counts().writes() + write, fault));
                let run = live(&world, &request).await;
                world.faulty.plan(|_| Fault::None);
                assert_eq!(
                    world.service.canonical(&run).await.unwrap(),
                    expected,
                    "{workflow}: {fault:?} at write {write}"
                );
                world.examine().await;
            }
        }
    }
}

// covers: RT-1-d, RT-10.2-b, EVT-8-a, EVT-8-c
#[tokio::test]
async fn f1_g1_a_process_that_dies_at_any_write_is_followed_by_one_that_finishes() {
    for (workflow, inputs) in LIVES {
        let (expected, writes) = undisturbed(workflow, inputs).await;
        for write in 1..=writes {
            for moment in [FaultMoment::Before, FaultMoment::After] {
                let world = World::new();
                let request = request(&world, workflow, inputs).await;
                world.faulty.plan(at_write(world.faulty.counts().writes() + write, Fault::Gone(moment)));
                die(&world, &request).await;
                let next = world.restarted();
                next.examine().await;
                next.clock.advance(Millis(61_000));
                let run = live(&next, &request).await;
                assert_eq!(
                    next.service.canonical(&run).await.unwrap(),
                    expected,
                    "{workflow}: died at write {write}"
                );
                next.examine().await;
            }
        }
    }
}

/// Lives until the store is gone.
async fn die(world: &World, request: &StartRequest) {
    let Ok(started) = world.service.start(request.clone()).await else { return };
    for _ in 0..50 {
        let claim = ClaimRequest { max: 10, ..ClaimRequest::new(FacetFilter::All, "agent") };
        let Ok(claims) = world.service.claim(&claim).await else { return };
        for claim in &claims {
            let settled = if claim.task.name.ends_with("Bad") {
                world.service.fail(&claim.ticket, &broken()).await
            } else {
                world.service.complete(&claim.ticket, &inc(claim)).await
            };
            if settled.is_err() {
                return;
            }
        }
        let Ok(_) = world.service.turn().await else { return };
        match world.service.run(&started.run).await {
            Ok(run) if !run.status.is_terminal() => {}
            Ok(_) | Err(_) => return,
        }
    }
}

// covers: SDK-10.1-a
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn f7_t3_siblings_that_finish_at_once_lose_no_update_and_make_no_step_twice() {
    let world = World::new();
    let run = world.start("Fan", json!({"items": (0..64).collect::<Vec<i64>>()})).await;
    let claims = world.claim(100).await;
    assert_eq!(claims.len(), 64);
    let mut all = tokio::task::JoinSet::new();
    for claim in claims {
        let service = world.service.clone();
        all.spawn(async move {
            answer(&service, &claim).await;
            // Every one of them evaluates, as the documents' agents do.
            drop(service.turn().await);
        });
    }
    all.join_all().await;
    world.finish().await;
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    assert_eq!(world.outputs(&run).await, json!({"sum": (1..=64).collect::<Vec<i64>>()}));
    // The workflow, its block, and of each element a block, a step and a yield: none twice, none lost.
    assert_eq!(world.run(&run).await.counts.steps, 2 + 64 * 3);
    world.examine().await;
}

/// A report about a step from outside, during its evaluation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Completed,
    Failed,
    Continued,
    FailedStep,
    Answered,
    /// A part of the result, and then the rest of it.
    Updated,
}

const TOLD: [Told; 6] =
    [Told::Completed, Told::Failed, Told::Continued, Told::FailedStep, Told::Answered, Told::Updated];

/// By the element that it is of.
fn told_of(claim: &Claim) -> Told {
    TOLD[usize::try_from(claim.payload["n"].as_u64().unwrap()).unwrap() % TOLD.len()]
}

async fn tell(service: &Service, claim: &Claim) {
    let (Ticket { run, step, .. }, result) = (&claim.ticket, inc(claim));
    match told_of(claim) {
        Told::Completed => drop(service.complete(&claim.ticket, &result).await.unwrap()),
        Told::Failed => drop(service.fail(&claim.ticket, &broken()).await.unwrap()),
        Told::Continued => drop(service.continue_step(run, step, &result).await.unwrap()),
        Told::FailedStep => drop(service.fail_step(run, step, &broken()).await.unwrap()),
        Told::Answered => {
            let answered = service.answer(run, step, &ReportedOutcome::Done(result)).await.unwrap();
            assert_eq!(answered, AnswerResult::Now);
        }
        Told::Updated => {
            service.update(&claim.ticket, &result).await.unwrap();
            drop(service.complete(&claim.ticket, &Map::new()).await.unwrap());
        }
    }
}

// covers: XR-11
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn xr11_f7_no_outcome_that_arrives_while_others_evaluate_is_lost() {
    let world = World::new();
    let run = world.start("Fan", json!({"items": (0..60).collect::<Vec<i64>>()})).await;
    let mut all = tokio::task::JoinSet::new();
    for claim in world.claim(100).await {
        let service = world.service.clone();
        all.spawn(async move {
            tell(&service, &claim).await;
            drop(service.turn().await);
            claim
        });
    }
    let claims = all.join_all().await;
    assert_eq!(claims.len(), 60);
    world.finish().await;
    let store = world.store();
    for claim in claims {
        let (n, told) = (&claim.payload["n"], told_of(&claim));
        let step = store.step(&run, &claim.ticket.step).await.unwrap().unwrap().item;
        match told {
            Told::Failed | Told::FailedStep => assert_eq!(step.state, State::Error, "{n}: {told:?}"),
            Told::Completed | Told::Continued | Told::Answered | Told::Updated => {
                assert_eq!(step.state, State::Complete, "{n}: {told:?}");
                assert_eq!(
                    step.attributes.returns["n"].held,
                    ValueRef::Inline(inc(&claim)["n"].clone()),
                    "{n}: {told:?}"
                );
            }
        }
    }
    assert_eq!(world.status(&run).await, RunStatus::Failed);
}

#[tokio::test]
async fn g13_a_damaged_run_is_named_and_stops_no_other() {
    let world = World::new();
    let mut keyed = world.request("Two", json!({"n": 1})).await;
    keyed.idempotency_key = Some("once".to_owned());
    let hurt = world.service.start(keyed.clone()).await.unwrap().run;
    let well = world.start("Two", json!({"n": 1})).await;
    let step = world.step(&hurt, "Two.a").await;
    world.damage(&hurt.0, &format!("s/{step}")).await;

    for _ in 0..4 {
        for claim in world.claim(10).await {
            answer(&world.service, &claim).await;
        }
        world.service.turn().await.unwrap();
    }
    assert_eq!(world.status(&well).await, RunStatus::Completed);
    assert_eq!(world.status(&hurt).await, RunStatus::Paused);
    let report = world.service.doctor(Remedy::Tell).await.unwrap();
    let [finding] = &report.findings[..] else { panic!("one finding, not {:?}", report.findings) };
    let path = format!("Two.a (record s/{step})");
    assert_eq!((finding.run.clone(), finding.path.as_str()), (hurt.clone(), path.as_str()));
    let error = world.service.why(&hurt).await.unwrap_err();
    assert!(error.to_string().contains(&*hurt.0), "{error}");
    world.service.discard(&well).await.unwrap_err();
    world.service.discard(&hurt).await.unwrap();
    world.examine().await;
    let started = world.service.start(keyed).await.unwrap();
    assert!(started.is_new, "the key of a discarded run is free");
}

#[tokio::test]
async fn g13_a_step_whose_block_is_lost_stops_its_run_and_no_other() {
    let world = World::new();
    let hurt = world.start("Two", json!({"n": 1})).await;
    let well = world.start("Two", json!({"n": 1})).await;
    world.lose(&hurt.0, "s/wb0").await;
    for _ in 0..4 {
        for claim in world.claim(10).await {
            answer(&world.service, &claim).await;
        }
        world.service.turn().await.unwrap();
    }
    assert_eq!(world.status(&well).await, RunStatus::Completed);
    let found = world.service.find_work(&afl_runtime::WorkScan::Everywhere).await.unwrap().work;
    let found = found.into_iter().find(|found| found.work.run == hurt).expect("its result waits");
    let error = world.service.drive_once(&found.work).await.unwrap_err().to_string();
    assert!(error.contains("`s/wb0` is missing"), "{error}");
}

#[tokio::test]
async fn g13_a_run_without_its_list_of_active_steps_is_reported_and_not_driven() {
    let world = World::new();
    let items: Vec<i64> = (0..5_000).collect();
    let request = world.request("Fan", json!({ "items": items })).await;
    let mut commits = 0;
    world.faulty.plan(move |call| {
        commits += u64::from(call.verb == BackendVerb::Commit);
        if commits == 2 { Fault::Gone(FaultMoment::Before) } else { Fault::None }
    });
    let hurt = world.service.start(request).await.unwrap().run;
    let world = world.restarted();
    assert!(world.run(&hurt).await.active > 0, "it is in the midst of its evaluation");
    world.examine().await;
    world.lose(&hurt.0, "active").await;
    let before = world.run(&hurt).await;
    let well = world.start("Two", json!({"n": 1})).await;
    for _ in 0..4 {
        for claim in world.claim(10_000).await.iter().filter(|claim| claim.ticket.run == well) {
            answer(&world.service, claim).await;
        }
        world.service.turn().await.unwrap();
    }
    assert_eq!(world.status(&well).await, RunStatus::Completed);
    assert_eq!(world.run(&hurt).await, before);
    let report = world.service.doctor(Remedy::Tell).await.unwrap();
    let [finding] = &report.findings[..] else { panic!("one finding, not {:?}", report.findings) };
    assert_eq!((&finding.run, finding.path.as_str()), (&hurt, "active"));
}

// A power cut takes back commits that are not durable, the latest first.
#[tokio::test]
async fn g2_acknowledged_work_survives_a_power_cut() {
    for (workflow, inputs) in LIVES {
        let (expected, _) = undisturbed(workflow, inputs).await;
        for rounds in 0..4 {
            for lost in 1..5 {
                let world = World::with_power_cuts();
                let request = request(&world, workflow, inputs).await;
                let started = world.service.start(request.clone()).await.unwrap();
                let mut accepted = Vec::new();
                for _ in 0..rounds {
                    for claim in world.claim(2).await {
                        answer(&world.service, &claim).await;
                        accepted.push(claim.ticket.step);
                    }
                    world.service.turn().await.unwrap();
                }
                world.memory.power_cut(lost);
                let next = world.restarted();
                next.examine().await;
                for step in accepted {
                    let event = next.store().event(&started.run, &step).await.unwrap().unwrap();
                    assert!(event.item.state.is_terminal(), "{workflow}: the outcome of {step} was lost");
                }
                next.clock.advance(Millis(61_000));
                assert_eq!(live(&next, &request).await, started.run);
                assert_eq!(next.service.canonical(&started.run).await.unwrap(), expected);
                next.examine().await;
            }
        }
    }
}

#[tokio::test]
async fn g9_a_task_or_run_missing_from_its_index_is_reported_and_repaired() {
    for record in ["t/wb0s0", "run"] {
        let world = World::new();
        let run = world.start("One", json!({"n": 1})).await;
        world.rewrite(&run.0, record, |content| content.place = None).await;

        if record != "run" {
            assert!(world.claim(1).await.is_empty());
        }
        let report = world.service.doctor(Remedy::Fix).await.unwrap();
        let found: Vec<_> = report.findings.iter().map(|finding| (finding.promise, finding.repair)).collect();
        assert_eq!(found, [(Promise::NoSilentStall, Repair::Done)], "{record}");
        world.finish().await;
        assert_eq!(world.status(&run).await, RunStatus::Completed, "{record}");
    }
}

#[tokio::test]
async fn g13_a_lost_step_stops_its_run_and_is_reported() {
    let world = World::new();
    let run = world.start("Two", json!({"n": 1})).await;
    let claims = world.claim(1).await;
    answer(&world.service, &claims[0]).await;
    world.lose(&run.0, "s/wb0s0").await;
    let found = world.service.find_work(&WorkScan::Everywhere).await.unwrap();
    let error = world.service.drive_once(&found.work[0].work).await.unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("s/wb0s0"), "{error}");
    let report = world.service.doctor(Remedy::Tell).await.unwrap();
    let strays = report.findings.iter().filter(|finding| finding.problem.contains("the step is missing"));
    assert_eq!(strays.map(|finding| finding.path.as_str()).collect::<Vec<_>>(), ["Two.a", "Two.a"]);
    world.service.discard(&run).await.unwrap();
    world.examine().await;
}

#[tokio::test]
async fn g13_inconsistent_records_stop_their_run_alone() {
    let world = World::new();
    let [hurt, well] = [world.start("Two", json!({"n": 1})).await, world.start("Two", json!({"n": 1})).await];
    world
        .falsify(&hurt.0, "s/wb0", |block| {
            assert_eq!(block["children"]["open"], 1);
            block["children"]["open"] = json!(0);
        })
        .await;
    for _ in 0..4 {
        for claim in world.claim(10).await {
            answer(&world.service, &claim).await;
        }
        world.service.turn().await.unwrap();
    }
    assert_eq!(world.status(&well).await, RunStatus::Completed);
    assert_eq!(world.status(&hurt).await, RunStatus::Paused);
    let report = world.service.doctor(Remedy::Tell).await.unwrap();
    let [finding] = &report.findings[..] else { panic!("one finding, not {:?}", report.findings) };
    assert_eq!((finding.promise, &finding.run, finding.path.as_str()), (Promise::AtomicStep, &hurt, "Two"));
}

#[tokio::test]
async fn g2_parts_without_their_run_are_reported_and_discarded() {
    let world = World::new();
    let run = world.start("One", json!({"n": 1})).await;
    world.lose(&run.0, "run").await;
    let report = world.service.doctor(Remedy::Tell).await.unwrap();
    let found: Vec<_> = report.findings.iter().map(|finding| (finding.promise, finding.repair)).collect();
    assert_eq!(found, [(Promise::Acknowledged, Repair::ByHand)]);
    assert!(world.service.has_records(&run).await.unwrap());
    world.service.discard(&run).await.unwrap();
    assert!(!world.service.has_records(&run).await.unwrap());
    world.examine().await;
}

#[tokio::test]
async fn g9_a_run_that_waits_for_a_lost_record_is_called_stalled() {
    let world = World::new();
    let run = world.start("One", json!({"n": 1})).await;
    assert_eq!(world.service.why(&run).await.unwrap().reason, WhyReason::Waiting);
    world.lose(&run.0, "e/wb0s0").await;
    assert_eq!(world.service.why(&run).await.unwrap().reason, WhyReason::Stalled);
}

#[tokio::test]
async fn f7_more_results_at_once_than_a_commit_can_hold_are_taken_in_parts() {
    let world = World::new();
    let run = world.start("Fan", json!({"items": (0..2_500).collect::<Vec<i64>>()})).await;
    for _ in 0..3 {
        for claim in world.claim(1_000).await {
            answer(&world.service, &claim).await;
        }
    }
    world.service.turn().await.unwrap();
    assert_eq!(world.status(&run).await, RunStatus::Completed);
    world.examine().await;
}

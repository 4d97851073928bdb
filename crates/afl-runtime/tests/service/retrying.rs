//! The steps that a retry opens again, and those that it leaves alone.

use afl_engine::id::RunId;
use afl_engine::run::RunStatus;
use afl_engine::task::DESIRED_FOR;
use afl_runtime::agent::{Claim, ClaimRequest, FacetFilter};
use afl_runtime::server::Server;
use afl_runtime::{Again, Durability, LeftTo, On, StartRequest, compile};
use serde_json::{Value, json};

use crate::world::World;

const PROGRAM: &str = r#"
namespace t {
    event facet Inc(n: Long) => (n: Long)
    event facet Bad(n: Long) => (n: Long)
    event facet SideBad(n: Long) => (k: Long)
    event facet Prepared(n: Long) => (m: Long) script python "result['k'] = 1"
    event facet Primed(n: Long) => (m: Long, k: Long) script python "result['k'] = 1"
    event facet Part(n: Long) => (m: Long, k: Long) andThen { i = Inc(n = 1) yield Part(k = i.n) }

    facet Saved(n: Long) => (n: Long)
        andThen {
            inner = Bad(n = $.n)
            yield Saved(n = inner.n)
        }
        catch {
            instead = Inc(n = 1)
            yield Saved(n = instead.n)
        }

    workflow AfterACatch(n: Long) => (n: Long)
        andThen {
            a = Saved(n = $.n)
            b = Bad(n = a.n)
            yield AfterACatch(n = b.n)
        }

    workflow Many(items: [Long]) => (sum: [Long])
        andThen foreach item in $.items {
            a = Bad(n = $.item)
            yield Many(sum = a.n)
        }

    workflow Mixed(n: Long) => (k: Long)
        andThen {
            a = Bad(n = $.n) with SideBad(n = $.n) as side
            yield Mixed(k = a.side.k)
        }

    workflow Lacking(n: Long) => (m: Long, k: Long)
        andThen {
            a = Part(n = $.n)
            yield Lacking(m = a.m, k = a.k)
        }

    workflow Prime(n: Long) => (m: Long, k: Long)
        andThen {
            a = Primed(n = $.n) with Saved(n = 1) as saved
            yield Prime(m = a.m, k = a.k)
        }

    workflow Scripted(n: Long) => (m: Long)
        andThen {
            a = Prepared(n = $.n)
            yield Scripted(m = a.m)
        }
}
"#;

async fn start(world: &World, workflow: &str, inputs: Value) -> RunId {
    let hash = world.service.publish(&compile("t.afl", PROGRAM).unwrap()).await.unwrap();
    let inputs = inputs.as_object().unwrap().clone();
    let request = StartRequest { workflow: Some(workflow.to_owned()), inputs, ..StartRequest::new(hash) };
    world.service.start(request).await.unwrap().run
}

async fn complete(world: &World, claims: &[Claim], result: Value) {
    for claim in claims {
        world.service.complete(&claim.ticket, result.as_object().unwrap()).await.unwrap();
    }
    world.service.turn().await.unwrap();
    world.examine().await;
}

#[tokio::test]
async fn a_failure_that_a_catch_handled_is_not_tried_again() {
    let world = World::new();
    let run = start(&world, "AfterACatch", json!({ "n": 1 })).await;
    world.finish().await;
    let failed = world.step(&run, "b").await;
    assert_eq!(world.service.retry(&run, &Again::Run).await.unwrap(), [failed]);
    complete(&world, &world.claim(10).await, json!({ "n": 5 })).await;
    assert_eq!(world.outputs(&run).await, json!({ "n": 5 }));
}

#[tokio::test]
async fn nothing_is_tried_again_while_a_catch_deals_with_it() {
    let world = World::new();
    let run = start(&world, "AfterACatch", json!({ "n": 1 })).await;
    for claim in world.claim(10).await {
        world.service.fail(&claim.ticket, &crate::world::broken()).await.unwrap();
    }
    world.service.turn().await.unwrap();
    let inner = world.step(&run, "a.inner").await;
    for again in [Again::Run, Again::Step(inner)] {
        let error = world.service.retry(&run, &again).await.unwrap_err().to_string();
        assert!(error.contains("nothing to retry"), "{error}");
    }
    world.examine().await;
}

#[tokio::test]
async fn more_failures_than_a_parent_keeps_are_tried_again_some_by_some() {
    let world = World::new();
    let run = start(&world, "Many", json!({ "items": (0..20).collect::<Vec<_>>() })).await;
    world.finish().await;
    for element in 0..8 {
        let step = world.step(&run, &format!("Many[{element}].a")).await;
        world.service.retry(&run, &Again::Step(step)).await.unwrap();
        complete(&world, &world.claim(10).await, json!({ "n": 5 })).await;
    }
    assert_eq!(world.status(&run).await, RunStatus::Failed);
    assert_eq!(world.service.retry(&run, &Again::Run).await.unwrap().len(), 12);
    complete(&world, &world.claim(100).await, json!({ "n": 5 })).await;
    assert_eq!(world.outputs(&run).await, json!({ "sum": vec![5; 20] }));
}

#[tokio::test]
async fn a_mixin_that_failed_beside_its_step_is_tried_again_with_it() {
    let world = World::new();
    let run = start(&world, "Mixed", json!({ "n": 1 })).await;
    world.finish().await;
    let mixin = world.step(&run, "Mixed.a with SideBad").await;
    world.service.retry(&run, &Again::Step(mixin)).await.unwrap();
    let claims = world.claim(10).await;
    assert_eq!(claims.len(), 2, "neither is worth anything without the other");
    complete(&world, &claims, json!({ "n": 5, "k": 6 })).await;
    assert_eq!(world.outputs(&run).await, json!({ "k": 6 }));
}

#[tokio::test]
async fn a_script_that_is_tried_again_is_followed_by_the_event() {
    let world = World::new();
    let run = start(&world, "Scripted", json!({ "n": 1 })).await;
    for claim in world.claim(10).await {
        world.service.fail(&claim.ticket, &crate::world::broken()).await.unwrap();
    }
    world.service.turn().await.unwrap();
    assert_eq!(world.status(&run).await, RunStatus::Failed);
    world.service.retry(&run, &Again::Run).await.unwrap();
    complete(&world, &world.claim(10).await, json!({ "k": 1 })).await;
    let claims = world.claim(10).await;
    assert_eq!(claims.iter().map(|claim| &*claim.task.name).collect::<Vec<_>>(), ["t.Prepared"]);
    assert_eq!(claims[0].payload["k"], 1);
    complete(&world, &claims, json!({ "m": 2 })).await;
    assert_eq!(world.outputs(&run).await, json!({ "m": 2 }));
}

#[tokio::test]
async fn a_result_that_lacks_something_is_asked_for_again_and_the_blocks_behind_it_are_kept() {
    let world = World::new();
    let run = start(&world, "Lacking", json!({ "n": 1 })).await;
    complete(&world, &world.claim(10).await, json!({})).await;
    complete(&world, &world.claim(10).await, json!({ "n": 7 })).await;
    assert_eq!(world.status(&run).await, RunStatus::Failed);
    let failed = world.step(&run, "a").await;
    assert_eq!(world.service.retry(&run, &Again::Run).await.unwrap(), [failed]);
    let claims = world.claim(10).await;
    assert_eq!(claims.iter().map(|claim| &*claim.task.name).collect::<Vec<_>>(), ["t.Part"]);
    complete(&world, &claims, json!({ "m": 5 })).await;
    assert_eq!(world.outputs(&run).await, json!({ "m": 5, "k": 7 }));
}

#[tokio::test]
async fn the_returns_of_a_script_are_kept_when_its_event_is_sent_again() {
    let world = World::new();
    let run = start(&world, "Prime", json!({ "n": 1 })).await;
    complete(&world, &world.claim(10).await, json!({ "k": 3 })).await;
    // The mixin between the two fails, and its `catch` too.
    for _ in 0..2 {
        for claim in world.claim(10).await {
            world.service.fail(&claim.ticket, &crate::world::broken()).await.unwrap();
        }
        world.service.turn().await.unwrap();
    }
    assert_eq!(world.status(&run).await, RunStatus::Failed);
    world.service.retry(&run, &Again::Run).await.unwrap();
    complete(&world, &world.claim(10).await, json!({ "n": 1 })).await;
    let claims = world.claim(10).await;
    assert_eq!(claims.iter().map(|claim| &*claim.task.name).collect::<Vec<_>>(), ["t.Primed"]);
    world.service.fail(&claims[0].ticket, &crate::world::broken()).await.unwrap();
    world.service.turn().await.unwrap();
    world.service.retry(&run, &Again::Run).await.unwrap();
    complete(&world, &world.claim(10).await, json!({ "m": 2 })).await;
    assert_eq!(world.outputs(&run).await, json!({ "m": 2, "k": 3 }));
}

#[tokio::test]
async fn work_is_tried_again_on_an_online_server_and_no_other_takes_it_first() {
    let world = World::new();
    let run = world.start("Risky", json!({ "n": 1 })).await;
    world.finish().await;
    let step = world.step(&run, "b").await;
    let on_host = Again::StepOn(step.clone(), "host-1".into());
    let refused = world.service.retry(&run, &on_host).await.unwrap_err();
    assert_eq!(refused.to_string(), "no agent called `host-1` is online");
    let fields = json!({
        "uuid": "u", "server_group": "g", "service_name": "afl-agent", "server_name": "host-1",
        "ping_time": world.clock.now(), "state": "running",
    });
    let server: Server = serde_json::from_value(fields).unwrap();
    world.collection().put("u", &server, None, Durability::Durable).await.unwrap();
    assert_eq!(world.service.retry(&run, &on_host).await.unwrap(), [step]);

    let why = world.service.why(&run).await.unwrap();
    let On::Agent { left_to, .. } = &why.waits[0].on else { panic!("{why:?}") };
    let until = world.clock.now().plus(DESIRED_FOR);
    assert_eq!(*left_to, Some(LeftTo { server: "host-1".to_owned(), until }));
    assert_eq!(world.claim(10).await, []);
    world.examine().await;
    let request =
        ClaimRequest { server: Some("host-1".to_owned()), ..ClaimRequest::new(FacetFilter::All, "a") };
    let claims = world.service.claim(&request).await.unwrap();
    assert_eq!(claims.len(), 1);
    complete(&world, &claims, json!({ "n": 5 })).await;
    world.finish().await;
    assert_eq!(world.outputs(&run).await, json!({ "n": 6 }));
}

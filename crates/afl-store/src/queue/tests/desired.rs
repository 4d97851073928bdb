//! A task that wants a server is left to it for a while.

use afl_engine::task::DESIRED_FOR;

use super::*;

fn from(server: &str) -> ClaimRequest {
    ClaimRequest { server: Some(server.to_owned()), ..ClaimRequest::new(FacetFilter::All, server) }
}

/// A task that wants `wanted`, behind an ordinary one.
async fn wanting(world: &World, wanted: &str, policy: Policy) -> StepId {
    let step = world.ask(1, "a.F", policy).await;
    let task = world.store().task(&world.run, &step).await.unwrap().unwrap();
    let wish = rewritten(&task.item, json!({ "desired_server": wanted }));
    let wish = StoredRecord { item: wish, version: task.version };
    let write = world.store().update(&world.run, &wish, world.clock.now());
    world.store().write(vec![write], Durability::Durable).await.unwrap();
    step
}

async fn takes(world: &World, server: &str) -> bool {
    !world.queue.claim(&from(server)).await.unwrap().is_empty()
}

#[tokio::test]
async fn a_task_that_wants_a_server_is_left_to_it_and_then_any_agent_takes_it() {
    for wanted in ["host-1", "a/b+c@d", "ü"] {
        let world = World::new().await;
        wanting(&world, wanted, Policy::default()).await;
        assert!(!takes(&world, "other").await);
        assert!(world.claim(&[], 1).await.is_empty(), "who has no server is another too");
        assert!(takes(&world, wanted).await);

        let world = World::new().await;
        wanting(&world, wanted, Policy::default()).await;
        world.clock.advance(Millis(DESIRED_FOR.0 - 1));
        assert!(!takes(&world, "other").await);
        world.clock.advance(Millis(1));
        assert!(takes(&world, "other").await);
    }
}

#[tokio::test]
async fn a_task_that_is_left_to_another_keeps_no_ordinary_one_waiting() {
    let world = World::new().await;
    wanting(&world, "host-1", Policy { priority: Some(99), ..Policy::default() }).await;
    world.ask(2, "a.F", Policy::default()).await;
    assert_eq!(names(&world.queue.claim(&from("other")).await.unwrap()), ["W.s2"]);
}

#[tokio::test]
async fn a_claim_forgets_the_wish_so_that_a_lost_task_waits_for_no_server() {
    let world = World::new().await;
    let step = wanting(&world, "host-1", Policy::default()).await;
    assert!(takes(&world, "host-1").await);
    world.clock.advance(LEASE.plus(Millis(1)));
    world.queue.sweep_once().await.unwrap();
    assert_eq!(world.task(&step).await.state, TaskState::Pending);
    assert!(takes(&world, "other").await);
}

#[tokio::test]
async fn a_limit_counts_tasks_that_want_a_server_too() {
    let world = World::new().await;
    let limited = Policy { limit: Some(1), ..Policy::default() };
    wanting(&world, "host-1", limited.clone()).await;
    world.ask(2, "a.F", limited).await;
    assert!(takes(&world, "other").await);
    assert!(!takes(&world, "host-1").await);
}

/// A claim by key asks the same of the claimer as any other.
#[tokio::test]
async fn the_task_of_one_step_goes_to_the_agent_that_may_have_it() {
    let world = World::new().await;
    let needs = Policy { needs: vec!["gpu".to_owned()], ..Policy::default() };
    let step = wanting(&world, "host-1", needs).await;
    let gpu = vec!["gpu".to_owned()];
    let claim = async |request: &ClaimRequest| world.claim_named(&step, request).await;
    assert_eq!(claim(&from("host-1")).await, None, "it has no gpu");
    assert_eq!(claim(&ClaimRequest { capabilities: gpu.clone(), ..from("other") }).await, None);
    let names = FacetFilter::Only(vec!["a.G".to_owned()]);
    assert_eq!(claim(&ClaimRequest { names, capabilities: gpu.clone(), ..from("host-1") }).await, None);
    assert!(claim(&ClaimRequest { capabilities: gpu, ..from("host-1") }).await.is_some());
}

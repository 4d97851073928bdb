//! The shares of runs when there is more work than can be done at once.

use afl_engine::id::RunId;
use afl_engine::time::Millis;
use serde_json::json;

use crate::world::{World, inc};

const SECOND: Millis = Millis(1_000);

/// Claims one task after the other, and says which runs they are of.
async fn runs_in_turn(world: &World, claims: usize) -> Vec<RunId> {
    let mut runs = Vec::new();
    for _ in 0..claims {
        runs.extend(world.claim(1).await.into_iter().map(|claim| claim.ticket.run));
    }
    runs
}

#[tokio::test]
async fn a_run_of_many_tasks_keeps_no_later_run_waiting() {
    let world = World::new();
    let large = world.start("Fan", json!({"items": (0..1_000).collect::<Vec<_>>()})).await;
    world.clock.advance(Millis(4 * SECOND.0));
    let small = world.start("Two", json!({"n": 1})).await;
    let runs = runs_in_turn(&world, 7).await;
    let place = runs.iter().position(|run| *run == small).expect("its turn comes");
    // Work for four seconds of the large run, one task a second, goes before.
    assert_eq!(place, 5, "{runs:?}");
    assert!(runs[..5].iter().chain(&runs[6..]).all(|run| *run == large));
}

#[tokio::test]
async fn two_large_runs_get_the_same_share() {
    let world = World::new();
    let items = json!({"items": (0..100).collect::<Vec<_>>()});
    let first = world.start("Fan", items.clone()).await;
    world.clock.advance(Millis(1));
    world.start("Fan", items).await;
    let runs = runs_in_turn(&world, 40).await;
    assert_eq!(runs.iter().filter(|run| **run == first).count(), 20);
}

#[tokio::test]
async fn the_last_task_of_a_large_run_comes_though_later_runs_go_on_coming() {
    let world = World::new();
    let large = world.start("Fan", json!({"items": (0..20).collect::<Vec<_>>()})).await;
    let mut left = 20;
    for second in 0.. {
        assert!(second < 60, "{left} tasks are passed over and over");
        world.clock.advance(SECOND);
        world.start("One", json!({"n": second})).await;
        left -= runs_in_turn(&world, 1).await.iter().filter(|run| **run == large).count();
        if left == 0 {
            break;
        }
    }
}

// covers: EVT-0-a
#[tokio::test]
async fn tasks_of_one_run_come_in_the_order_of_their_creation() {
    let world = World::new();
    world.start("Pairs", json!({"items": [10, 20, 30]})).await;
    let mut seen = Vec::new();
    while let Some(claim) = world.claim(1).await.pop() {
        seen.push(claim.payload["n"].as_i64().unwrap());
        world.clock.advance(Millis(1));
        world.service.complete(&claim.ticket, &inc(&claim)).await.unwrap();
        world.service.turn().await.unwrap();
    }
    // The second task of an element is created while the others wait for their first.
    assert_eq!(seen, [10, 20, 30, 11, 21, 31]);
}

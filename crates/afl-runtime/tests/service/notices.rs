//! What the janitor tells people of.

use afl_engine::time::Millis;
use afl_runtime::notification::{KEPT_FOR, NotificationType, STUCK_AFTER};
use afl_runtime::server::{OFFLINE_AFTER, Server, ServerState};
use afl_runtime::{Durability, Mark};
use serde_json::json;

use crate::world::{World, broken};

async fn told(world: &World) -> Vec<(NotificationType, bool)> {
    let notices = world.service.notifications(100).await.unwrap();
    notices.iter().map(|notice| (notice.notification.notification_type, notice.notification.read)).collect()
}

#[tokio::test]
async fn a_task_that_nobody_takes_is_told_of_once() {
    let world = World::new();
    world.start("One", json!({"n": 1})).await;
    world.clock.advance(Millis(STUCK_AFTER.0 - 1));
    world.service.watch_over(world.clock.now()).await.unwrap();
    assert_eq!(told(&world).await, []);
    world.clock.advance(Millis(1));
    for _ in 0..2 {
        world.service.watch_over(world.clock.now()).await.unwrap();
        assert_eq!(told(&world).await, [(NotificationType::QueueStuck, false)]);
    }
}

#[tokio::test]
async fn an_agent_that_goes_offline_is_told_of_once_for_each_time() {
    let world = World::new();
    let servers = world.service.collection::<Server>();
    let fields = |name: &str, state: ServerState| {
        json!({
            "uuid": name, "server_group": "default", "service_name": "afl-agent", "server_name": "host",
            "ping_time": world.clock.now(), "state": state,
        })
    };
    for (name, state) in [("gone", ServerState::Running), ("ended", ServerState::Shutdown)] {
        let server: Server = serde_json::from_value(fields(name, state)).unwrap();
        servers.put(name, &server, None, Durability::Durable).await.unwrap();
    }
    world.clock.advance(OFFLINE_AFTER);
    for _ in 0..2 {
        world.service.watch_over(world.clock.now()).await.unwrap();
        assert_eq!(told(&world).await, [(NotificationType::AgentOffline, false)]);
    }
    let back: Server = serde_json::from_value(fields("gone", ServerState::Running)).unwrap();
    servers.put("gone", &back, Some(1), Durability::Durable).await.unwrap();
    world.clock.advance(OFFLINE_AFTER);
    world.service.watch_over(world.clock.now()).await.unwrap();
    assert_eq!(told(&world).await.len(), 2);
}

#[tokio::test]
async fn notifications_are_read_and_forgotten_after_a_week() {
    let world = World::new();
    world.start("Risky", json!({"n": 1})).await;
    world.finish().await;
    assert_eq!(told(&world).await, [(NotificationType::TaskError, false)]);
    world.start("Retried", json!({"n": 1})).await;
    for claim in world.claim(10).await {
        world.service.fail(&claim.ticket, &broken()).await.unwrap();
    }
    assert_eq!(told(&world).await.len(), 1, "an attempt that is followed by another is no end");
    let id = world.service.notifications(1).await.unwrap().remove(0).id;
    assert_eq!(world.service.mark_read(&Mark::One(id)).await.unwrap(), 1);
    assert_eq!(world.service.mark_read(&Mark::All).await.unwrap(), 0);
    assert!(world.service.mark_read(&Mark::One("none".to_owned())).await.is_err());
    world.clock.advance(KEPT_FOR);
    world.service.watch_over(world.clock.now()).await.unwrap();
    assert!(!told(&world).await.contains(&(NotificationType::TaskError, true)), "it is forgotten");
}

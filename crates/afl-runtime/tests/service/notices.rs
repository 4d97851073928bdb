//! The notifications of the janitor.

use afl_engine::time::Millis;
use afl_runtime::doctor::{Remedy, Repair};
use afl_runtime::notification::{KEPT_FOR, NotificationType, STUCK_AFTER};
use afl_runtime::server::{OFFLINE_AFTER, Server, ServerState};
use afl_runtime::{Durability, Error, Mark, NotFound, RunId, StateRefusal, TaskQuery};
use serde_json::json;

use crate::world::{World, broken};

async fn told(world: &World) -> Vec<(NotificationType, bool)> {
    let notices = world.service.notifications(100).await.unwrap();
    notices.iter().map(|notice| (notice.notification.notification_type, notice.notification.read)).collect()
}

#[tokio::test]
async fn an_unclaimed_task_is_reported_once() {
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
async fn an_agent_that_goes_offline_is_reported_once_for_each_time() {
    let world = World::new();
    let servers = world.collection::<Server>();
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
    servers.put("gone", &back, Some(afl_store::conformance::unread(1)), Durability::Durable).await.unwrap();
    world.clock.advance(OFFLINE_AFTER);
    world.service.watch_over(world.clock.now()).await.unwrap();
    assert_eq!(told(&world).await.len(), 2);
}

#[tokio::test]
async fn g13_a_notification_that_cannot_be_read_hides_none_and_the_doctor_takes_it_away() {
    let world = World::new();
    world.start("One", json!({"n": 1})).await;
    world.start("One", json!({"n": 2})).await;
    world.clock.advance(STUCK_AFTER);
    world.service.watch_over(world.clock.now()).await.unwrap();
    let [first, second] = &world.service.notifications(9).await.unwrap()[..] else {
        panic!("two are told of")
    };
    world.damage("@notifications", &first.id).await;
    assert_eq!(world.service.notifications(9).await.unwrap(), std::slice::from_ref(second));
    assert_eq!(world.service.mark_read(&Mark::All).await.unwrap(), 1);
    let found = async |remedy| {
        let findings = world.service.doctor(remedy).await.unwrap().findings;
        findings.iter().map(|finding| (finding.subject().to_string(), finding.repair)).collect::<Vec<_>>()
    };
    let subject = format!("@notifications/{}", first.id);
    assert_eq!(found(Remedy::Tell).await, [(subject.clone(), Repair::Possible)]);
    assert_eq!(found(Remedy::Fix).await, [(subject, Repair::Done)]);
    assert_eq!(found(Remedy::Tell).await, []);
}

#[tokio::test]
async fn g13_a_damaged_program_is_discarded_and_published_anew() {
    let world = World::new();
    let run = world.start("One", json!({"n": 1})).await;
    let hash = world.service.run(&run).await.unwrap().workflow_version;
    world.damage("@programs", &hash).await;
    // Another process: this one has it at hand.
    let service = world.restarted().service;
    let report = service.doctor(Remedy::Tell).await.unwrap();
    let subjects: Vec<_> = report.findings.iter().map(|finding| finding.subject().to_string()).collect();
    let program = RunId(format!("@programs/{hash}").into());
    assert_eq!(subjects, [run.to_string(), program.to_string()]);
    assert_eq!(report.findings[1].repair, Repair::ByHand);
    service.discard(&program).await.unwrap();
    let gone = service.discard(&program).await.unwrap_err();
    assert!(matches!(gone, Error::NotFound(NotFound::Record { .. })), "{gone}");
    world.restarted().request("One", json!({"n": 1})).await;
    assert_eq!(world.restarted().service.doctor(Remedy::Tell).await.unwrap().findings, []);
    let sound = world.service.discard(&program).await.unwrap_err();
    assert!(matches!(sound, Error::Refused(StateRefusal::RecordNotDamaged { .. })), "{sound}");
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

#[tokio::test]
async fn g13_a_damaged_task_or_server_is_reported_once_and_stops_no_maintenance() {
    let world = World::new();
    let [hurt, _] = [world.start("One", json!({"n": 1})).await, world.start("One", json!({"n": 2})).await];
    for name in ["hurt", "gone"] {
        let fields = json!({
            "uuid": name, "server_group": "g", "service_name": "afl-agent", "server_name": "host",
            "ping_time": world.clock.now(), "state": "running",
        });
        let server: Server = serde_json::from_value(fields).unwrap();
        world.collection().put(name, &server, None, Durability::Durable).await.unwrap();
    }
    let step = world.step(&hurt, "One.a").await;
    world.damage(&hurt.0, &format!("t/{step}")).await;
    world.damage("@servers", "hurt").await;
    world.clock.advance(STUCK_AFTER);
    for _ in 0..2 {
        world.service.watch_over(world.clock.now()).await.unwrap();
        let mut told = world.service.notifications(100).await.unwrap();
        told.sort_by(|one, other| one.id.cmp(&other.id));
        let of: Vec<&str> = told.iter().map(|notice| notice.id.split('-').next().unwrap()).collect();
        assert_eq!(of, ["damaged", "damaged", "offline", "stuck"]);
        assert!(told[0].notification.message.contains("is damaged"), "{told:?}");
        assert_eq!(told[0].notification.run, Some(hurt.clone()));
    }
    let list = world.service.tasks(&TaskQuery { limit: 10, ..TaskQuery::default() }).await.unwrap();
    assert_eq!(list.tasks.len(), 1, "a list shows the others");
    assert!(list.unreadable[0].contains(&*hurt.0), "{list:?}");
}

#[tokio::test]
async fn t5_reported_stuck_tasks_cost_one_scan_and_old_notices_go_at_once() {
    let world = World::new();
    world.start("Fan", json!({"items": (0..20).collect::<Vec<i64>>()})).await;
    world.clock.advance(STUCK_AFTER);
    world.service.watch_over(world.clock.now()).await.unwrap();
    assert_eq!(told(&world).await.len(), 20);
    let before = world.faulty.counts();
    world.service.watch_over(world.clock.now()).await.unwrap();
    let after = world.faulty.counts();
    // Silent servers, buckets, tasks, known notifications, dead letters, waiting messages, old notifications.
    assert_eq!((after.calls - before.calls, after.writes() - before.writes()), (7, 0));

    let old = world.service.notifications(1).await.unwrap().remove(0).notification;
    for number in 0..1_200 {
        let id = format!("old-{number}");
        world.collection().put(&id, &old, None, Durability::Relaxed).await.unwrap();
    }
    world.clock.advance(KEPT_FOR);
    world.service.watch_over(world.clock.now()).await.unwrap();
    let left = world.service.notifications(2_000).await.unwrap();
    assert!(left.iter().all(|notice| notice.notification.created > old.created), "{}", left.len());
}

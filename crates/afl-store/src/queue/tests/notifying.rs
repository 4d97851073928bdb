//! Notifications about the ends of tasks, in the commit of the end.

use super::*;
use crate::collection::Collection;
use crate::notification::{MESSAGE_CHARS, NOTIFY, Notification, NotificationSeverity, NotificationType};

impl World {
    async fn told(&self) -> Vec<Notification> {
        let all = Collection::<Notification>::new(self.store().clone()).newest(100).await.unwrap();
        all.into_iter().map(|(_, stored)| stored.item).collect()
    }
}

#[tokio::test]
async fn xr9_a_failure_and_its_notification_are_one_durable_commit() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    let claim = world.one().await;
    let long = EventError { message: "it broke ".repeat(100), ..error() };
    world.queue.fail(&claim.ticket, &long).await.unwrap();
    world.memory.power_cut(10);
    let task = world.task(&step).await;
    assert_eq!((task.state, world.event(&step).await.state), (TaskState::Failed, EventState::Error));
    assert_eq!(task.events().last().unwrap().event_type.name(), "ERROR");
    let [told] = &world.told().await[..] else { panic!("there is one notification") };
    assert_eq!(
        (told.notification_type, told.severity),
        (NotificationType::TaskError, NotificationSeverity::Error)
    );
    assert_eq!((told.run.as_ref(), told.path.as_deref()), (Some(&world.run), Some("W.s1")));
    assert_eq!((told.message.chars().count(), told.read), (MESSAGE_CHARS, false));
    world.queue.fail(&claim.ticket, &long).await.unwrap();
    assert_eq!(world.told().await.len(), 1, "telling it twice is telling it once");
}

// covers: XR-19
#[tokio::test]
async fn xr19_a_task_without_deliveries_left_is_reported() {
    let world = World::new().await;
    let step = world.ask(1, "a.F", Policy::default()).await;
    for delivery in 0..MAX_DELIVERIES {
        assert_eq!(world.told().await, [], "delivery {delivery}");
        world.one().await;
        world.clock.advance(Millis(LEASE.0 + 1));
        world.queue.sweep_once().await.unwrap();
    }
    assert_eq!(world.task(&step).await.error_kind.as_deref(), Some("lease_exhausted"));
    assert_eq!(world.told().await[0].notification_type, NotificationType::TaskError);
}

#[tokio::test]
async fn uncertain_work_asks_a_person_and_good_work_says_nothing_unless_asked() {
    let world = World::new().await;
    world.ask(1, "a.F", Policy { effect: Some(Effect::Once), ..Policy::default() }).await;
    world.one().await;
    world.clock.advance(Millis(LEASE.0 + 1));
    world.queue.sweep_once().await.unwrap();
    let [told] = &world.told().await[..] else { panic!("there is one notification") };
    assert_eq!(told.notification_type, NotificationType::TaskAwaitingResponse);
    assert_eq!((told.severity, &*told.title), (NotificationSeverity::Warning, "W.s1: did it happen?"));

    world.ask(2, "a.F", Policy::default()).await;
    world.queue.complete(&world.one().await.ticket, &result()).await.unwrap();
    assert_eq!(world.told().await.len(), 1);

    let run = world.store().run(&world.run).await.unwrap().unwrap();
    let (label, completed) = NOTIFY;
    let labels = BTreeMap::from([(label.to_owned(), completed.to_owned())]);
    let asking = StoredRecord { item: Run { labels, ..run.item }, version: run.version };
    world.store().save_run(&asking, Durability::Durable).await.unwrap();
    world.ask(3, "a.F", Policy::default()).await;
    world.clock.advance(Millis(1));
    world.queue.complete(&world.one().await.ticket, &result()).await.unwrap();
    assert_eq!(world.told().await[0].notification_type, NotificationType::TaskCompleted);
}

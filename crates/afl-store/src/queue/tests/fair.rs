//! Whose turn it is when several names have tasks.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::backend::TAKE_LOOKS;
use crate::fault::{BackendVerb, Fault, Faulty, at_write};

/// Tasks of a name, each a millisecond younger than the one before.
async fn backlog(world: &World, name: &str, numbers: std::ops::Range<u32>) {
    for number in numbers {
        world.ask(number, name, Policy::default()).await;
        world.clock.advance(Millis(1));
    }
}

#[tokio::test]
async fn a_name_with_a_backlog_takes_turns_with_the_others() {
    let world = World::new().await;
    backlog(&world, "a.F", 0..50).await;
    backlog(&world, "b.G", 50..52).await;
    backlog(&world, "c.H", 60..61).await;
    let mut seen = Vec::new();
    for _ in 0..7 {
        seen.extend(names(&world.claim(&[], 1).await).into_iter().map(str::to_owned));
    }
    assert_eq!(seen, ["W.s0", "W.s50", "W.s60", "W.s1", "W.s51", "W.s2", "W.s3"]);
}

#[tokio::test]
async fn a_claim_of_many_gives_each_name_its_share_and_the_rest_to_longer_queues() {
    let world = World::new().await;
    backlog(&world, "a.F", 0..50).await;
    backlog(&world, "b.G", 50..60).await;
    backlog(&world, "c.H", 60..62).await;
    let claims = world.claim(&[], 12).await;
    let of = |name: &str| claims.iter().filter(|claim| &*claim.task.name == name).count();
    assert_eq!((of("a.F"), of("b.G"), of("c.H")), (5, 5, 2));
    assert!(claims.is_sorted_by_key(|claim| claim.task.created), "the oldest is begun first");
}

#[tokio::test]
async fn a_lower_priority_waits_though_its_name_has_waited_longer() {
    let world = World::new().await;
    let urgent = Policy { priority: Some(90), ..Policy::default() };
    backlog(&world, "b.G", 0..3).await;
    for number in 10..13 {
        world.ask(number, "a.F", urgent.clone()).await;
    }
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.extend(names(&world.claim(&[], 1).await).into_iter().map(str::to_owned));
    }
    assert_eq!(seen, ["W.s10", "W.s11", "W.s12", "W.s0", "W.s1"]);
}

// T16: tasks at the head hide no task behind them.
#[tokio::test]
async fn a_task_behind_tasks_that_may_not_run_is_found() {
    let world = World::new().await;
    let policy = |priority, limit| Policy { priority: Some(priority), limit, ..Policy::default() };
    for (number, name) in [(0, "a.F"), (1, "b.G")] {
        world.ask(number, name, policy(90 - i64::from(number), Some(1))).await;
    }
    assert_eq!(names(&world.claim(&[], 9).await), ["W.s0", "W.s1"]);
    // Both names are at their limit, and behind their urgent tasks is one that has none.
    world.ask(2, "a.F", policy(90, Some(1))).await;
    world.ask(3, "b.G", policy(80, Some(1))).await;
    assert_eq!(world.claim(&[], 9).await, []);
    world.ask(4, "c.H", policy(10, None)).await;
    assert_eq!(names(&world.claim(&[], 9).await), ["W.s4"]);
}

#[tokio::test]
async fn a_limit_that_is_reached_hides_no_task_that_has_another() {
    let world = World::new().await;
    let policy = |limit| Policy { limit, ..Policy::default() };
    world.ask(0, "a.F", policy(Some(1))).await;
    assert_eq!(names(&world.claim(&[], 9).await), ["W.s0"]);
    world.ask(1, "a.F", policy(None)).await;
    assert_eq!(names(&world.claim(&[], 9).await), ["W.s1"]);
}

/// How often one claim looks and takes.
async fn calls(world: &World, max: usize) -> (u64, u64) {
    let looks = Arc::new(AtomicU64::new(0));
    let count = looks.clone();
    let faulty = Arc::new(Faulty::new(world.memory.clone(), move |call| {
        count.fetch_add(u64::from(call.verb == BackendVerb::Heads), Ordering::Relaxed);
        Fault::None
    }));
    let queue = Queue {
        store: Store::new(faulty.clone(), Tenant::new(Tenant::LOCAL).unwrap()),
        ..world.queue.clone()
    };
    let request = ClaimRequest { max, lease: LEASE, ..ClaimRequest::new(FacetFilter::All, "a1") };
    queue.claim(&request).await.unwrap();
    (looks.load(Ordering::Relaxed), faulty.counts().takes)
}

#[tokio::test]
async fn a_claim_is_one_look_and_one_take_whatever_waits() {
    let world = World::new().await;
    assert_eq!(calls(&world, 5).await, (1, 0));
    world.ask(0, "a.F", Policy::default()).await;
    assert_eq!(calls(&world, 5).await, (1, 1));
    backlog(&world, "a.F", 1..300).await;
    backlog(&world, "b.G", 300..600).await;
    assert_eq!(calls(&world, 1).await, (1, 1));
    assert_eq!(calls(&world, 64).await, (0, 2));
    // Of a facet with a limit, too.
    world.ask(600, "c.H", Policy { limit: Some(9), ..Policy::default() }).await;
    world.ask(601, "c.H", Policy { limit: Some(9), ..Policy::default() }).await;
    assert_eq!(calls(&world, 1).await, (1, 1));
    calls(&world, 2).await;
    assert_eq!(calls(&world, 1).await, (0, 1));
}

#[tokio::test]
async fn a_lone_task_where_the_last_ones_were_is_taken_without_a_look() {
    let world = World::new().await;
    for number in 0..2 {
        world.ask(number, "a.F", Policy::default()).await;
        assert_eq!(calls(&world, 5).await, (1, 1));
        assert_eq!(calls(&world, 5).await, (1, 0));
    }
    for number in 2..4 {
        world.ask(number, "a.F", Policy::default()).await;
        assert_eq!(calls(&world, 5).await, (0, 1));
        assert_eq!(calls(&world, 5).await, (1, 0));
    }
    // Wrong once, then it looks again.
    world.ask(4, "b.G", Policy::default()).await;
    assert_eq!(calls(&world, 5).await, (1, 2));
    assert_eq!(calls(&world, 5).await, (1, 0));
    world.ask(5, "b.G", Policy::default()).await;
    assert_eq!(calls(&world, 5).await, (1, 1));
}

#[tokio::test]
async fn while_nothing_comes_one_look_is_enough_for_a_while() {
    let world = World::new().await;
    backlog(&world, "a.F", 0..9).await;
    backlog(&world, "b.G", 10..19).await;
    for looks in [1, 0, 0] {
        assert_eq!(calls(&world, 2).await, (looks, 2));
    }
    // One that comes may be more urgent than all.
    world.ask(20, "c.H", Policy { priority: Some(90), ..Policy::default() }).await;
    assert_eq!(names(&world.claim(&["c.H"], 1).await), ["W.s20"]);
    world.ask(21, "c.H", Policy { priority: Some(90), ..Policy::default() }).await;
    assert_eq!(calls(&world, 1).await, (1, 1));
    // It was the last of its name, and so there is another look.
    assert_eq!(calls(&world, 2).await, (1, 3));
    // One that was passed over may be free by now.
    for (millis, looks) in [(999, 0), (1, 1)] {
        world.clock.advance(Millis(millis));
        assert_eq!(calls(&world, 2).await.0, looks);
    }
    // A claim of more than there is gets the rest.
    assert_eq!(names(&world.claim(&[], 99).await).len(), 6);
    assert_eq!(calls(&world, 2).await, (1, 0));
}

#[tokio::test]
async fn a_look_that_promised_too_much_is_given_up_at_once() {
    let world = World::new().await;
    for number in 0..20 {
        world.ask(number, &format!("a.F{number}"), Policy::default()).await;
    }
    for _ in 0..20 {
        assert_eq!(calls(&world, 1).await.1, 1);
    }
    assert_eq!(calls(&world, 1).await, (1, 1));
    assert_eq!(calls(&world, 1).await, (1, 0));
}

#[tokio::test]
async fn a_name_at_its_limit_spoils_no_look() {
    let world = World::new().await;
    for number in 0..3 {
        world.ask(number, "a.F", Policy { limit: Some(1), ..Policy::default() }).await;
    }
    backlog(&world, "b.G", 10..40).await;
    let mut looks = Vec::new();
    for _ in 0..5 {
        looks.push(calls(&world, 4).await.0);
    }
    assert_eq!(looks, [1, 0, 0, 0, 0]);
}

#[tokio::test]
async fn claimed_tasks_are_kept_when_the_store_fails() {
    let world = World::new().await;
    world.ask(0, "a.F", Policy::default()).await;
    world.clock.advance(Millis(1));
    let hurt = world.ask(1, "a.F", Policy::default()).await;
    let event = world.store().event(&world.run, &hurt).await.unwrap().unwrap();
    let key = world.store().run_key(&world.run, format!("e/{hurt}"));
    let lost = Write { key, expect: Expect::Version(event.version), change: Change::Delete };
    world.store().write(vec![lost], Durability::Durable).await.unwrap();
    // The first write takes both tasks, the second puts aside the one that has no event.
    let faulty = Arc::new(Faulty::new(world.memory.clone(), at_write(2, Fault::ErrorBefore)));
    let store = Store::new(faulty, Tenant::new(Tenant::LOCAL).unwrap());
    let queue = Queue { store, ..world.queue.clone() };
    let request = ClaimRequest { max: 9, ..ClaimRequest::new(FacetFilter::All, "a1") };
    assert_eq!(names(&queue.claim(&request).await.unwrap()), ["W.s0"]);
}

#[tokio::test]
async fn a_task_behind_many_unreadable_tasks_is_found() {
    let world = World::new().await;
    for number in 0..=u32::try_from(TAKE_LOOKS).unwrap() {
        let step = world.ask(number, "a.F", Policy::default()).await;
        world.damage([&step]).await;
    }
    world.ask(5_000, "a.F", Policy::default()).await;
    assert_eq!(names(&world.claim(&[], 1).await), ["W.s5000"]);
}

#[tokio::test]
async fn a_task_goes_to_an_agent_that_has_all_it_needs() {
    let world = World::new().await;
    let needing = |needs: &[&str]| Policy {
        needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        limit: Some(2),
        ..Policy::default()
    };
    world.ask(0, "a.F", needing(&["gpu"])).await;
    world.ask(1, "a.F", needing(&["cuda", "gpu"])).await;
    world.ask(2, "a.F", needing(&[])).await;
    let claim = async |names: FacetFilter, has: &[&str]| {
        let capabilities = has.iter().map(|has| (*has).to_owned()).collect();
        let request = ClaimRequest { max: 9, capabilities, ..ClaimRequest::new(names, "a1") };
        let claims = world.queue.claim(&request).await.unwrap();
        claims.into_iter().map(|claim| claim.task.path.clone()).collect::<Vec<_>>()
    };
    let only = || FacetFilter::Only(vec!["a.F".to_owned()]);
    assert_eq!(claim(only(), &["cuda"]).await, ["W.s2"]);
    assert_eq!(claim(FacetFilter::All, &[]).await, <[&str; 0]>::default());
    assert_eq!(claim(only(), &["gpu", "linux"]).await, ["W.s0"]);
    // Two of the facet run, whatever they need.
    assert_eq!(claim(FacetFilter::All, &["gpu", "cuda"]).await, <[&str; 0]>::default());
}

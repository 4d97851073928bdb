//! How many tasks of a facet may run at once.

use super::*;
use crate::store::TaskBucket;

#[tokio::test]
async fn no_more_tasks_of_a_facet_run_than_its_limit_allows() {
    let world = World::new().await;
    let limited = Policy { limit: Some(2), ..Policy::default() };
    for number in 0..5 {
        world.ask(number, "a.F", limited.clone()).await;
    }
    world.ask(7, "a.G", Policy::default()).await;
    let claims = world.claim(&[], 9).await;
    assert_eq!(names(&claims), ["W.s0", "W.s1", "W.s7"]);
    assert_eq!(world.claim(&["a.F"], 9).await, []);
    world.queue.complete(&claims[0].ticket, &result()).await.unwrap();
    assert_eq!(names(&world.claim(&["a.F"], 9).await), ["W.s2"]);
}

#[tokio::test]
async fn the_task_of_one_step_is_claimed_within_the_limit_too() {
    let world = World::new().await;
    let limited = Policy { limit: Some(1), ..Policy::default() };
    let [first, second] =
        [world.ask(0, "a.F", limited.clone()).await, world.ask(1, "a.F", limited.clone()).await];
    let claim =
        async |step: &StepId| world.claim_named(step, &ClaimRequest::new(FacetFilter::All, "agent")).await;
    let held = claim(&first).await.expect("no task runs");
    assert_eq!(claim(&second).await, None, "the limit is reached");
    assert_eq!(claim(&first).await, None, "the other holder has it");
    assert_eq!(world.task(&second).await.deliveries, 0);
    world.queue.complete(&held.ticket, &result()).await.unwrap();
    assert!(claim(&second).await.is_some());
}

#[tokio::test]
async fn a_limit_holds_on_a_list_of_any_name() {
    let world = World::new().await;
    let gpu = vec!["gpu".to_owned()];
    let limited = Policy { limit: Some(1), needs: gpu.clone(), ..Policy::default() };
    for (at, list) in (0..).zip(["plus+list", "in/parts", "all+@of/it"]) {
        for number in 0..2 {
            world.ask_on(list, 2 * at + number, "a.F", limited.clone()).await;
        }
        let lists = vec![list.to_owned()];
        let request = ClaimRequest {
            lists,
            capabilities: gpu.clone(),
            max: 9,
            ..ClaimRequest::new(FacetFilter::All, "agent")
        };
        let claims = world.queue.claim(&request).await.unwrap();
        assert_eq!(claims.len(), 1, "{list}");
        assert_eq!(world.queue.claim(&request).await.unwrap(), [], "{list}");
        assert!(world.queue.was_turned_away("agent"));
        world.queue.complete(&claims[0].ticket, &result()).await.unwrap();
        assert_eq!(world.queue.claim(&request).await.unwrap().len(), 1, "{list}");
        assert!(!world.queue.was_turned_away("agent"));
    }
}

#[tokio::test]
async fn a_bucket_names_the_policies_of_its_tasks_and_people_see_the_rest() {
    let world = World::new().await;
    let once = Policy { effect: Some(Effect::Once), needs: vec!["gpu".to_owned()], ..Policy::default() };
    let both = Policy { limit: Some(12), ..once.clone() };
    let buckets =
        [("a.F+gpu", Policy { effect: None, ..once.clone() }), ("a.F+!+gpu", once), ("a.F+#12+!+gpu", both)];
    for (number, (end, policy)) in (0..).zip(buckets) {
        world.ask_on("a/list+#7", number, "a.F", policy.clone()).await;
        let bucket = format!("tasks/a/list+#7/{end}");
        assert!(world.store().buckets("tasks/").await.unwrap().contains(&bucket), "{bucket}");
        let parsed = TaskBucket::parse("a/list+#7", &bucket).unwrap();
        assert_eq!((parsed.facet, parsed.needs, parsed.server), ("a.F", vec!["gpu"], None));
        assert_eq!((parsed.limit, parsed.effect), (policy.limit, policy.effect));
        assert_eq!(TaskBucket::without_policies(end), "a.F+gpu");
    }
    assert_eq!(TaskBucket::without_policies("a.F+#1+@any+!server"), "a.F+@any+!server");
}

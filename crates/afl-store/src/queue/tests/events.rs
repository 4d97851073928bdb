//! An event goes with its task, and a step has one of each.

use super::*;
use crate::backend::StoreError;
use crate::conformance::unread;

/// Where the event of a step stands.
async fn state(world: &World, step: &StepId) -> EventState {
    world.event(step).await.state_with(&world.task(step).await)
}

// covers: EVT-2-d, EVT-2-e
#[tokio::test]
async fn an_event_goes_through_every_state_in_turn_and_is_no_candidate_after_the_last() {
    for end in [EventState::Completed, EventState::Error] {
        let world = World::new().await;
        let step = world.ask(1, "a.F", Policy::default()).await;
        let mut seen = vec![world.event(&step).await.state, state(&world, &step).await];
        let claim = world.one().await;
        seen.push(state(&world, &step).await);
        match end {
            EventState::Completed => drop(world.queue.complete(&claim.ticket, &result()).await.unwrap()),
            _ => drop(world.queue.fail(&claim.ticket, &error()).await.unwrap()),
        }
        seen.push(state(&world, &step).await);
        assert_eq!(seen, [EventState::Created, EventState::Dispatched, EventState::Processing, end], "{end}");
        assert_eq!(world.event(&step).await.state, end, "it is stored so");

        world.clock.advance(LEASE.plus(LEASE));
        let swept = world.queue.sweep_once().await.unwrap();
        assert_eq!((swept.requeued, swept.due, swept.arrived.len()), (0, 0, 0), "{end}");
        assert_eq!(world.claim(&[], 9).await, [], "{end}");
        assert_eq!(world.claim_named(&step, &ClaimRequest::new(FacetFilter::All, "a2")).await, None, "{end}");
    }
}

// covers: EVT-4-e
#[tokio::test]
async fn a_second_task_of_a_step_cannot_be_stored_whatever_the_state_of_either() {
    for first in TaskState::ALL {
        for second in TaskState::ALL {
            let world = World::new().await;
            let step = world.ask(1, "a.F", Policy::default()).await;
            let now = world.clock.now();
            let stored = rewritten(&world.task(&step).await, json!({ "state": first }));
            let write = world.store().put(&world.run, &stored, Expect::Version(unread(1)), now);
            world.store().write(vec![write], Durability::Durable).await.unwrap();
            let another = rewritten(&stored, json!({ "state": second, "token": 7 }));
            let write = world.store().put(&world.run, &another, Expect::Absent, now);
            let refused = world.store().write(vec![write], Durability::Durable).await.unwrap_err();
            assert!(matches!(refused, StoreError::Conflict { .. }), "{first}, {second}: {refused}");
            assert_eq!(world.task(&step).await, stored, "{first}, {second}");
        }
    }
}

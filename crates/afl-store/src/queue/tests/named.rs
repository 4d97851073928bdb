//! Claims of one task by its key.

use super::*;
use crate::fault::{Fault, Faulty};

/// Beside 100,002 tasks of three runs. Those of its own run have the same rank, and ids around its own.
#[tokio::test]
async fn a_claim_by_key_reads_the_same_records_beside_any_number_of_waiting_tasks() {
    let mut counts = Vec::new();
    for others in [0, 100_000 / 3 + 1] {
        let mut world = World::new().await;
        for run in ["a", "z", "r"] {
            world.run = RunId(run.into());
            for number in 0..others {
                world.ask(number * 2, "a.F", Policy::default()).await;
            }
        }
        let step = world.ask(others + 1, "a.F", Policy::default()).await;
        let counted = Arc::new(Faulty::new(world.memory.clone(), |_| Fault::None));
        let store = Store::new(counted.clone(), Tenant::new(Tenant::LOCAL).unwrap());
        let task = Some(Arc::new(world.task(&step).await));
        let request = ClaimRequest { task, ..ClaimRequest::new(FacetFilter::All, "a1") };
        let claims = Queue::new(store, Entropy::seeded(7)).claim(&request).await.unwrap();
        let steps: Vec<&StepId> = claims.iter().map(|claim| &claim.ticket.step).collect();
        assert_eq!(steps, [&step]);
        counts.push(counted.counts());
    }
    assert_eq!(counts[0], counts[1]);
}

//! Deleting a run takes all of it, whatever the numbers, and breaks off well.

use super::*;
use crate::fault::{Fault, FaultMoment, Faulty, at_write};
use crate::store::Reservation;
use crate::store::seal::sealed;

/// More than two pages of a deletion.
const LOG_PAGES: usize = 1_200;

/// An ended run with a long log, on a store with this fault; also the records below the fault.
async fn long_log(fault: Fault, write: u64) -> (Store, Store, Run) {
    let memory: Arc<dyn Backend> = Arc::new(Memory::new(Clock::Simulated(SimClock::new(Millis(1_000)))));
    let tenant = Tenant::new(Tenant::LOCAL).unwrap();
    let store = Store::new(memory.clone(), tenant.clone());
    let run = Run { idempotency_key: Some("key".to_owned()), ..run("long", RunStatus::Completed, 1) };
    let reservation = Reservation { key: "key".to_owned(), run: run.id.clone(), digest: String::new() };
    let mut writes =
        vec![store.put(&run.id, &run, Expect::Absent, Millis(0)), store.put_reservation(&reservation)];
    for page in 0..LOG_PAGES {
        let key = store.run_key(&run.id, format!("l/wb0s0/{page:010}"));
        let content = sealed(&key, b"{}".to_vec(), None);
        writes.push(Write { key, expect: Expect::Absent, change: Change::Put(content) });
    }
    store.write(writes, Durability::Durable).await.unwrap();
    let faulty = Store::new(Arc::new(Faulty::new(memory, at_write(write, fault))), tenant);
    (faulty, store, run)
}

async fn records(store: &Store, run: &Run) -> usize {
    store.inspect(&run.id, None, usize::MAX).await.unwrap().len()
}

#[tokio::test]
async fn a_deletion_takes_all_of_a_run_and_its_key_however_long_its_log_is() {
    let (store, _, run) = long_log(Fault::None, 0).await;
    store.delete_run(&run).await.unwrap();
    assert_eq!(records(&store, &run).await, 0);
    assert_eq!(store.reservation("key").await.unwrap(), None);
}

#[tokio::test]
async fn a_deletion_that_breaks_off_leaves_a_run_that_can_be_deleted_again() {
    for write in 1.. {
        let (faulty, store, run) = long_log(Fault::Gone(FaultMoment::Before), write).await;
        if faulty.delete_run(&run).await.is_ok() {
            assert!(write > 3, "the log alone has three pages");
            break;
        }
        assert_eq!(store.run(&run.id).await.unwrap().map(|stored| stored.item), Some(run.clone()));
        assert!(store.reservation("key").await.unwrap().is_some());
        store.delete_run(&run).await.unwrap();
        assert_eq!(records(&store, &run).await, 0);
    }
}

#[tokio::test]
async fn a_discard_that_breaks_off_leaves_a_run_that_can_be_discarded_again() {
    for write in 1.. {
        let (faulty, store, run) = long_log(Fault::Gone(FaultMoment::Before), write).await;
        if faulty.discard_run(&run.id).await.is_ok() {
            assert!(write > 3, "the log alone has three pages");
            break;
        }
        assert!(store.run(&run.id).await.unwrap().is_some());
        store.discard_run(&run.id).await.unwrap();
        assert_eq!(records(&store, &run).await, 0);
        assert_eq!(store.reservation("key").await.unwrap(), None);
    }
}

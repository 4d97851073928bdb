//! Random batches that share transactions must do what they do one after the other.

use afl_store::backend::{Backend, Batch, Change, Expect, StoreError, Write};
use afl_store::clock::Clock;
use afl_store::conformance::{unread, without_epochs};
use afl_store::memory::Memory;
use afl_store::seed::SeededRng;
use futures_util::future::join_all;

use crate::database::{Database, content, key, placed, relaxed};

const SEEDS: u64 = 20;
const GROUPS: usize = 15;
const IDS: usize = 4;

#[tokio::test]
async fn a_group_does_what_its_batches_do_in_turn() {
    let database = Database::new().await;
    let (store, other) = (database.connect().await, database.connect().await);
    for seed in 0..SEEDS {
        let memory = Memory::new(Clock::System);
        let mut seeded = SeededRng::new(seed);
        for group in 0..GROUPS {
            // Now and then from another process, so that the writer must look.
            let from = if seeded.below(4) == 0 { &other } else { &store };
            let mut batches = Vec::new();
            let mut expected = Vec::new();
            for _ in 0..=seeded.below(12) {
                let batch = batch(&mut seeded, seed, &memory).await;
                expected.push(is_written(&memory.commit(batch.clone()).await));
                batches.push(batch);
            }
            let answers = join_all(batches.iter().map(|batch| from.commit(batch.clone()))).await;
            let answers: Vec<bool> = answers.iter().map(is_written).collect();
            assert_eq!(answers, expected, "seed {seed}, group {group}: {batches:?}");
            let keys: Vec<_> = (0..IDS).map(|id| key(&format!("{seed}/{id}"))).collect();
            let answer = without_epochs(store.get(&keys).await.unwrap());
            assert_eq!(answer, without_epochs(memory.get(&keys).await.unwrap()), "seed {seed}");
        }
    }
    let stats = store.stats();
    assert!(stats.conflicts > 100 && stats.commits > 2 * stats.transactions, "{stats:?}");
}

/// Its expectations are right as a rule.
async fn batch(seeded: &mut SeededRng, seed: u64, memory: &Memory) -> Batch {
    let mut writes: Vec<Write> = Vec::new();
    for _ in 0..=seeded.below(2) {
        let key = key(&format!("{seed}/{}", seeded.below(IDS)));
        let found = memory.get(std::slice::from_ref(&key)).await.unwrap().remove(0);
        let expect = match (found, seeded.below(8)) {
            (_, 0) => Expect::Version(unread(1 + seeded.number() % 4)),
            (None, _) | (_, 1) => Expect::Absent,
            (Some(found), _) => Expect::Version(unread(found.version.number)),
        };
        let change = match seeded.below(6) {
            0 => Change::Delete,
            1 => Change::Keep,
            2 => Change::Put(placed("queue")),
            _ => Change::Put(content(&seeded.number().to_string())),
        };
        if writes.iter().all(|write| write.key != key) {
            writes.push(Write { key, expect, change });
        }
    }
    relaxed(writes)
}

/// Which of several keys a conflict names is open.
fn is_written(answer: &Result<(), StoreError>) -> bool {
    match answer {
        Ok(()) => true,
        Err(StoreError::Conflict { .. }) => false,
        Err(other) => panic!("{other:?}"),
    }
}

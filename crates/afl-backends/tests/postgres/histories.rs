//! Random batches that share transactions must do what they do one after the other.

use afl_store::backend::{Backend, Batch, Change, Expect, StoreError, Write};
use afl_store::clock::Clock;
use afl_store::memory::Memory;
use afl_store::seed::Seeded;
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
        let mut seeded = Seeded::new(seed);
        for group in 0..GROUPS {
            // Now and then from another process, so that the writer must look.
            let from = if seeded.below(4) == 0 { &other } else { &store };
            let count = 1 + seeded.below(12);
            let batches: Vec<Batch> = (0..count).map(|_| batch(&mut seeded, seed)).collect();
            let answers = join_all(batches.iter().map(|batch| from.commit(batch.clone()))).await;
            for (batch, answer) in batches.into_iter().zip(answers) {
                let expected = memory.commit(batch.clone()).await;
                assert_eq!(
                    is_written(&answer),
                    is_written(&expected),
                    "seed {seed}, group {group}: {batch:?}"
                );
            }
            let keys: Vec<_> = (0..IDS).map(|id| key(&format!("{seed}/{id}"))).collect();
            assert_eq!(store.get(&keys).await.unwrap(), memory.get(&keys).await.unwrap(), "seed {seed}");
        }
    }
    let stats = store.stats();
    assert!(stats.conflicts > 100 && stats.commits > 2 * stats.transactions, "{stats:?}");
}

fn batch(seeded: &mut Seeded, seed: u64) -> Batch {
    let mut writes: Vec<Write> = Vec::new();
    for _ in 0..=seeded.below(2) {
        let key = key(&format!("{seed}/{}", seeded.below(IDS)));
        let expect = match seeded.below(5) {
            0 | 1 => Expect::Absent,
            _ => Expect::Version(1 + seeded.number() % 4),
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

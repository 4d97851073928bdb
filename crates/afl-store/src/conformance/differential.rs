//! Applies a random history to a backend and to memory: every answer must be the same.

use std::fmt::Debug;
use std::sync::Arc;

use super::Fixture;
use super::given::{ALL, moved, tenant, unread, without_epochs};
use crate::backend::{
    Backend, Batch, BucketCursor, Change, Decision, Durability, Expect, MaxInBucket, Ranks, Scan, ScanOrder,
    StoreError, Take, TakeResult, Write,
};
use crate::clock::Clock;
use crate::memory::Memory;
use crate::record::{Content, Key, QueuePosition, Record, Seal, Tenant};
use crate::seed::SeededRng;

const SEEDS: u64 = 10;
const CALLS: usize = 120;

pub async fn a_random_history_is_that_of_memory(fixture: &dyn Fixture) {
    for seed in 0..SEEDS {
        let handles = [fixture.open().await, fixture.open().await];
        compare(&handles, seed, CALLS).await;
    }
}

/// Applies one history to the handles in turn. A test may call it with more seeds than the list does.
pub async fn compare(handles: &[Arc<dyn Backend>], seed: u64, calls: usize) {
    let memory = Memory::new(Clock::System).with_limits(handles[0].limits());
    let mut history = WriteHistory::new(seed);
    for call in 0..calls {
        let backend = &*handles[call % handles.len()];
        let at = format!("seed {seed}, call {call}");
        match history.seeded.below(10) {
            0..4 => {
                let batch = history.batch(&memory).await;
                same(&at, &batch, backend.commit(batch.clone()).await, memory.commit(batch.clone()).await);
            }
            4 => {
                let keys: Vec<Key> = (0..history.seeded.below(5)).map(|_| history.key()).collect();
                let answer = backend.get(&keys).await.map(without_epochs);
                same(&at, &keys, answer, memory.get(&keys).await.map(without_epochs));
            }
            5 | 6 => {
                let scan = history.scan();
                same(&at, &scan, scanned(backend, &scan).await, scanned(&memory, &scan).await);
            }
            7 => {
                let (tenant, prefix) = (history.tenant(), *history.seeded.pick(&PREFIXES));
                let answer = backend.heads(&tenant, prefix).await;
                same(&at, &prefix, answer, memory.heads(&tenant, prefix).await);
            }
            _ => {
                let take = history.take();
                same(&at, &take, taken(backend, &take).await, taken(&memory, &take).await);
            }
        }
    }
    for scan in history.everything() {
        let answer = scanned(&*handles[0], &scan).await;
        same(&format!("seed {seed}, at the end"), &scan, answer, scanned(&memory, &scan).await);
    }
}

async fn scanned(backend: &dyn Backend, scan: &Scan) -> Result<Vec<Option<Record>>, StoreError> {
    let records = backend.scan(scan).await?;
    Ok(without_epochs(records.into_iter().map(Some).collect()))
}

/// The moved records, those that were also read, and where the take gave up.
async fn taken(
    backend: &dyn Backend,
    take: &Take,
) -> Result<(Vec<Option<Record>>, Vec<Option<Record>>, Option<BucketCursor>), StoreError> {
    let TakeResult { moved, also_read, gave_up_at } = backend.take(take.clone()).await?;
    let moved = without_epochs(moved.into_iter().map(Some).collect());
    Ok((moved, without_epochs(also_read), gave_up_at))
}

#[track_caller]
fn same<T: PartialEq + Debug>(
    at: &str,
    call: &dyn Debug,
    backend: Result<T, StoreError>,
    memory: Result<T, StoreError>,
) {
    match (backend, memory) {
        (Ok(backend), Ok(memory)) => assert_eq!(backend, memory, "{at}: {call:?}"),
        (Err(backend), Err(memory)) => {
            let (backend, memory) = (std::mem::discriminant(&backend), std::mem::discriminant(&memory));
            assert_eq!(backend, memory, "{at}: {call:?}");
        }
        (backend, memory) => panic!("{at}: {call:?}: the backend says {backend:?}, memory {memory:?}"),
    }
}

struct WriteHistory {
    seeded: SeededRng,
    tenants: [Tenant; 2],
}

const SCOPES: [&str; 3] = ["run", "run/a", "R"];
const IDS: [&str; 9] = ["a", "A", "a%", "a_b", "aa", "é", "b", "a/1", "a/2"];
const BUCKETS: [&str; 5] = ["q", "q/a", "q%", "r", "Q"];
const PREFIXES: [&str; 7] = ["", "a", "a/", "a%", "q", "q/", "é"];
const RANKS: [i64; 8] = [i64::MIN, -1, 0, 1, 2, 2, 2, i64::MAX];

impl WriteHistory {
    fn new(seed: u64) -> Self {
        // The seeds share a store, so their tenants differ.
        let tenants = ["x", "y"].map(|name| tenant(&format!("{name}{seed}")));
        Self { seeded: SeededRng::new(seed), tenants }
    }

    fn tenant(&mut self) -> Tenant {
        self.seeded.pick(&self.tenants).clone()
    }

    fn key(&mut self) -> Key {
        let (scope, id) = (*self.seeded.pick(&SCOPES), *self.seeded.pick(&IDS));
        Key { tenant: self.tenant(), scope: scope.into(), id: id.to_owned() }
    }

    /// Its expectations are right as a rule.
    async fn batch(&mut self, memory: &Memory) -> Batch {
        let mut writes: Vec<Write> = Vec::new();
        for _ in 0..self.seeded.below(5) {
            let key = self.key();
            if writes.iter().any(|write| write.key == key) {
                continue;
            }
            let found = memory.get(std::slice::from_ref(&key)).await.expect("memory answers").remove(0);
            let expect = match (found, self.seeded.below(8)) {
                (_, 0) => Expect::Version(unread(self.seeded.number() % 4)),
                (None, _) | (_, 1) => Expect::Absent,
                (Some(found), _) => Expect::Version(unread(found.version.number)),
            };
            let change = match self.seeded.below(6) {
                0 => Change::Delete,
                1 => Change::Keep,
                _ => Change::Put(self.content()),
            };
            writes.push(Write { key, expect, change });
        }
        Batch::new(writes, self.durability())
    }

    fn content(&mut self) -> Content {
        let place = (self.seeded.below(4) > 0).then(|| QueuePosition {
            bucket: (*self.seeded.pick(&BUCKETS)).to_owned(),
            rank: *self.seeded.pick(&RANKS),
        });
        let number = self.seeded.number();
        let seal =
            Seal { schema: number as u32, runtime: (number >> 16) as u32, checksum: (number >> 32) as u32 };
        let body = match self.seeded.below(3) {
            0 => format!("{{\"n\":{number}}}"),
            1 => format!("\"{}\"", "long é ".repeat(self.seeded.below(1_000))),
            _ => String::new(),
        };
        Content { place, body: body.into_bytes(), seal }
    }

    fn durability(&mut self) -> Durability {
        *self.seeded.pick(&[Durability::Relaxed, Durability::Durable])
    }

    fn ranks(&mut self) -> Ranks {
        if self.seeded.below(2) == 0 { Ranks::All } else { Ranks::UpTo(*self.seeded.pick(&RANKS)) }
    }

    fn scan(&mut self) -> Scan {
        let tenant = self.tenant();
        let limit = self.seeded.below(6);
        let (scope, id) = (*self.seeded.pick(&SCOPES), (*self.seeded.pick(&IDS)).to_owned());
        let paged = self.seeded.below(2) == 0;
        if self.seeded.below(2) == 0 {
            let prefix = (*self.seeded.pick(&PREFIXES)).to_owned();
            return Scan::Scope { tenant, scope: scope.into(), prefix, after: paged.then_some(id), limit };
        }
        let rank = *self.seeded.pick(&RANKS);
        Scan::Bucket {
            tenant,
            bucket: (*self.seeded.pick(&BUCKETS)).to_owned(),
            ranks: self.ranks(),
            order: *self.seeded.pick(&[ScanOrder::Ascending, ScanOrder::Descending]),
            after: paged.then(|| BucketCursor { rank, scope: scope.into(), id }),
            limit,
        }
    }

    fn take(&mut self) -> Take {
        let into = *self.seeded.pick(&BUCKETS);
        let (skipped, leaves) = (*self.seeded.pick(&IDS), self.seeded.below(4) == 0);
        let stops = self.seeded.below(4) == 0;
        let decide = move |record: &Record, _| {
            let out = Content { place: None, ..record.content.clone() };
            match (record.key.id == *skipped, stops) {
                (true, true) => Decision::Stop,
                (true, false) => Decision::Leave,
                (false, _) => Decision::Move(if leaves { out } else { moved(record, into) }),
            }
        };
        let wanted: Vec<Key> = (0..self.seeded.below(3)).map(|_| self.key()).collect();
        let max_in_bucket = (self.seeded.below(2) == 0).then(|| MaxInBucket {
            bucket: (*self.seeded.pick(&BUCKETS)).to_owned(),
            max: self.seeded.below(6),
        });
        let mark = BucketCursor {
            rank: *self.seeded.pick(&RANKS),
            scope: (*self.seeded.pick(&SCOPES)).into(),
            id: (*self.seeded.pick(&IDS)).to_owned(),
        };
        Take {
            tenant: self.tenant(),
            bucket: (*self.seeded.pick(&BUCKETS)).to_owned(),
            ranks: self.ranks(),
            after: (self.seeded.below(3) == 0).then_some(mark),
            limit: self.seeded.below(4),
            max_in_bucket,
            durability: self.durability(),
            decide: Arc::new(decide),
            also_read: Some(Arc::new(move |_| wanted.clone())),
        }
    }

    fn everything(&self) -> Vec<Scan> {
        let in_scopes = |tenant: &Tenant| {
            SCOPES.map(|scope| {
                let (tenant, prefix) = (tenant.clone(), String::new());
                Scan::Scope { tenant, scope: scope.into(), prefix, after: None, limit: ALL }
            })
        };
        let in_buckets = |tenant: &Tenant| {
            BUCKETS.map(|bucket| {
                let (tenant, bucket) = (tenant.clone(), bucket.to_owned());
                let order = ScanOrder::Descending;
                Scan::Bucket { tenant, bucket, ranks: Ranks::All, order, after: None, limit: ALL }
            })
        };
        let scopes = self.tenants.iter().flat_map(in_scopes);
        scopes.chain(self.tenants.iter().flat_map(in_buckets)).collect()
    }
}

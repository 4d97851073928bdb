//! The backend that keeps its records in memory: for tests, simulations and runs that need not last.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, MutexGuard, PoisonError};

use afl_engine::time::Millis;
use afl_engine::version::{Epoch, Version};
use async_trait::async_trait;

use crate::backend::{
    Backend, Batch, BucketCursor, Change, ClockStatus, Decision, Durability, Expect, Head, Limits, Ranks,
    Scan, ScanOrder, StoreError, TAKE_LOOKS, Take, TakeMoment, TakeResult,
};
use crate::clock::Clock;
use crate::record::{Content, Key, QueuePosition, Record, Tenant};
use crate::watch::{Watch, Watchers};

/// Needs no runtime, and does the same for the same calls.
#[derive(Debug)]
pub struct Memory {
    clock: Clock,
    limits: Limits,
    watchers: Watchers,
    /// Held while a call looks or writes, never across an await.
    #[expect(clippy::disallowed_types, reason = "the simulation has no task that could own the state")]
    state: std::sync::Mutex<MemoryState>,
}

/// Those of SQLite, so that a batch that fits here fits there.
pub const LIMITS: Limits = Limits { batch_writes: 10_000, batch_bytes: 64 << 20, body_bytes: 16 << 20 };

impl Memory {
    pub fn new(clock: Clock) -> Self {
        Self { clock, limits: LIMITS, watchers: Watchers::default(), state: MemoryState::default().into() }
    }

    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Keeps an undo log of commits that are not durable yet, for [`Memory::power_cut`].
    #[must_use]
    pub fn with_power_cuts(self) -> Self {
        self.lock().undo = Some(Vec::new());
        self
    }

    /// Takes back the latest commits, at most `lose` and none that is durable, as a power cut may do.
    pub fn power_cut(&self, lose: usize) {
        let mut state = self.lock();
        let undo = state.undo.as_mut().expect("made with `with_power_cuts`");
        let kept = undo.len().saturating_sub(lose);
        let taken_back = undo.split_off(kept);
        // The state after a power cut is on the disk.
        undo.clear();
        state.epoch.0 += 1;
        state.revision += 1;
        for (key, before) in taken_back.into_iter().rev().flatten() {
            state.set(key, before);
        }
    }

    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        // The state is changed only after all that can panic: limits, expectations and the mover.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another number whenever something was written or taken back.
    pub fn revision(&self) -> u64 {
        self.lock().revision
    }

    /// All that a commit or a take found fit to write.
    fn write(&self, state: &mut MemoryState, writes: Vec<Setting>, durability: Durability) {
        state.revision += u64::from(!writes.is_empty());
        let mut undo = Vec::with_capacity(writes.len());
        let mut places = Vec::new();
        for (key, stored) in writes {
            if let Some(place) = stored.as_ref().and_then(|stored| stored.content.place.clone()) {
                places.push((key.tenant.clone(), place));
            }
            let before = state.set(key.clone(), stored);
            undo.push((key, before));
        }
        if let Some(commits) = &mut state.undo {
            match durability {
                Durability::Relaxed => commits.push(undo),
                Durability::Durable => commits.clear(),
            }
        }
        for (tenant, place) in places {
            self.watchers.wake(&tenant, &place);
        }
    }
}

#[async_trait]
impl Backend for Memory {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn epoch(&self) -> Epoch {
        self.lock().epoch
    }

    async fn now(&self) -> Result<Millis, StoreError> {
        Ok(self.clock.now())
    }

    async fn clock(&self) -> Result<ClockStatus, StoreError> {
        let now = self.clock.now();
        Ok(ClockStatus { now, wall: now, machine: now, jump: self.clock.jump() })
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        let state = self.lock();
        Ok(keys.iter().map(|key| state.record(key)).collect())
    }

    async fn scan(&self, scan: &Scan) -> Result<Vec<Record>, StoreError> {
        Ok(self.lock().scan(scan))
    }

    async fn heads(&self, tenant: &Tenant, prefix: &str) -> Result<Vec<Head>, StoreError> {
        let state = self.lock();
        let Some(buckets) = state.buckets.get(tenant) else { return Ok(Vec::new()) };
        let from = buckets.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        let head = |(bucket, marks): (&String, &BTreeSet<BucketCursor>)| {
            Some(Head { bucket: bucket.clone(), rank: marks.first()?.rank })
        };
        Ok(from.take_while(|(bucket, _)| bucket.starts_with(prefix)).filter_map(head).collect())
    }

    async fn scopes(&self, tenant: &Tenant, after: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let state = self.lock();
        let Some(scopes) = state.records.get(tenant) else { return Ok(Vec::new()) };
        let behind = scopes.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        Ok(behind.take(limit).map(|(scope, _)| scope.to_string()).collect())
    }

    async fn commit(&self, batch: Batch) -> Result<(), StoreError> {
        self.limits.check(&batch)?;
        let mut state = self.lock();
        if batch.is_outdated(state.epoch) {
            return Err(StoreError::Restarted);
        }
        let mut writes = Vec::with_capacity(batch.writes.len());
        for write in batch.writes {
            let version = state.expected(&write.key, write.expect)?;
            match write.change {
                Change::Put(content) => {
                    writes.push((write.key, Some(MemoryRecord { version: version + 1, content })));
                }
                Change::Delete => writes.push((write.key, None)),
                Change::Keep => {}
            }
        }
        self.write(&mut state, writes, batch.durability);
        Ok(())
    }

    async fn take(&self, take: Take) -> Result<TakeResult, StoreError> {
        let mut state = self.lock();
        let moment = TakeMoment { now: self.clock.now(), crashes: state.epoch.0 };
        let (moved, gave_up_at) = state.choose(&take, moment);
        for record in &moved {
            self.limits.check_body(&record.content)?;
        }
        let writes = moved.iter().cloned().map(|Record { key, version, content }| {
            (key, Some(MemoryRecord { version: version.number, content }))
        });
        self.write(&mut state, writes.collect(), take.durability);
        let also_read = take.keys_to_read(&moved).iter().map(|key| state.record(key)).collect();
        Ok(TakeResult { moved, also_read, gave_up_at })
    }

    fn watch(&self, tenant: &Tenant, prefix: &str) -> Watch {
        self.watchers.watch(tenant, prefix)
    }
}

#[derive(Debug, Default)]
struct MemoryState {
    /// By tenant, scope and id; no scope is empty. Apart, so that a look-up compares the long names once.
    records: BTreeMap<Tenant, BTreeMap<Arc<str>, BTreeMap<String, MemoryRecord>>>,
    /// Every record with a place, once; no bucket is empty.
    buckets: BTreeMap<Tenant, BTreeMap<String, BTreeSet<BucketCursor>>>,
    /// The contents that each commit since the last durable one replaced; nothing without power cuts.
    undo: Option<Vec<Vec<Setting>>>,
    epoch: Epoch,
    /// How often something changed.
    revision: u64,
}

/// The record of a key, now or before a commit.
type Setting = (Key, Option<MemoryRecord>);

#[derive(Clone, Debug)]
struct MemoryRecord {
    version: u64,
    content: Content,
}

impl MemoryState {
    fn stamped(&self, number: u64) -> Version {
        Version { epoch: self.epoch, number }
    }

    fn scope(&self, tenant: &Tenant, scope: &str) -> Option<&BTreeMap<String, MemoryRecord>> {
        self.records.get(tenant)?.get(scope)
    }

    fn stored(&self, key: &Key) -> Option<&MemoryRecord> {
        self.scope(&key.tenant, &key.scope)?.get(&key.id)
    }

    fn record(&self, key: &Key) -> Option<Record> {
        let MemoryRecord { version, content } = self.stored(key)?.clone();
        Some(Record { key: key.clone(), version: self.stamped(version), content })
    }

    /// The version that a write finds there, zero when nothing is there.
    fn expected(&self, key: &Key, expect: Expect) -> Result<u64, StoreError> {
        let found = self.stored(key).map(|stored| stored.version);
        match (expect, found) {
            (Expect::Absent, None) => Ok(0),
            (Expect::Version(version), Some(found)) if found == version.number => Ok(found),
            (Expect::Absent | Expect::Version(_), _) => Err(StoreError::Conflict { key: key.clone() }),
        }
    }

    /// Returns the previous record.
    fn set(&mut self, key: Key, stored: Option<MemoryRecord>) -> Option<MemoryRecord> {
        let Key { tenant, scope, id } = key;
        let place = stored.as_ref().and_then(|stored| stored.content.place.clone());
        let scopes = self.records.entry(tenant.clone()).or_default();
        let records = scopes.entry(scope.clone()).or_default();
        let before = match stored {
            Some(stored) => records.insert(id.clone(), stored),
            None => records.remove(&id),
        };
        if records.is_empty() {
            scopes.remove(&scope);
        }
        let buckets = self.buckets.entry(tenant).or_default();
        let mark = |rank| BucketCursor { rank, scope: scope.clone(), id: id.clone() };
        if let Some(QueuePosition { bucket, rank }) =
            before.as_ref().and_then(|before| before.content.place.as_ref())
        {
            let marks = buckets.get_mut(bucket).expect("a placed record is in its bucket");
            assert!(marks.remove(&mark(*rank)), "a placed record is in its bucket");
            if marks.is_empty() {
                buckets.remove(bucket);
            }
        }
        if let Some(QueuePosition { bucket, rank }) = place {
            buckets.entry(bucket).or_default().insert(mark(rank));
        }
        before
    }

    fn scan(&self, scan: &Scan) -> Vec<Record> {
        match scan {
            Scan::Scope { tenant, scope, prefix, after, limit } => {
                let start = match after {
                    Some(after) if after >= prefix => Bound::Excluded(after.as_str()),
                    Some(_) | None => Bound::Included(prefix.as_str()),
                };
                let Some(records) = self.scope(tenant, scope) else { return Vec::new() };
                let range = records.range::<str, _>((start, Bound::Unbounded));
                let page = range.take_while(|(id, _)| id.starts_with(prefix.as_str())).take(*limit);
                page.map(|(id, MemoryRecord { version, content })| Record {
                    key: Key { tenant: tenant.clone(), scope: scope.clone(), id: id.clone() },
                    version: self.stamped(*version),
                    content: content.clone(),
                })
                .collect()
            }
            Scan::Bucket { tenant, bucket, ranks, order, after, limit } => {
                let here = |mark: &&BucketCursor| ranks.admit(mark.rank);
                let marks = self.marks(tenant, bucket);
                let beyond = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
                let page: Vec<&BucketCursor> = match order {
                    ScanOrder::Ascending => {
                        let marks = marks.range((beyond, Bound::Unbounded));
                        marks.take_while(here).take(*limit).collect()
                    }
                    ScanOrder::Descending => {
                        let marks = marks.range((Bound::Unbounded, beyond)).rev();
                        marks.skip_while(|mark| !here(mark)).take(*limit).collect()
                    }
                };
                page.into_iter().map(|mark| self.marked(tenant, mark)).collect()
            }
        }
    }

    /// The records that a take moves, in their new form, and where it gave up.
    fn choose(&self, take: &Take, moment: TakeMoment) -> (Vec<Record>, Option<BucketCursor>) {
        let room = take.max_in_bucket.as_ref().map_or(usize::MAX, |ceiling| {
            ceiling.max.saturating_sub(self.marks(&take.tenant, &ceiling.bucket).len())
        });
        let start = take.after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let marks = self.marks(&take.tenant, &take.bucket).range((start, Bound::Unbounded));
        let room = take.limit.min(room);
        let mut moved = Vec::new();
        for (nth, mark) in marks.take_while(|mark| take.ranks.admit(mark.rank)).enumerate() {
            if moved.len() == room {
                break;
            }
            let record = self.marked(&take.tenant, mark);
            match (take.decide)(&record, moment) {
                Decision::Move(content) => {
                    moved.push(Record { version: record.version.next(), content, ..record });
                }
                Decision::Leave => {}
                Decision::Stop => break,
            }
            if nth + 1 == TAKE_LOOKS && moved.len() < room {
                return (moved, Some(mark.clone()));
            }
        }
        (moved, None)
    }

    fn marks(&self, tenant: &Tenant, bucket: &str) -> &BTreeSet<BucketCursor> {
        static NONE: BTreeSet<BucketCursor> = BTreeSet::new();
        self.buckets.get(tenant).and_then(|buckets| buckets.get(bucket)).unwrap_or(&NONE)
    }

    fn marked(&self, tenant: &Tenant, mark: &BucketCursor) -> Record {
        let key = Key { tenant: tenant.clone(), scope: mark.scope.clone(), id: mark.id.clone() };
        self.record(&key).expect("a bucket holds records that are there")
    }
}

impl Ranks {
    fn admit(self, rank: i64) -> bool {
        rank <= self.highest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Write;
    use crate::clock::SimClock;
    use crate::record::Seal;

    crate::conformance!(memory, Arc::new(Memory::new(Clock::System)));

    #[tokio::test]
    async fn a_power_cut_takes_back_only_commits_after_the_last_durable_one() {
        let memory = Memory::new(Clock::System).with_power_cuts();
        for (id, durability) in [
            ("a", Durability::Relaxed),
            ("b", Durability::Durable),
            ("c", Durability::Relaxed),
            ("d", Durability::Relaxed),
        ] {
            memory.commit(Batch::new(vec![insert(id)], durability)).await.unwrap();
        }
        memory.power_cut(1);
        assert_eq!(ids(&memory).await, ["a", "b", "c"]);
        memory.commit(Batch::new(vec![insert("e")], Durability::Relaxed)).await.unwrap();
        memory.power_cut(9);
        assert_eq!(ids(&memory).await, ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn the_clock_can_be_simulated() {
        let clock = SimClock::new(Millis(1_000));
        let memory = Memory::new(Clock::Simulated(clock.clone()));
        clock.advance(Millis(500));
        assert_eq!(memory.now().await.unwrap(), Millis(1_500));
    }

    fn insert(id: &str) -> Write {
        let place = Some(QueuePosition { bucket: "queue".to_owned(), rank: 0 });
        let content = Content { place, body: b"{}".to_vec(), seal: Seal::default() };
        let key = Key { tenant: tenant(), scope: "run".into(), id: id.to_owned() };
        Write { key, expect: Expect::Absent, change: Change::Put(content) }
    }

    async fn ids(memory: &Memory) -> Vec<String> {
        let (ranks, order) = (Ranks::All, ScanOrder::Ascending);
        let bucket = "queue".to_owned();
        let all = Scan::Bucket { tenant: tenant(), bucket, ranks, order, after: None, limit: 9 };
        memory.scan(&all).await.unwrap().into_iter().map(|record| record.key.id).collect()
    }

    fn tenant() -> Tenant {
        Tenant::new(Tenant::LOCAL).unwrap()
    }
}

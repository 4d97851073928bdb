//! The material of the checks: keys, contents, writes, batches and scans.

use std::sync::Arc;

use crate::backend::{
    Backend, Batch, Change, Decision, Durability, Expect, Ranks, Scan, ScanOrder, StoreError, Take, Write,
};
use crate::record::{Content, Key, QueuePosition, Record, Seal, Tenant};
use crate::{Epoch, Version};

pub(super) fn tenant(name: &str) -> Tenant {
    Tenant::new(name).expect("the checks use good names")
}

pub(super) fn acme() -> Tenant {
    tenant("acme")
}

pub(super) fn key(scope: &str, id: &str) -> Key {
    Key { tenant: acme(), scope: scope.into(), id: id.to_owned() }
}

pub(super) fn content(body: &str) -> Content {
    Content { place: None, body: body.as_bytes().to_vec(), seal: Seal::default() }
}

pub(super) fn placed(bucket: &str, rank: i64) -> Content {
    Content { place: Some(QueuePosition { bucket: bucket.to_owned(), rank }), ..content("{}") }
}

pub(super) fn insert(key: Key, content: Content) -> Write {
    Write { key, expect: Expect::Absent, change: Change::Put(content) }
}

/// A version that no read gave; it is of every epoch.
pub fn unread(number: u64) -> Version {
    Version { epoch: Epoch(u64::MAX), number }
}

/// Records without the epochs of their reads, which each handle counts for itself.
pub fn without_epochs(records: Vec<Option<Record>>) -> Vec<Option<Record>> {
    let without = |record: Record| Record { version: unread(record.version.number), ..record };
    records.into_iter().map(|record| record.map(without)).collect()
}

pub(super) fn update(key: Key, version: u64, content: Content) -> Write {
    Write { key, expect: Expect::Version(unread(version)), change: Change::Put(content) }
}

pub(super) fn delete(key: Key, version: u64) -> Write {
    Write { key, expect: Expect::Version(unread(version)), change: Change::Delete }
}

pub(super) fn keep(key: Key, expect: Expect) -> Write {
    Write { key, expect, change: Change::Keep }
}

pub(super) fn batch(writes: impl IntoIterator<Item = Write>) -> Batch {
    Batch::new(writes.into_iter().collect(), Durability::Relaxed)
}

pub(super) async fn write(store: &Arc<dyn Backend>, writes: impl IntoIterator<Item = Write>) {
    store.commit(batch(writes)).await.expect("nothing stands against the write");
}

pub(super) async fn read(store: &Arc<dyn Backend>, key: &Key) -> Option<Record> {
    let mut found = store.get(std::slice::from_ref(key)).await.expect("the store answers");
    assert_eq!(found.len(), 1);
    found.remove(0)
}

pub(super) async fn page(store: &Arc<dyn Backend>, scan: &Scan) -> Vec<Record> {
    store.scan(scan).await.expect("the store answers")
}

/// More than any check but one puts anywhere.
pub(super) const ALL: usize = 1_000;

pub(super) fn scope(name: &str, prefix: &str) -> Scan {
    let (scope, prefix) = (name.into(), prefix.to_owned());
    Scan::Scope { tenant: acme(), scope, prefix, after: None, limit: ALL }
}

pub(super) fn bucket(name: &str) -> Scan {
    Scan::Bucket {
        tenant: acme(),
        bucket: name.to_owned(),
        ranks: Ranks::All,
        order: ScanOrder::Ascending,
        after: None,
        limit: ALL,
    }
}

pub(super) fn take(from: &str, into: &str, limit: usize) -> Take {
    Take {
        tenant: acme(),
        bucket: from.to_owned(),
        ranks: Ranks::All,
        after: None,
        limit,
        max_in_bucket: None,
        durability: Durability::Relaxed,
        decide: {
            let into = into.to_owned();
            Arc::new(move |record, _| Decision::Move(moved(record, &into)))
        },
        also_read: None,
    }
}

/// The record in another bucket, else as it is.
pub(super) fn moved(record: &Record, into: &str) -> Content {
    let rank = record.content.place.as_ref().map_or(0, |place| place.rank);
    Content { place: Some(QueuePosition { bucket: into.to_owned(), rank }), ..record.content.clone() }
}

pub(super) async fn taken(store: &Arc<dyn Backend>, take: Take) -> Vec<Record> {
    store.take(take).await.expect("nothing stands against the take").moved
}

pub(super) async fn buckets(store: &Arc<dyn Backend>, tenant: &Tenant, prefix: &str) -> Vec<String> {
    let heads = store.heads(tenant, prefix).await.expect("the store answers");
    heads.into_iter().map(|head| head.bucket).collect()
}

pub(super) fn ids(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| record.key.id.as_str()).collect()
}

#[track_caller]
pub(super) fn conflict<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> Key {
    match answer {
        Err(StoreError::Conflict { key }) => key,
        other => panic!("a conflict was expected, not {other:?}"),
    }
}

#[track_caller]
pub(super) fn too_large<T: std::fmt::Debug>(answer: &Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::TooLarge { .. })), "too large was expected, not {answer:?}");
}

//! A record as a row and back.

use std::borrow::Cow;

use afl_store::backend::BucketCursor;
use afl_store::record::{Content, Key, QueuePosition, Record, Seal, Tenant};
use afl_store::{Epoch, Version};
use rusqlite::Row;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// A crash of the machine ends this process too, so there is one epoch.
pub(super) const EPOCH: Epoch = Epoch(0);

/// The columns that [`record`] reads, for `SELECT`.
macro_rules! columns {
    () => {
        "scope, id, version, bucket, rank, schema, runtime, checksum, body"
    };
}
pub(super) use columns;

/// A damaged row becomes a record whose seal does not fit: it must not hide other rows, and opening the record reports the
/// damage with its key.
pub(super) fn record(row: &Row<'_>, tenant: &Tenant) -> rusqlite::Result<Record> {
    let (scope, id) = (text(row, 0)?, text(row, 1)?);
    let key = Key { tenant: tenant.clone(), scope: scope.into(), id: id.into_owned() };
    let place = match row.get::<_, Option<String>>(3) {
        Ok(bucket) => bucket.map(|bucket| QueuePosition { bucket, rank: rank(row, 4) }),
        Err(_) => None,
    };
    // An empty body fits no seal.
    let (body, seal) = sealed(row).unwrap_or_default();
    Ok(Record {
        key,
        version: Version { epoch: EPOCH, number: version(row, 2) },
        content: Content { place, body, seal },
    })
}

/// Where the record of a row stands.
pub(super) fn mark(row: &Row<'_>) -> rusqlite::Result<BucketCursor> {
    Ok(BucketCursor { rank: rank(row, 4), scope: text(row, 0)?.into(), id: text(row, 1)?.into_owned() })
}

/// The lowest rank for a damaged value, since the index has such a row there.
pub(super) fn rank(row: &Row<'_>, column: usize) -> i64 {
    row.get(column).unwrap_or(i64::MIN)
}

/// Zero for a damaged value, for readers and writers alike.
pub(super) fn version(row: &Row<'_>, column: usize) -> u64 {
    row.get(column).map_or(0, i64::cast_unsigned)
}

/// As much as can be read.
fn text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Cow<'a, str>> {
    let bytes = match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => b"?",
    };
    Ok(String::from_utf8_lossy(bytes))
}

fn sealed(row: &Row<'_>) -> rusqlite::Result<(Vec<u8>, Seal)> {
    let version: i64 = row.get(2)?;
    if version < 1 {
        return Err(rusqlite::Error::IntegralValueOutOfRange(2, version));
    }
    let seal = Seal { schema: row.get(5)?, runtime: row.get(6)?, checksum: row.get(7)? };
    match row.get_ref(8)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Ok((bytes.to_vec(), seal)),
        other => Err(rusqlite::Error::InvalidColumnType(8, "body".to_owned(), other.data_type())),
    }
}

/// Text where it is text, so that people and views can look into it.
pub(super) fn body(bytes: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match str::from_utf8(bytes) {
        Ok(_) => ValueRef::Text(bytes),
        Err(_) => ValueRef::Blob(bytes),
    })
}

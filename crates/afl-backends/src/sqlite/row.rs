//! A record as a row and back.

use std::borrow::Cow;

use afl_store::backend::{Mark, StoreError};
use afl_store::record::{Content, Key, Place, Record, Seal, Tenant};
use rusqlite::Row;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// What [`record`] reads; a list of columns for `SELECT`.
macro_rules! columns {
    () => {
        "scope, id, version, bucket, rank, schema, runtime, checksum, body"
    };
}
pub(super) use columns;

/// Why a row is no record.
pub(super) enum Unreadable {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Unreadable {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

pub(super) fn record(row: &Row<'_>, tenant: &Tenant) -> Result<Record, Unreadable> {
    let (scope, id) = (text(row, 0)?, text(row, 1)?);
    let names = match (&scope, &id) {
        (Cow::Borrowed(_), Cow::Borrowed(_)) => Ok(()),
        (Cow::Owned(_), _) | (_, Cow::Owned(_)) => Err("its key is no text".to_owned()),
    };
    let key = Key { tenant: tenant.clone(), scope: scope.into(), id: id.into_owned() };
    match names.and_then(|()| read(row).map_err(|error| error.to_string())) {
        Ok((version, content)) => Ok(Record { key, version, content }),
        Err(reason) => Err(Unreadable::Store(StoreError::Damaged { key, reason })),
    }
}

/// Where the record of a row stands, even if the rest is damaged.
pub(super) fn mark(row: &Row<'_>) -> rusqlite::Result<Mark> {
    Ok(Mark { rank: row.get(4)?, scope: text(row, 0)?.into(), id: text(row, 1)?.into_owned() })
}

/// Owned when it is damaged: then as much as can be read.
fn text<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<Cow<'a, str>> {
    Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes().map_err(rusqlite::Error::from)?))
}

fn read(row: &Row<'_>) -> rusqlite::Result<(u64, Content)> {
    let version = row.get(2)?;
    let place = match row.get::<_, Option<String>>(3)? {
        Some(bucket) => Some(Place { bucket, rank: row.get(4)? }),
        None => None,
    };
    let seal = Seal { schema: row.get(5)?, runtime: row.get(6)?, checksum: row.get(7)? };
    let body = match row.get_ref(8)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
        other => return Err(rusqlite::Error::InvalidColumnType(8, "body".to_owned(), other.data_type())),
    };
    Ok((version, Content { place, body, seal }))
}

/// Text where it is text, so that people and views can look into it.
pub(super) fn body(bytes: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(match str::from_utf8(bytes) {
        Ok(_) => ValueRef::Text(bytes),
        Err(_) => ValueRef::Blob(bytes),
    })
}

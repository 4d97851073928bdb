//! A record as a row and back.

use std::sync::Arc;

use afl_store::backend::StoreError;
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
    let scope: Arc<str> = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?.into();
    let key = Key { tenant: tenant.clone(), scope, id: row.get(1)? };
    match read(row) {
        Ok((version, content)) => Ok(Record { key, version, content }),
        Err(error) => Err(Unreadable::Store(StoreError::Damaged { key, reason: error.to_string() })),
    }
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

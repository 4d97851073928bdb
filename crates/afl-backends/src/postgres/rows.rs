//! Records as rows of the table, and as the arrays that one statement writes many of them with.

use afl_store::record::{Content, Key, QueuePosition, Record, Seal, Tenant};
use afl_store::{Epoch, Version};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

pub(super) type SqlParams<'a, const N: usize> = [&'a (dyn ToSql + Sync); N];

/// In the order that [`record`] reads.
pub(super) const COLUMNS: &str =
    "r.tenant, r.scope, r.id, r.version, r.bucket, r.rank, r.schema, r.runtime, r.checksum, r.body";

/// The record in the columns from `first` on, of a read that began in this epoch.
pub(super) fn record(row: &Row, first: usize, epoch: Epoch) -> Result<Record, Error> {
    let place = match (row.try_get(first + 4)?, row.try_get(first + 5)?) {
        (Some(bucket), Some(rank)) => Some(QueuePosition { bucket, rank }),
        (Some(_) | None, _) => None,
    };
    let number =
        |column: usize| Ok::<u32, Error>(row.try_get::<_, i64>(first + column)?.cast_unsigned() as u32);
    let seal = Seal { schema: number(6)?, runtime: number(7)?, checksum: number(8)? };
    let version: i64 = row.try_get(first + 3)?;
    Ok(Record {
        key: key(row, first)?,
        version: Version { epoch, number: version.cast_unsigned() },
        content: Content { place, body: row.try_get(first + 9)?, seal },
    })
}

/// The key in the three columns from `first` on.
pub(super) fn key(row: &Row, first: usize) -> Result<Key, Error> {
    let tenant = Tenant::new(row.try_get(first)?).expect("only tenants are written to this column");
    let scope: &str = row.try_get(first + 1)?;
    Ok(Key { tenant, scope: scope.into(), id: row.try_get(first + 2)? })
}

#[derive(Debug, Default)]
pub(super) struct Keys<'a> {
    tenants: Vec<&'a str>,
    scopes: Vec<&'a str>,
    ids: Vec<&'a str>,
}

impl<'a> Keys<'a> {
    pub(super) fn push(&mut self, key: &'a Key) {
        self.tenants.push(key.tenant.as_str());
        self.scopes.push(&key.scope);
        self.ids.push(&key.id);
    }

    pub(super) fn params(&self) -> SqlParams<'_, 3> {
        [&self.tenants, &self.scopes, &self.ids]
    }
}

impl<'a> FromIterator<&'a Key> for Keys<'a> {
    fn from_iter<I: IntoIterator<Item = &'a Key>>(from: I) -> Self {
        let mut keys = Self::default();
        from.into_iter().for_each(|key| keys.push(key));
        keys
    }
}

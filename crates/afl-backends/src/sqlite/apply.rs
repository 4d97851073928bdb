//! The work of one commit or take inside the writer's transaction.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use afl_store::backend::{
    Batch, BucketCursor, Change, Decision, Expect, StoreError, TAKE_LOOKS, Take, TakeMoment, TakeResult,
};
use afl_store::record::{Content, Key, Record};
use rusqlite::{Connection, params};

use super::LIMITS;
use super::read::{FIRST_PAGE, NEXT_PAGE, clamp, get};
use super::row::{self, body, mark, record};

/// Why one commit or take was not done. The transaction goes on without it, since it wrote nothing yet.
pub(super) enum ApplyError {
    Refused(StoreError),
    /// The panic of a take's decision.
    Panicked(Box<dyn Any + Send>),
    /// The transaction is lost, with all that share it.
    Broken(rusqlite::Error),
}

impl From<rusqlite::Error> for ApplyError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Broken(error)
    }
}

const VERSION: &str = "SELECT version FROM records WHERE tenant = ?1 AND scope = ?2 AND id = ?3";
const INSERT: &str = "INSERT INTO records \
     (tenant, scope, id, version, bucket, rank, schema, runtime, checksum, body) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
const UPDATE: &str = "UPDATE records SET version = ?4, bucket = ?5, rank = ?6, schema = ?7, runtime = ?8, \
     checksum = ?9, body = ?10 WHERE tenant = ?1 AND scope = ?2 AND id = ?3";
const DELETE: &str = "DELETE FROM records WHERE tenant = ?1 AND scope = ?2 AND id = ?3";
const COUNT: &str = "SELECT count(*) FROM (SELECT 1 FROM records INDEXED BY placed \
     WHERE tenant = ?1 AND bucket = ?2 LIMIT ?3)";

/// First all expectations, then all changes: a conflict costs a look and needs no way back.
pub(super) fn commit(connection: &Connection, batch: &Batch) -> Result<(), ApplyError> {
    for write in &batch.writes {
        let found = version(connection, &write.key)?;
        let is_expected = match write.expect {
            Expect::Absent => found.is_none(),
            Expect::Version(version) => found == Some(version.number),
        };
        if !is_expected {
            return Err(ApplyError::Refused(StoreError::Conflict { key: write.key.clone() }));
        }
    }
    for write in &batch.writes {
        match (&write.change, write.expect) {
            (Change::Put(content), Expect::Absent) => put(connection, INSERT, &write.key, 1, content)?,
            (Change::Put(content), Expect::Version(version)) => {
                put(connection, UPDATE, &write.key, version.number + 1, content)?;
            }
            (Change::Delete, Expect::Version(_)) => delete(connection, &write.key)?,
            (Change::Delete, Expect::Absent) | (Change::Keep, _) => {}
        }
    }
    Ok(())
}

/// First all that may panic or refuse, then all changes.
pub(super) fn take(
    connection: &Connection,
    take: &Take,
    moment: TakeMoment,
) -> Result<TakeResult, ApplyError> {
    let room = match &take.max_in_bucket {
        None => take.limit,
        Some(ceiling) => {
            let mut statement = connection.prepare_cached(COUNT)?;
            let values = params![take.tenant.as_str(), ceiling.bucket, clamp(ceiling.max)];
            let there: usize = statement.query_row(values, |row| row.get(0))?;
            take.limit.min(ceiling.max - there)
        }
    };
    let (moved, gave_up_at) = choose(connection, take, room, moment)?;
    for record in &moved {
        LIMITS.check_body(&record.content).map_err(ApplyError::Refused)?;
    }
    let keys = catch_unwind(AssertUnwindSafe(|| take.keys_to_read(&moved))).map_err(ApplyError::Panicked)?;
    for record in &moved {
        put(connection, UPDATE, &record.key, record.version.number, &record.content)?;
    }
    let also_read = keys.iter().map(|key| get(connection, key)).collect::<Result<_, _>>()?;
    Ok(TakeResult { also_read, moved, gave_up_at })
}

/// The records to move, as they will be, and the position at which the take gave up.
fn choose(
    connection: &Connection,
    take: &Take,
    room: usize,
    moment: TakeMoment,
) -> Result<(Vec<Record>, Option<BucketCursor>), ApplyError> {
    let (tenant, highest, looks) = (take.tenant.as_str(), take.ranks.highest(), clamp(TAKE_LOOKS));
    let mut statement = connection.prepare_cached(take.after.as_ref().map_or(FIRST_PAGE, |_| NEXT_PAGE))?;
    let mut rows = match &take.after {
        None => statement.query(params![tenant, take.bucket, highest, looks])?,
        Some(BucketCursor { rank, scope, id }) => {
            statement.query(params![tenant, take.bucket, highest, looks, rank, scope, id])?
        }
    };
    let mut moved = Vec::new();
    for looked in 1.. {
        if moved.len() == room {
            break;
        }
        let Some(row) = rows.next()? else { break };
        let record = record(row, &take.tenant)?;
        let choice = catch_unwind(AssertUnwindSafe(|| (take.decide)(&record, moment)));
        match choice.map_err(ApplyError::Panicked)? {
            Decision::Move(content) => {
                moved.push(Record { version: record.version.next(), content, ..record });
            }
            Decision::Leave => {}
            Decision::Stop => break,
        }
        if looked == TAKE_LOOKS && moved.len() < room {
            return Ok((moved, Some(mark(row)?)));
        }
    }
    Ok((moved, None))
}

fn version(connection: &Connection, key: &Key) -> rusqlite::Result<Option<u64>> {
    let mut statement = connection.prepare_cached(VERSION)?;
    let mut rows = statement.query(params![key.tenant.as_str(), key.scope, key.id])?;
    Ok(rows.next()?.map(|row| row::version(row, 0)))
}

fn put(
    connection: &Connection,
    sql: &str,
    key: &Key,
    version: u64,
    content: &Content,
) -> Result<(), ApplyError> {
    let place = content.place.as_ref();
    let written = connection.prepare_cached(sql)?.execute(params![
        key.tenant.as_str(),
        key.scope,
        key.id,
        version,
        place.map(|place| &place.bucket),
        place.map(|place| place.rank),
        content.seal.schema,
        content.seal.runtime,
        content.seal.checksum,
        body(&content.body),
    ])?;
    one_row(written, key)
}

fn delete(connection: &Connection, key: &Key) -> Result<(), ApplyError> {
    let values = params![key.tenant.as_str(), key.scope, key.id];
    let deleted = connection.prepare_cached(DELETE)?.execute(values)?;
    one_row(deleted, key)
}

/// The expectation was checked in this transaction, so only a damaged file gives another number.
fn one_row(rows: usize, key: &Key) -> Result<(), ApplyError> {
    if rows == 1 {
        return Ok(());
    }
    // Part of the batch may be written, so the transaction must go.
    let damage = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    let reason = format!("{rows} rows were written in the place of {} of {}", key.id, key.scope);
    Err(ApplyError::Broken(rusqlite::Error::SqliteFailure(damage, Some(reason))))
}

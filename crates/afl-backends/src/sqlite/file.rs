//! Opens the file: checks its owner and layout, and sets up each connection.

use std::path::Path;
use std::sync::Arc;

use afl_store::backend::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::busy::BusyWait;
use super::failure::{damaged, explain};
use super::{Options, schema};

/// Older ones can damage a write-ahead log that several processes share.
const OLDEST_SQLITE: i32 = 3_051_003;

/// A log that grew beyond this is cut when it starts anew.
const LOG_KEPT_BYTES: i64 = 64 << 20;
const STATEMENTS: usize = 64;

/// SQLite's answer to a check that found no error.
const SOUND: &str = "ok";

pub(super) fn open_writer(
    path: &Path,
    options: &Options,
    wait: &Arc<BusyWait>,
) -> Result<Connection, StoreError> {
    assert!(
        rusqlite::version_number() >= OLDEST_SQLITE,
        "SQLite {} is too old for a file that processes share",
        rusqlite::version()
    );
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut connection = open(path, flags, wait)?;
    schema::prepare(&mut connection, path, wait)?;
    set_for_writing(&connection, options).map_err(|error| explain(path, &error))?;
    Ok(connection)
}

pub(super) fn open_reader(path: &Path, wait: &Arc<BusyWait>) -> Result<Connection, StoreError> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, wait)
}

/// Reads the whole file, and compares every index with its table: no scan finds a record that an index lacks.
pub(super) fn check_integrity(path: &Path, wait: &Arc<BusyWait>) -> Result<Vec<String>, StoreError> {
    let connection = open_reader(path, wait)?;
    let found = connection.prepare("PRAGMA integrity_check").and_then(|mut check| {
        let lines = check.query_map([], |row| row.get::<_, String>(0))?;
        lines.collect::<rusqlite::Result<Vec<String>>>()
    });
    match found {
        Ok(lines) => Ok(lines.iter().filter(|line| *line != SOUND).map(|line| damaged(path, line)).collect()),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            Ok(vec![damaged(path, &error)])
        }
        Err(error) => Err(explain(path, &error)),
    }
}

fn open(path: &Path, flags: OpenFlags, wait: &Arc<BusyWait>) -> Result<Connection, StoreError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let set = |mut connection: Connection| {
        wait.enable(&mut connection)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.pragma_update(None, "temp_store", "memory")?;
        // Else a statement that uses a partial index is compiled anew whenever a value is bound.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(connection)
    };
    Connection::open_with_flags(path, flags).and_then(set).map_err(|error| explain(path, &error))
}

/// The cache stays as small as SQLite makes it: a commit that moved a page goes through all of it.
fn set_for_writing(connection: &Connection, options: &Options) -> rusqlite::Result<()> {
    // The writer makes its checkpoints itself, when no caller waits.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_KEPT_BYTES, |_| Ok(()))?;
    if let Some(max_bytes) = options.max_bytes {
        let page_bytes: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(max_bytes).unwrap_or(i64::MAX) / page_bytes;
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    Ok(())
}

//! Opening the file: whose it is, how it is laid out, how each connection is set.

use std::path::Path;
use std::thread;
use std::time::Duration;

use afl_store::backend::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::failure::{damaged, explain};
use super::{Options, schema};

/// Older ones can damage a write-ahead log that several processes share.
const OLDEST_SQLITE: i32 = 3_051_003;

/// How long a process waits for another one's transaction. Its own waits happen before, in the writer's queue.
const BUSY_MAX: Duration = Duration::from_secs(10);
/// Transactions are short, so asking again soon keeps the wait short; SQLite's own waits grow to 0.1 s.
const BUSY_FIRST: Duration = Duration::from_micros(200);
const BUSY_STEP: Duration = Duration::from_millis(4);

/// A log that grew beyond this is cut when it starts anew.
const LOG_KEPT_BYTES: i64 = 64 << 20;
const STATEMENTS: usize = 64;

/// What the check of a file says when there is nothing to say.
const SOUND: &str = "ok";

pub(super) fn open_writer(path: &Path, options: &Options) -> Result<Connection, StoreError> {
    assert!(
        rusqlite::version_number() >= OLDEST_SQLITE,
        "SQLite {} is too old for a file that processes share",
        rusqlite::version()
    );
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut connection = open(path, flags)?;
    schema::prepare(&mut connection, path)?;
    set_for_writing(&connection, options).map_err(|error| explain(path, &error))?;
    Ok(connection)
}

pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Reads the whole file, and compares every index with its table: a record that an index lacks is found by nobody.
pub(super) fn check_integrity(path: &Path) -> Result<Vec<String>, StoreError> {
    let connection = open_reader(path)?;
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

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let set = |mut connection: Connection| {
        be_patient(&mut connection)?;
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
    // The writer makes its checkpoints itself, when nobody waits.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_KEPT_BYTES, |_| Ok(()))?;
    if let Some(max_bytes) = options.max_bytes {
        let page_bytes: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(max_bytes).unwrap_or(i64::MAX) / page_bytes;
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    Ok(())
}

pub(super) fn be_patient(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(wait_for_others))
}

/// For whoever must not block: a file that another process is writing is busy at once.
pub(super) fn be_impatient(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(None::<fn(i32) -> bool>)
}

/// Tries again by hand, for changing the journal: SQLite does not ask the busy handler then.
pub(super) fn insist<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let mut waits = 0;
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && wait_for_others(waits) => waits += 1,
            other => return other,
        }
    }
}

pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

fn wait_for_others(waits: i32) -> bool {
    let quick = (BUSY_STEP.as_micros() / BUSY_FIRST.as_micros()) as u32;
    let wait = BUSY_FIRST.saturating_mul(waits.unsigned_abs() + 1).min(BUSY_STEP);
    let is_patient = BUSY_STEP.saturating_mul(waits.unsigned_abs().saturating_sub(quick)) < BUSY_MAX;
    if is_patient {
        thread::sleep(wait);
    }
    is_patient
}

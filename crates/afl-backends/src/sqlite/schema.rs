//! The layout of the file, and how an older file gets the newest one.

use std::path::Path;

use afl_store::backend::StoreError;
use rusqlite::{Connection, TransactionBehavior};

use super::busy::BusyWait;
use super::failure::explain;

/// "AFLo": distinguishes our files from those of other programs.
const APPLICATION_ID: i32 = 0x4146_4c6f;

/// In order, for ever: a file counts how many of them it has seen.
///
/// Records have a row number of their own: in a table that is ordered by a key, SQLite reads the whole body of every
/// record that a search passes, and a program has megabytes.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE meta (name TEXT PRIMARY KEY, value ANY NOT NULL) WITHOUT ROWID, STRICT;
    INSERT INTO meta VALUES ('format', 0), ('syncs', 0);
    CREATE TABLE records (
        tenant TEXT NOT NULL,
        scope TEXT NOT NULL,
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        bucket TEXT,
        rank INTEGER,
        schema INTEGER NOT NULL,
        runtime INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        body ANY NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX named ON records (tenant, scope, id);
    CREATE INDEX placed ON records (tenant, bucket, rank, scope, id) WHERE bucket IS NOT NULL;
    ",
    include_str!("migrations/0002_views.sql"),
    include_str!("migrations/0003_clock.sql"),
];

/// Makes the file ours and new, or says why not.
pub(super) fn prepare(connection: &mut Connection, path: &Path, wait: &BusyWait) -> Result<(), StoreError> {
    let name = path.display();
    let failed = |error: rusqlite::Error| explain(path, &error);
    match owner(connection).map_err(failed)? {
        FileOwner::None | FileOwner::AgentFlow => {}
        FileOwner::Another => {
            return Err(StoreError::Refused(format!(
                "{name} belongs to another program: name another file for the store"
            )));
        }
    }
    // Kept by the file; set before the first transaction, since it cannot be changed within one.
    let switch = || connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0));
    let mode: String = wait.retry(switch).map_err(failed)?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(StoreError::Refused(format!(
            "the file system of {name} has no shared memory, which the store needs: name a file on a local disk"
        )));
    }
    let newest = MIGRATIONS.len();
    let format = migrate(connection).map_err(failed)?;
    if format > newest {
        return Err(StoreError::Refused(format!(
            "the store {name} was made by a newer AgentFlow (format {format}, this one knows {newest}): use that \
             version, or name another file"
        )));
    }
    Ok(())
}

enum FileOwner {
    /// An empty file.
    None,
    AgentFlow,
    Another,
}

fn owner(connection: &Connection) -> rusqlite::Result<FileOwner> {
    // Both from one snapshot: another process may be making the file.
    let snapshot = connection.unchecked_transaction()?;
    let tables: i64 = snapshot.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let id: i32 = snapshot.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if id == APPLICATION_ID {
        return Ok(FileOwner::AgentFlow);
    }
    Ok(if id == 0 && tables == 0 { FileOwner::None } else { FileOwner::Another })
}

/// Returns the format that the file has then.
fn migrate(connection: &mut Connection) -> rusqlite::Result<usize> {
    let found = format(connection)?;
    if found >= MIGRATIONS.len() {
        return Ok(found);
    }
    connection.pragma_update(None, "synchronous", "full")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it meanwhile.
    let found = format(&transaction)?;
    for migration in MIGRATIONS.iter().skip(found) {
        transaction.execute_batch(migration)?;
    }
    let now = found.max(MIGRATIONS.len());
    transaction.execute("UPDATE meta SET value = ?1 WHERE name = 'format'", [now])?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.commit()?;
    Ok(now)
}

fn format(connection: &Connection) -> rusqlite::Result<usize> {
    // Asked of the file, because the connection remembers an older list of tables.
    let table = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'meta'";
    let tables: usize = connection.query_row(table, [], |row| row.get(0))?;
    if tables == 0 {
        return Ok(0);
    }
    connection.query_row("SELECT value FROM meta WHERE name = 'format'", [], |row| row.get(0))
}

//! The schema `afl` in the database, brought to the state that this program knows.

use std::fmt::Write as _;

use deadpool_postgres::ClientWrapper;
use sha2::{Digest, Sha256};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Error, Row};

use super::failure::PostgresFailure;
use super::server::ServerAddress;

struct Migration {
    number: i32,
    sql: &'static str,
    /// Programs that know the schema up to this number work with it as well, so that old and new ones can share a
    /// store during an upgrade.
    usable_from: i32,
}

/// In order. One that is released never changes; its checksum is in the databases.
const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, sql: include_str!("migrations/0001_records.sql"), usable_from: 1 },
    Migration { number: 2, sql: include_str!("migrations/0002_views.sql"), usable_from: 1 },
    // An older program would give the tokens of claims that a crash took back again.
    Migration { number: 3, sql: include_str!("migrations/0003_crashes.sql"), usable_from: 3 },
];

/// Held while migrating, so that of many processes that start at once one does it. The number is ours alone.
const LOCK: i64 = 0x0061_666c_6d69_6772;

const TABLE: &str = "
CREATE SCHEMA IF NOT EXISTS afl;
CREATE TABLE IF NOT EXISTS afl.migrations (
    number      integer     PRIMARY KEY,
    usable_from integer     NOT NULL,
    checksum    text        NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
)";

const APPLIED: &str = "SELECT number, usable_from, checksum FROM afl.migrations ORDER BY number";

pub(super) async fn migrate(
    server: &ServerAddress,
    client: &mut ClientWrapper,
) -> Result<(), PostgresFailure> {
    let failed = |error: &Error| PostgresFailure::of(server, error);
    let encoding = client.query_one("SHOW server_encoding", &[]).await.map_err(|error| failed(&error))?;
    let encoding: &str = encoding.get(0);
    if !encoding.eq_ignore_ascii_case("utf8") {
        return Err(PostgresFailure::Refused(format!(
            "{} has the encoding {encoding}: create one with `createdb --encoding=UTF8 --template=template0`",
            server.name
        )));
    }
    // Most starts find all in place, and then need neither the lock nor the right to create.
    match client.query(APPLIED, &[]).await {
        Ok(rows) if pending(server, &rows)?.is_empty() => return Ok(()),
        Ok(_) => {}
        Err(error) if is_missing(&error) => {}
        Err(error) => return Err(failed(&error)),
    }
    let transaction = client.transaction().await.map_err(|error| failed(&error))?;
    let prepared = async {
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        transaction.batch_execute(TABLE).await?;
        transaction.query(APPLIED, &[]).await
    };
    let applied = prepared.await.map_err(|error| failed(&error))?;
    for migration in pending(server, &applied)? {
        let record = "INSERT INTO afl.migrations (number, usable_from, checksum) VALUES ($1, $2, $3)";
        let applied = async {
            transaction.batch_execute(migration.sql).await?;
            let checksum = migration.checksum();
            transaction.execute(record, &[&migration.number, &migration.usable_from, &checksum]).await
        };
        applied.await.map_err(|error| failed(&error))?;
    }
    transaction.commit().await.map_err(|error| failed(&error))
}

fn is_missing(error: &Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::UNDEFINED_TABLE) || code == Some(&SqlState::INVALID_SCHEMA_NAME)
}

/// The migrations that are still to be applied. An error when this program cannot work with those that were.
fn pending(server: &ServerAddress, applied: &[Row]) -> Result<Vec<&'static Migration>, PostgresFailure> {
    let known = MIGRATIONS.last().map_or(0, |migration| migration.number);
    let mut pending: Vec<&Migration> = MIGRATIONS.iter().collect();
    for row in applied {
        let (number, usable_from, checksum): (i32, i32, String) = (row.get(0), row.get(1), row.get(2));
        if usable_from > known {
            return Err(PostgresFailure::Refused(format!(
                "{} was migrated by a newer AgentFlow to schema {number}, this one knows {known}: upgrade this \
                 program, or use another database",
                server.name
            )));
        }
        let ours = MIGRATIONS.iter().find(|migration| migration.number == number);
        if ours.is_some_and(|migration| migration.checksum() != checksum) {
            return Err(PostgresFailure::Refused(format!(
                "migration {number} of {} is not the one of this AgentFlow: it was made by a build that was never \
                 released; use another database",
                server.name
            )));
        }
        pending.retain(|migration| migration.number != number);
    }
    Ok(pending)
}

impl Migration {
    fn checksum(&self) -> String {
        let mut checksum = String::new();
        for byte in Sha256::digest(self.sql) {
            write!(checksum, "{byte:02x}").expect("a string takes everything");
        }
        checksum
    }
}

//! Reading, on connections of its own that never write.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError, TryLockError};

use afl_store::backend::{BucketCursor, Head, Scan, ScanOrder, StoreError, Take};
use afl_store::record::{Key, Record, Tenant};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use super::busy::BusyWait;
use super::failure::explain;
use super::file;
use super::row::{columns, rank, record};

/// As many reads at once as a runtime has threads to make them, as a rule.
const CONNECTIONS: usize = 4;

#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    /// Each lock is held for one read, which takes microseconds; never across an await.
    #[expect(
        clippy::disallowed_types,
        reason = "a read is too short to be worth a task that owns the connection"
    )]
    connections: Vec<std::sync::Mutex<Connection>>,
    next: AtomicUsize,
}

macro_rules! in_scope {
    ($after:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM records WHERE tenant = ?1 AND scope = ?2 AND id ",
            $after,
            " ?3 ORDER BY id LIMIT ?4"
        )
    };
}

macro_rules! in_bucket {
    ($ranks:literal, $order:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM records INDEXED BY placed WHERE tenant = ?1 AND bucket = ?2 AND ",
            $ranks,
            " ORDER BY rank ",
            $order,
            ", scope ",
            $order,
            ", id ",
            $order,
            " LIMIT ?4"
        )
    };
}

pub(super) const FIRST_PAGE: &str = in_bucket!("rank <= ?3", "ASC");
pub(super) const NEXT_PAGE: &str = in_bucket!("rank <= ?3 AND (rank, scope, id) > (?5, ?6, ?7)", "ASC");

const ONE: &str =
    concat!("SELECT ", columns!(), " FROM records WHERE tenant = ?1 AND scope = ?2 AND id = ?3");
const NEXT_HEAD: &str = "SELECT bucket, rank FROM records INDEXED BY placed WHERE tenant = ?1 AND bucket > ?2 \
     ORDER BY bucket, rank LIMIT 1";
const FIRST_HEAD: &str = "SELECT bucket, rank FROM records INDEXED BY placed WHERE tenant = ?1 AND bucket >= ?2 \
     ORDER BY bucket, rank LIMIT 1";
const NEXT_SCOPE: &str = "SELECT scope FROM records WHERE tenant = ?1 AND scope > ?2 ORDER BY scope LIMIT 1";
const ANY_IN_BUCKET: &str = "SELECT 1 FROM records INDEXED BY placed WHERE tenant = ?1 AND bucket = ?2 \
     AND rank BETWEEN ?3 AND ?4 LIMIT 1";

impl Readers {
    pub(super) fn open(path: &Path, wait: &Arc<BusyWait>) -> Result<Self, StoreError> {
        let connections = (0..CONNECTIONS).map(|_| Ok(file::open_reader(path, wait)?.into()));
        Ok(Self {
            path: path.to_owned(),
            connections: connections.collect::<Result<_, StoreError>>()?,
            next: AtomicUsize::new(0),
        })
    }

    pub(super) fn get(&self, keys: &[Key]) -> Result<Vec<Option<Record>>, StoreError> {
        self.read(|connection| {
            if let [key] = keys {
                // One statement has a snapshot of its own.
                return Ok(vec![get(connection, key)?]);
            }
            let snapshot = ReadTransaction::begin(connection)?;
            keys.iter().map(|key| get(snapshot.0, key)).collect()
        })
    }

    pub(super) fn scan(&self, scan: &Scan) -> Result<Vec<Record>, StoreError> {
        self.read(|connection| match scan {
            Scan::Scope { tenant, scope, prefix, after, limit } => {
                let limit = clamp(*limit);
                let (sql, start) = match after {
                    Some(after) if after >= prefix => (in_scope!(">"), after),
                    Some(_) | None => (in_scope!(">="), prefix),
                };
                let values = params![tenant.as_str(), scope, start, limit];
                page(connection, sql, values, tenant, |record| record.key.id.starts_with(prefix.as_str()))
            }
            Scan::Bucket { tenant, bucket, ranks, order, after, limit } => {
                let highest = ranks.highest();
                let (tenant_name, limit) = (tenant.as_str(), clamp(*limit));
                match (order, after) {
                    (ScanOrder::Ascending, None) => {
                        let values = params![tenant_name, bucket, highest, limit];
                        page(connection, FIRST_PAGE, values, tenant, |_| true)
                    }
                    (ScanOrder::Ascending, Some(BucketCursor { rank, scope, id })) => {
                        let values = params![tenant_name, bucket, highest, limit, rank, scope, id];
                        page(connection, NEXT_PAGE, values, tenant, |_| true)
                    }
                    // Only one upper bound, since the index is searched by the first of two.
                    (ScanOrder::Descending, Some(BucketCursor { rank, scope, id })) if *rank <= highest => {
                        let sql = in_bucket!("(rank, scope, id) < (?3, ?5, ?6)", "DESC");
                        let values = params![tenant_name, bucket, rank, limit, scope, id];
                        page(connection, sql, values, tenant, |_| true)
                    }
                    (ScanOrder::Descending, Some(_) | None) => {
                        let values = params![tenant_name, bucket, highest, limit];
                        page(connection, in_bucket!("rank <= ?3", "DESC"), values, tenant, |_| true)
                    }
                }
            }
        })
    }

    /// From one bucket to the next by the index, whatever they hold.
    pub(super) fn heads(&self, tenant: &Tenant, prefix: &str) -> Result<Vec<Head>, StoreError> {
        self.read(|connection| {
            let snapshot = ReadTransaction::begin(connection)?;
            let mut heads: Vec<Head> = Vec::new();
            loop {
                let (sql, from) =
                    heads.last().map_or((FIRST_HEAD, prefix), |last| (NEXT_HEAD, last.bucket.as_str()));
                let mut statement = snapshot.0.prepare_cached(sql)?;
                let head = |row: &Row<'_>| Ok(Head { bucket: row.get(0)?, rank: rank(row, 1) });
                match statement.query_row(params![tenant.as_str(), from], head).optional()? {
                    Some(head) if head.bucket.starts_with(prefix) => heads.push(head),
                    Some(_) | None => return Ok(heads),
                }
            }
        })
    }

    pub(super) fn scopes(
        &self,
        tenant: &Tenant,
        after: &str,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let snapshot = ReadTransaction::begin(connection)?;
            let mut statement = snapshot.0.prepare_cached(NEXT_SCOPE)?;
            let mut scopes: Vec<String> = Vec::new();
            while scopes.len() < limit {
                let last = scopes.last().map_or(after, String::as_str);
                let next = statement.query_row(params![tenant.as_str(), last], |row| row.get(0));
                match next.optional()? {
                    Some(scope) => scopes.push(scope),
                    None => break,
                }
            }
            Ok(scopes)
        })
    }

    /// Whether there is nothing to take.
    pub(super) fn is_empty(&self, take: &Take) -> Result<bool, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(ANY_IN_BUCKET)?;
            let lowest = take.after.as_ref().map_or(i64::MIN, |after| after.rank);
            let values = params![take.tenant.as_str(), take.bucket, lowest, take.ranks.highest()];
            Ok(!statement.exists(values)?)
        })
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        work(&self.free()).map_err(|error| explain(&self.path, &error))
    }

    fn free(&self) -> MutexGuard<'_, Connection> {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let at = |offset: usize| &self.connections[(first + offset) % CONNECTIONS];
        for offset in 0..CONNECTIONS {
            match at(offset).try_lock() {
                Ok(connection) => return connection,
                // A read that panicked left its transaction rolled back.
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        at(0).lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One snapshot for several reads. A transaction of `rusqlite` compiles its statements anew each time.
struct ReadTransaction<'c>(&'c Connection);

impl<'c> ReadTransaction<'c> {
    fn begin(connection: &'c Connection) -> rusqlite::Result<Self> {
        connection.prepare_cached("BEGIN")?.execute([])?;
        Ok(Self(connection))
    }
}

impl Drop for ReadTransaction<'_> {
    fn drop(&mut self) {
        let ended = self.0.prepare_cached("COMMIT").and_then(|mut statement| statement.execute([]));
        // One that cannot be ended has been ended by an error before.
        ended.map(drop).unwrap_or_default();
    }
}

pub(super) fn get(connection: &Connection, key: &Key) -> rusqlite::Result<Option<Record>> {
    let mut statement = connection.prepare_cached(ONE)?;
    let mut rows = statement.query(params![key.tenant.as_str(), key.scope, key.id])?;
    rows.next()?.map(|row| record(row, &key.tenant)).transpose()
}

fn page(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
    tenant: &Tenant,
    belongs: impl Fn(&Record) -> bool,
) -> rusqlite::Result<Vec<Record>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    let mut page = Vec::new();
    while let Some(row) = rows.next()? {
        let record = record(row, tenant)?;
        if !belongs(&record) {
            break;
        }
        page.push(record);
    }
    Ok(page)
}

pub(super) fn clamp(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

//! Keeping the write-ahead log short, at times when nobody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::busy::BusyWait;

/// Of this many pages the log is copied into the file as soon as the writer is idle.
const IDLE_PAGES: usize = 1_000;
const IDLE_AFTER: Duration = Duration::from_millis(25);
/// Of this many pages it is copied even under load: 32 MB, two syncs for thousands of commits.
const LONG_PAGES: usize = 8_000;
/// Beyond this, when readers kept it from starting anew, the writer waits for them a moment.
const STUCK_PAGES: usize = 32_000;
const STUCK_WAIT: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct Log {
    /// As of the last commit; told by SQLite.
    pages: Arc<AtomicUsize>,
    /// Already copied, when readers kept the log from starting anew.
    copied: usize,
}

impl Log {
    pub(super) fn watch(connection: &mut Connection) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicUsize::new(0));
        let told = pages.clone();
        connection.wal_hook(Some(move |_: &mut Wal, pages| {
            told.store(usize::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { pages, copied: 0 })
    }

    /// How long to wait for work before the log is worth a copy; none when it is not.
    pub(super) fn patience(&self) -> Option<Duration> {
        (self.fresh() >= IDLE_PAGES).then_some(IDLE_AFTER)
    }

    pub(super) fn is_long(&self) -> bool {
        self.fresh() >= LONG_PAGES
    }

    pub(super) fn checkpoint(&mut self, connection: &mut Connection, wait: &Arc<BusyWait>) {
        let pages = self.pages.load(Ordering::Relaxed);
        let copied = if pages < STUCK_PAGES {
            copy(connection, "PRAGMA wal_checkpoint(PASSIVE)")
        } else {
            cut(connection, wait)
        };
        // A log that cannot be copied now is as good as before; it is tried again when it has grown.
        self.copied = copied.map_or(pages, |copied| if copied >= pages { 0 } else { pages });
        if self.copied == 0 {
            self.pages.store(0, Ordering::Relaxed);
        }
    }

    fn fresh(&self) -> usize {
        let pages = self.pages.load(Ordering::Relaxed);
        // Less than was copied: it has started anew.
        if pages < self.copied { pages } else { pages - self.copied }
    }
}

fn copy(connection: &Connection, sql: &str) -> rusqlite::Result<usize> {
    connection.query_row(sql, [], |row| row.get(2))
}

fn cut(connection: &mut Connection, wait: &Arc<BusyWait>) -> rusqlite::Result<usize> {
    connection.busy_timeout(STUCK_WAIT)?;
    let copied = copy(connection, "PRAGMA wal_checkpoint(TRUNCATE)");
    wait.enable(connection)?;
    copied.map(|_| usize::MAX)
}

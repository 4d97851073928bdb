//! Checkpoints: copies the write-ahead log into the file, at times when no caller waits.
//!
//! Problem: SQLite's automatic checkpoint runs inside a commit, whose caller then waits for two more syncs. Without
//! checkpoints the log grows without bound, and reads that search it become slow.
//!
//! Approach: SQLite reports the length of the log with each commit. From 1,000 pages on, the writer's thread makes a passive
//! checkpoint when it has been idle for 25 ms. From 8,000 pages (32 MB) on it does so under load: two syncs for thousands
//! of commits. A passive checkpoint waits for no reader, so a long read can keep the log from starting anew. Beyond 32,000
//! pages the thread therefore waits up to 200 ms for readers and truncates the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::busy::BusyWait;

/// A log of this many pages is copied as soon as the writer is idle.
const IDLE_PAGES: usize = 1_000;
const IDLE_AFTER: Duration = Duration::from_millis(25);
/// A log of this many pages is copied even under load.
const LONG_PAGES: usize = 8_000;
/// A log of this many pages is truncated; the writer waits for readers that long.
const STUCK_PAGES: usize = 32_000;
const STUCK_WAIT: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct WriteAheadLog {
    /// As of the last commit, from SQLite's hook.
    pages: Arc<AtomicUsize>,
    /// Already copied, when readers kept the log from starting anew.
    copied: usize,
}

impl WriteAheadLog {
    pub(super) fn attach(connection: &mut Connection) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicUsize::new(0));
        let reported = pages.clone();
        connection.wal_hook(Some(move |_: &mut Wal, pages| {
            reported.store(usize::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { pages, copied: 0 })
    }

    /// How long the writer must be idle before a checkpoint; none when the log is short.
    pub(super) fn idle_wait(&self) -> Option<Duration> {
        (self.fresh() >= IDLE_PAGES).then_some(IDLE_AFTER)
    }

    pub(super) fn is_long(&self) -> bool {
        self.fresh() >= LONG_PAGES
    }

    pub(super) fn checkpoint(&mut self, connection: &mut Connection, wait: &Arc<BusyWait>) {
        let pages = self.pages.load(Ordering::Relaxed);
        let copied = if pages < STUCK_PAGES {
            checkpoint_passive(connection)
        } else {
            checkpoint_truncate(connection, wait)
        };
        // A checkpoint that failed changed nothing; the next one comes when the log has grown.
        self.copied = copied.map_or(pages, |copied| if copied >= pages { 0 } else { pages });
        if self.copied == 0 {
            self.pages.store(0, Ordering::Relaxed);
        }
    }

    fn fresh(&self) -> usize {
        let pages = self.pages.load(Ordering::Relaxed);
        // Shorter than its copied part: the log has started anew.
        if pages < self.copied { pages } else { pages - self.copied }
    }
}

/// Returns how many pages are copied.
fn checkpoint_passive(connection: &Connection) -> rusqlite::Result<usize> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(2))
}

fn checkpoint_truncate(connection: &mut Connection, wait: &Arc<BusyWait>) -> rusqlite::Result<usize> {
    connection.busy_timeout(STUCK_WAIT)?;
    let truncated = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    wait.enable(connection)?;
    truncated.map(|()| usize::MAX)
}

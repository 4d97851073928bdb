//! Waits for the transactions of other processes, and reports a wait that is longer than usual.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use afl_store::backend::StoreError;
use rusqlite::{Connection, ErrorCode};

use super::lock_holder;
use crate::WaitObserver;

/// How long a process waits for another one's transaction. Its own waits happen before, in the writer's queue.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// After so long a wait is reported: transactions take milliseconds, so that another process is stuck.
const REPORT_AFTER: Duration = Duration::from_secs(2);
/// Transactions are short, so asking again soon keeps the wait short; SQLite's own pauses grow to 0.1 s.
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(4);
/// How many pauses are shorter than the longest.
const SHORT_PAUSES: u32 = (LONGEST_PAUSE.as_micros() / FIRST_PAUSE.as_micros()) as u32;

/// How the connections of one store wait.
#[derive(Debug)]
pub(super) struct BusyWait {
    path: PathBuf,
    observer: WaitObserver,
    /// Whether the present wait has been reported to the observer.
    is_reported: AtomicBool,
}

impl BusyWait {
    pub(super) fn new(path: &Path, observer: WaitObserver) -> Arc<Self> {
        Arc::new(Self { path: path.to_owned(), observer, is_reported: AtomicBool::new(false) })
    }

    /// Lets a connection wait for others.
    pub(super) fn enable(self: &Arc<Self>, connection: &mut Connection) -> rusqlite::Result<()> {
        let wait = self.clone();
        connection.busy_handler(Some(move |pauses: i32| wait.pause(pauses.unsigned_abs())))
    }

    /// After this, a file that another process is writing is busy at once.
    pub(super) fn disable(connection: &mut Connection) -> rusqlite::Result<()> {
        connection.busy_handler(None::<fn(i32) -> bool>)
    }

    /// Tries again by hand, for a change of the journal: SQLite does not call the busy handler then.
    pub(super) fn retry<T>(&self, mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let mut pauses = 0;
        loop {
            match attempt() {
                Err(error) if is_busy(&error) && self.pause(pauses) => pauses += 1,
                other => return other,
            }
        }
    }

    /// The lock was acquired, so the next long wait is another one.
    pub(super) fn ended(&self) {
        self.is_reported.store(false, Ordering::Relaxed);
    }

    /// Whether to try again, after a pause. Time is counted in pauses: this process may have been stopped itself, and then
    /// the lock may have been free for long.
    fn pause(&self, pauses: u32) -> bool {
        let waited = LONGEST_PAUSE.saturating_mul(pauses.saturating_sub(SHORT_PAUSES));
        if waited >= LONGEST_WAIT {
            return false;
        }
        if waited >= REPORT_AFTER && !self.is_reported.swap(true, Ordering::Relaxed) {
            (self.observer.0)(&locked(&self.path));
        }
        thread::sleep(FIRST_PAUSE.saturating_mul(pauses + 1).min(LONGEST_PAUSE));
        true
    }
}

/// The error of a call that waited in vain.
pub(super) fn locked(path: &Path) -> StoreError {
    let name = path.display();
    let reason = lock_holder::find(path).map_or_else(
        || format!("another process holds its lock; `fuser {name}` lists those that use it"),
        |holder| holder.to_string(),
    );
    StoreError::Locked { name: name.to_string(), reason }
}

pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

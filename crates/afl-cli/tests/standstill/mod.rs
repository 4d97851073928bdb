//! Stops a process that uses a SQLite store.

use std::path::Path;

use afl_testbed::{PATIENCE, Process};
use rusqlite::Connection;

/// Outside its transactions: stopped inside one, it would keep the store's lock, and no other process could write.
pub(crate) fn stop_between_commits(process: &Process, store: &Path) {
    let lock = Connection::open(store).expect("the store is there");
    lock.busy_timeout(PATIENCE).expect("it is a wait");
    lock.execute_batch("BEGIN IMMEDIATE").expect("transactions are short");
    process.stop();
    lock.execute_batch("ROLLBACK").expect("nothing was written");
}

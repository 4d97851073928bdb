//! Explains SQLite's errors to users of the store, with advice.

use std::fmt::Display;
use std::path::Path;

use afl_store::backend::StoreError;
use rusqlite::{Error, ErrorCode, ffi};

use super::busy::locked;

pub(super) fn explain(path: &Path, error: &Error) -> StoreError {
    let name = path.display();
    let unavailable = |reason: String| StoreError::Unavailable { name: name.to_string(), reason };
    let code = match (error, error.sqlite_error_code()) {
        (_, Some(code)) => code,
        // Only rows that every file has are read in this way.
        (Error::QueryReturnedNoRows, None) => {
            return StoreError::Refused(damaged(path, &"a row of every store is missing"));
        }
        // Every table is strict, and every text is written as UTF-8.
        (
            Error::InvalidColumnType(..)
            | Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..),
            None,
        ) => return StoreError::Refused(damaged(path, error)),
        (_, None) => return unavailable(error.to_string()),
    };
    match code {
        ErrorCode::DiskFull => StoreError::Full,
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            locked(path)
        }
        ErrorCode::NotADatabase => StoreError::Refused(format!(
            "{name} is not a store of AgentFlow, or its beginning is damaged: name another file, or bring this one \
             back from a backup"
        )),
        ErrorCode::DatabaseCorrupt => StoreError::Refused(damaged(path, error)),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => StoreError::Refused(format!(
            "the store {name} cannot be written ({error}): give this user the right to write the file and its \
             folder, and mount its file system for writing"
        )),
        ErrorCode::CannotOpen => StoreError::Refused(format!(
            "the store {name} cannot be opened ({error}): check that its folder is there, that this user may \
             write it, and that its file system is mounted for writing"
        )),
        // The log itself may have been written before.
        ErrorCode::SystemIoFailure if is_index_without_space(error) => unavailable(format!(
            "no space is left for the index of its log ({error}): free space, then repeat the command"
        )),
        ErrorCode::SystemIoFailure => unavailable(format!(
            "{error}: check that its disk has space left, can be written and has no faults"
        )),
        _ => unavailable(error.to_string()),
    }
}

pub(super) fn damaged(path: &Path, how: &impl Display) -> String {
    let name = path.display();
    format!(
        "the store {name} is damaged ({how}): stop all that use it, keep a copy, then bring it back from a backup or \
         save what can be read with `sqlite3 {name} .recover`"
    )
}

fn is_index_without_space(error: &Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_SHMSIZE)
}

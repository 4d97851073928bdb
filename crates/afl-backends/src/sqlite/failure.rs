//! What SQLite's errors mean for whoever uses the store, and what to do about them.

use std::path::Path;

use afl_store::backend::StoreError;
use rusqlite::{Error, ErrorCode};

pub(super) fn explain(path: &Path, error: &Error) -> StoreError {
    let name = path.display();
    let unavailable = |reason: String| StoreError::Unavailable { name: name.to_string(), reason };
    let Some(code) = error.sqlite_error_code() else { return unavailable(error.to_string()) };
    match code {
        ErrorCode::DiskFull => StoreError::Full,
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            unavailable(format!(
                "another process kept the file locked ({error}): try again, and find out with `fuser {name}` \
                 who holds it"
            ))
        }
        ErrorCode::NotADatabase => StoreError::Refused(format!(
            "{name} is not a store of AgentFlow, or its beginning is damaged: name another file, or bring this one \
             back from a backup"
        )),
        ErrorCode::DatabaseCorrupt => StoreError::Refused(format!(
            "the store {name} is damaged ({error}): stop all that use it, keep a copy, then bring it back from a \
             backup or save what can be read with `sqlite3 {name} .recover`"
        )),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => StoreError::Refused(format!(
            "the store {name} cannot be written ({error}): give this user the right to write the file and its \
             folder"
        )),
        ErrorCode::CannotOpen => StoreError::Refused(format!(
            "the store {name} cannot be opened ({error}): check that its folder is there and that this user may \
             write it"
        )),
        ErrorCode::SystemIoFailure => {
            unavailable(format!("{error}: check that its disk has space left and no faults"))
        }
        _ => unavailable(error.to_string()),
    }
}

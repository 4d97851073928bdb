//! Failures of a server, with advice for the user.

use std::error::Error as _;

use afl_store::backend::StoreError;
use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

use super::server::ServerAddress;
use super::tls;

/// A failure that all commits of a group may share.
#[derive(Clone, Debug)]
pub(super) enum PostgresFailure {
    Full,
    Unavailable {
        name: String,
        reason: String,
    },
    /// Another session keeps a record locked.
    Locked {
        name: String,
    },
    Refused(String),
}

/// Whether the same call may succeed a moment later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outlook {
    /// The server is restarting, was replaced, or let another transaction win.
    Passing,
    /// Another writer was first: read the records again.
    Contended,
    Lasting,
}

/// Raised by `afl.write`.
const UNEXPECTED: &str = "AFL01";

pub(super) fn outlook(error: &Error) -> Outlook {
    let Some(code) = error.code() else {
        let is_connection =
            error.is_closed() || error.source().is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
        return if is_connection && tls::explain(error).is_none() {
            Outlook::Passing
        } else {
            Outlook::Lasting
        };
    };
    if *code == SqlState::UNIQUE_VIOLATION || *code == SqlState::from_code(UNEXPECTED) {
        return Outlook::Contended;
    }
    let passing = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
        // The server that was the primary is a standby now.
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    let is_connection = code.code().starts_with("08");
    if is_connection || passing.contains(code) { Outlook::Passing } else { Outlook::Lasting }
}

impl PostgresFailure {
    pub(super) fn unavailable(server: &ServerAddress, reason: impl Into<String>) -> Self {
        Self::Unavailable { name: server.name.clone(), reason: reason.into() }
    }

    pub(super) fn of_pool(server: &ServerAddress, error: &PoolError) -> Self {
        match error {
            PoolError::Backend(error) => Self::of(server, error),
            PoolError::Timeout(TimeoutType::Wait) => Self::unavailable(
                server,
                "all connections of this process stay busy: the server is slow, or allow more of them",
            ),
            _ => Self::unavailable(server, error.to_string()),
        }
    }

    /// Messages name the server, the user and the database, never the password.
    pub(super) fn of(server: &ServerAddress, error: &Error) -> Self {
        let Some(fault) = error.as_db_error() else {
            return Self::of_connection(server, error);
        };
        let (name, code, message) = (&server.name, fault.code(), fault.message());
        let user = server.user();
        match code {
            // The commit may be in the log, although the server could not continue the log.
            code if *code == SqlState::DISK_FULL && has_stopped(fault) => Self::unavailable(
                server,
                format!("{message}, so the server has stopped: free space and start it again"),
            ),
            code if *code == SqlState::DISK_FULL => Self::Full,
            code if *code == SqlState::INVALID_PASSWORD
                || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
            {
                Self::Refused(format!(
                    "{name} does not let user `{user}` in ({message}): check the user and the password in the \
                     address of the store, and the server's pg_hba.conf"
                ))
            }
            code if *code == SqlState::INVALID_CATALOG_NAME => Self::Refused(format!(
                "{name} does not exist ({message}): create it, for example with `createdb`, or correct the \
                 address of the store"
            )),
            code if *code == SqlState::INSUFFICIENT_PRIVILEGE => Self::Refused(format!(
                "user `{user}` may not use {name} ({message}): grant it CREATE on the database, and all on the \
                 schema `afl` and its contents"
            )),
            code if *code == SqlState::TOO_MANY_CONNECTIONS => Self::unavailable(
                server,
                format!(
                    "{message}: raise max_connections of the server, or let each process open fewer connections"
                ),
            ),
            code if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
                Self::unavailable(server, "it is read only at the moment, as a standby is")
            }
            code if *code == SqlState::LOCK_NOT_AVAILABLE => Self::Locked { name: name.clone() },
            code if is_resource(code) => Self::unavailable(server, message),
            code => Self::Refused(format!("{name} refuses a statement: {message} ({})", code.code())),
        }
    }

    /// Whether a group may have failed for one of its batches.
    pub(super) fn is_of_a_batch(&self) -> bool {
        match self {
            Self::Refused(_) | Self::Locked { .. } => true,
            Self::Full | Self::Unavailable { .. } => false,
        }
    }

    fn of_connection(server: &ServerAddress, error: &Error) -> Self {
        if let Some(reason) = tls::explain(error) {
            return Self::Refused(format!("{} {reason}", server.name));
        }
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            reason = format!("{reason}: {inner}");
            cause = inner.source();
        }
        Self::unavailable(server, format!("{reason}; is the server running, and is its address right?"))
    }
}

/// Whether the server ended more than the statement.
fn has_stopped(fault: &DbError) -> bool {
    matches!(fault.parsed_severity(), Some(Severity::Panic | Severity::Fatal))
}

/// Connections, resources, interventions of an operator, faults of the system, transactions to repeat.
fn is_resource(code: &SqlState) -> bool {
    ["08", "40", "53", "55", "57", "58", "XX"].iter().any(|class| code.code().starts_with(class))
}

impl From<PostgresFailure> for StoreError {
    fn from(failure: PostgresFailure) -> Self {
        match failure {
            PostgresFailure::Full => Self::Full,
            PostgresFailure::Unavailable { name, reason } => Self::Unavailable { name, reason },
            PostgresFailure::Locked { name } => Self::Unavailable {
                name,
                reason:
                    "another session has locked a record for long: look for it in pg_stat_activity and end it"
                        .to_owned(),
            },
            PostgresFailure::Refused(reason) => Self::Refused(reason),
        }
    }
}

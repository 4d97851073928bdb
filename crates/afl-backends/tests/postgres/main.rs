//! The PostgreSQL store, on a real server.
#![cfg(feature = "postgres")]
#![expect(clippy::unwrap_used, reason = "what prepares a test fails it as well as the test itself")]

mod database;
mod failures;
mod groups;
mod histories;
mod outages;
mod schema;
mod tls;

use crate::database::Database;

afl_store::conformance!(list, Database::new().await);

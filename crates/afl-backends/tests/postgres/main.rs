//! The PostgreSQL store, on a real server.
#![cfg(feature = "postgres")]

mod database;
mod failures;
mod groups;
mod outages;
mod schema;

use crate::database::Database;

afl_store::conformance!(list, Database::new().await);

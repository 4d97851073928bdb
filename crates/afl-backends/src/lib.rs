//! Backends of the store, one file and one feature each.

#[cfg(feature = "sqlite")]
pub mod sqlite;

//! Backends of the store, one folder and one feature each, and the one list of them.

mod kind;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use kind::{KINDS, StoreAddress, StoreKind, WaitObserver, open};

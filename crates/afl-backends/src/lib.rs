//! Backends of the store, one folder and one feature each, and the one list of them.
//!
//! To add a backend: write its folder with a `KIND`, add its module and that `KIND` here, and add one line of
//! conformance to its tests.

mod kind;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod stats;

pub use kind::{StoreAddress, StoreKind, WaitObserver, open};

/// All kinds, in the order in which help texts name them.
pub const KINDS: &[&StoreKind] = &[
    #[cfg(feature = "sqlite")]
    &sqlite::KIND,
    #[cfg(feature = "postgres")]
    &postgres::KIND,
    &kind::MEMORY,
];

/// Names one opened store of one process. Processes in different containers may have the same number, so it is random.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn random_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    format!("{:016x}", RandomState::new().hash_one(()))
}

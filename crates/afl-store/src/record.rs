//! The contents of a backend: versioned records under keys, some of them queued in buckets.

use afl_engine::version::Version;
use std::sync::Arc;

/// Whose data it is; part of every key. Letters, digits, `-`, `_` and `.` only, so that it can stand in any name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tenant(Arc<str>);

impl Tenant {
    /// The tenant of a store that has one.
    pub const LOCAL: &'static str = "local";
    const MAX_BYTES: usize = 64;

    pub fn new(name: &str) -> Result<Self, BadTenant> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let fits = !name.is_empty() && name.len() <= Self::MAX_BYTES && name.bytes().all(is_plain);
        if fits { Ok(Self(name.into())) } else { Err(BadTenant(name.to_owned())) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` cannot name a tenant: use 1 to 64 letters, digits, `-`, `_` or `.`")]
pub struct BadTenant(String);

/// The place of one record. Ids of a scope sort as bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key {
    pub tenant: Tenant,
    /// The group of records that are deleted together: a run, or one of the fixed scopes.
    pub scope: Arc<str>,
    pub id: String,
}

/// Where a record waits its turn: a bucket holds its records in order of rank, then scope, then id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct QueuePosition {
    pub bucket: String,
    pub rank: i64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    pub key: Key,
    pub version: Version,
    pub content: Content,
}

/// All of a record that its writer chooses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Content {
    pub place: Option<QueuePosition>,
    /// JSON text, so that views can look inside; the backend does not.
    pub body: Vec<u8>,
    pub seal: Seal,
}

/// By this a reader knows whether it can trust and understand the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seal {
    /// The schema of the body (`step_schema_version`).
    pub schema: u32,
    /// The engine that wrote it (`runtime_version`).
    pub runtime: u32,
    /// Over the key and the body.
    pub checksum: u32,
}

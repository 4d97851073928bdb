//! The one statement that writes: a call of `afl.write` with the rows of a whole group as arrays.

use std::collections::BTreeSet;

use afl_store::backend::Durability;
use afl_store::record::{Content, Key, Seal};
use deadpool_postgres::ClientWrapper;
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

use super::listen::{Notice, Origin};
use super::plan::{After, Plan, Slot};
use super::rows::Keys;

pub(super) const WRITE: &str =
    "SELECT afl.write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";

pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
pub(super) const COMMIT: &str = "COMMIT";

/// What became of a transaction.
#[derive(Debug)]
pub(super) enum Ending {
    Committed,
    /// The server said that it is not.
    Undone(Error),
    /// The connection was lost before the server said anything.
    Unknown(Error),
}

impl Ending {
    /// Of a statement whose transaction ends with it, or of a COMMIT.
    pub(super) fn of(result: Result<(), Error>) -> Self {
        match result {
            Ok(()) => Self::Committed,
            Err(error) if is_said(&error) => Self::Undone(error),
            Err(error) => Self::Unknown(error),
        }
    }
}

/// Whether the server itself said that the statement failed, and lives on: one that is being stopped may have
/// committed a moment before.
fn is_said(error: &Error) -> bool {
    const OPERATOR_INTERVENTION: &str = "57P";
    error.code().is_some_and(|code| !code.code().starts_with(OPERATOR_INTERVENTION))
}

/// A record that must stay absent needs a row for a moment.
static CLAIM: Content =
    Content { place: None, body: Vec::new(), seal: Seal { schema: 0, runtime: 0, checksum: 0 } };

/// The rows of `afl.write`, in the order of keys.
#[derive(Debug, Default)]
pub(super) struct Rows<'a> {
    actions: Vec<&'static str>,
    keys: Keys<'a>,
    expected: Vec<Option<i64>>,
    versions: Vec<Option<i64>>,
    buckets: Vec<Option<&'a str>>,
    ranks: Vec<Option<i64>>,
    schemas: Vec<i64>,
    runtimes: Vec<i64>,
    checksums: Vec<i64>,
    bodies: Vec<&'a [u8]>,
    notices: BTreeSet<Notice<'a>>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(plan: &Plan<'a>) -> Self {
        let mut rows = Self::default();
        for (key, slot) in plan.slots() {
            rows.push(key, slot);
        }
        rows
    }

    pub(super) fn push(&mut self, key: &'a Key, slot: Slot<'a>) {
        let claim = After::Put { version: 0, content: &CLAIM };
        match (slot.found, slot.after) {
            (None, After::Put { .. }) => self.add("i", key, slot),
            (None, After::Kept | After::Gone) => self.add("c", key, Slot { after: claim, ..slot }),
            (Some(_), After::Put { .. }) => self.add("u", key, slot),
            (Some(_), After::Gone) => self.add("d", key, slot),
            (Some(_), After::Kept) => self.add("k", key, slot),
        }
    }

    fn add(&mut self, action: &'static str, key: &'a Key, slot: Slot<'a>) {
        let (version, content) = match slot.after {
            After::Put { version, content } => (Some(version), content),
            After::Kept | After::Gone => (None, &CLAIM),
        };
        self.actions.push(action);
        self.keys.push(key);
        self.expected.push(slot.found.map(u64::cast_signed));
        self.versions.push(version.map(u64::cast_signed));
        self.buckets.push(content.place.as_ref().map(|place| place.bucket.as_str()));
        self.ranks.push(content.place.as_ref().map(|place| place.rank));
        self.schemas.push(content.seal.schema.into());
        self.runtimes.push(content.seal.runtime.into());
        self.checksums.push(content.seal.checksum.into());
        self.bodies.push(&content.body);
        if let Some(place) = &content.place {
            self.notices.insert(Notice { tenant: &key.tenant, bucket: &place.bucket });
        }
    }

    /// Sends the statement; it is on its way when this was polled once.
    pub(super) async fn write(
        &self,
        client: &ClientWrapper,
        durability: Durability,
        origin: &Origin,
    ) -> Result<(), Error> {
        let statement = client.prepare_cached(WRITE).await?;
        let notices: Vec<String> = self.notices.iter().map(|notice| notice.text(origin)).collect();
        let [tenants, scopes, ids] = self.keys.params();
        let params: [&(dyn ToSql + Sync); 14] = [
            &self.actions,
            tenants,
            scopes,
            ids,
            &self.expected,
            &self.versions,
            &self.buckets,
            &self.ranks,
            &self.schemas,
            &self.runtimes,
            &self.checksums,
            &self.bodies,
            &synchronous(durability),
            &notices,
        ];
        client.execute(&statement, &params).await.map(drop)
    }
}

/// The setting of `synchronous_commit`.
fn synchronous(durability: Durability) -> &'static str {
    match durability {
        Durability::Relaxed => "off",
        Durability::Durable => "on",
    }
}

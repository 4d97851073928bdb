//! The one statement that writes: a call of `afl.write` with the rows of a whole group as arrays.

use std::collections::BTreeSet;
use std::pin::pin;

use afl_store::backend::Durability;
use afl_store::record::{Content, Key, Seal};
use deadpool_postgres::ClientWrapper;
use futures_util::future::{Either, FutureExt as _, select};
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;

use super::listen::{BucketNotice, NoticeOrigin};
use super::plan::{GroupPlan, KeySlot, SlotAfter};
use super::rows::{Keys, SqlParams};

const WRITE: &str = "SELECT afl.write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, \
     $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)";

const TELL: &str = "SELECT pg_notify('afl', notice) FROM unnest($1::text[]) AS notice";

pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
pub(super) const COMMIT: &str = "COMMIT";

#[derive(Debug)]
pub(super) enum TransactionEnd {
    Committed,
    /// The server said that it is not.
    Undone(Error),
    /// The connection was lost before the server said anything.
    Unknown(Error),
}

impl TransactionEnd {
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
    inserted: Puts<'a>,
    updated: Puts<'a>,
    updated_expected: Vec<i64>,
    guarded: Keys<'a>,
    guarded_expected: Vec<Option<i64>>,
    guarded_actions: Vec<&'static str>,
    notices: BTreeSet<BucketNotice<'a>>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(plan: &GroupPlan<'a>) -> Self {
        let mut rows = Self::default();
        for (key, slot) in plan.slots() {
            rows.push(key, slot);
        }
        rows
    }

    pub(super) fn push(&mut self, key: &'a Key, KeySlot { found, after }: KeySlot<'a>) {
        match (found, after) {
            (None, SlotAfter::Put { version, content }) => self.inserted.push(key, version, content),
            (None, SlotAfter::Kept | SlotAfter::Gone) => {
                self.inserted.push(key, 0, &CLAIM);
                self.guard("c", key, None);
            }
            (Some(found), SlotAfter::Put { version, content }) => {
                self.updated.push(key, version, content);
                self.updated_expected.push(found.cast_signed());
            }
            (Some(found), SlotAfter::Gone) => self.guard("d", key, Some(found)),
            (Some(found), SlotAfter::Kept) => self.guard("k", key, Some(found)),
        }
        if let SlotAfter::Put { content: Content { place: Some(place), .. }, .. } = after {
            self.notices.insert(BucketNotice { tenant: &key.tenant, bucket: &place.bucket });
        }
    }

    fn guard(&mut self, action: &'static str, key: &'a Key, expected: Option<u64>) {
        self.guarded_actions.push(action);
        self.guarded.push(key);
        self.guarded_expected.push(expected.map(u64::cast_signed));
    }

    /// The transaction ends with it unless one was begun. It is on its way when this was polled once.
    pub(super) async fn write(&self, client: &ClientWrapper, durability: Durability) -> Result<(), Error> {
        let statement = client.prepare_cached(WRITE).await?;
        let is_durable = durability == Durability::Durable;
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![&is_durable];
        params.extend(self.inserted.params());
        params.extend(self.updated.params());
        params.push(&self.updated_expected);
        params.extend(self.guarded.params());
        params.push(&self.guarded_expected);
        params.push(&self.guarded_actions);
        client.execute(&statement, &params).await.map(drop)
    }

    /// Notifies other processes of the buckets with new records; also on its way when this was polled once.
    pub(super) async fn tell(&self, client: &ClientWrapper, origin: &NoticeOrigin) -> Result<(), Error> {
        if self.notices.is_empty() {
            return Ok(());
        }
        let statement = client.prepare_cached(TELL).await?;
        let notices: Vec<String> = self.notices.iter().map(|notice| notice.text(origin)).collect();
        client.execute(&statement, &[&notices]).await.map(drop)
    }
}

/// Prepares the statements, so that a later call sends no other message first.
pub(super) async fn prepare(client: &ClientWrapper) -> Result<(), Error> {
    client.prepare_cached(WRITE).await?;
    client.prepare_cached(TELL).await.map(drop)
}

/// Sends a commit and right behind it the notices ([why](super::listen)), and waits for the commit alone.
pub(super) async fn and_tell<T>(commit: impl Future<Output = T>, tell: impl Future) -> T {
    match select(pin!(commit), pin!(tell)).await {
        // The answer may have been there before the notices were sent at all.
        Either::Left((committed, tell)) => {
            drop(tell.now_or_never());
            committed
        }
        Either::Right((_, commit)) => commit.await,
    }
}

/// Records as they are to be.
#[derive(Debug, Default)]
struct Puts<'a> {
    keys: Keys<'a>,
    versions: Vec<i64>,
    buckets: Vec<Option<&'a str>>,
    ranks: Vec<Option<i64>>,
    schemas: Vec<i64>,
    runtimes: Vec<i64>,
    checksums: Vec<i64>,
    bodies: Vec<&'a [u8]>,
}

impl<'a> Puts<'a> {
    fn push(&mut self, key: &'a Key, version: u64, content: &'a Content) {
        self.keys.push(key);
        self.versions.push(version.cast_signed());
        self.buckets.push(content.place.as_ref().map(|place| place.bucket.as_str()));
        self.ranks.push(content.place.as_ref().map(|place| place.rank));
        self.schemas.push(content.seal.schema.into());
        self.runtimes.push(content.seal.runtime.into());
        self.checksums.push(content.seal.checksum.into());
        self.bodies.push(&content.body);
    }

    fn params(&self) -> SqlParams<'_, 10> {
        let [tenants, scopes, ids] = self.keys.params();
        [
            tenants,
            scopes,
            ids,
            &self.versions,
            &self.buckets,
            &self.ranks,
            &self.schemas,
            &self.runtimes,
            &self.checksums,
            &self.bodies,
        ]
    }
}

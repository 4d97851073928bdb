//! The messages that wait: read in order of time, confirmed, put off, given up.

use afl_engine::event::Payload;
use afl_engine::id::RunId;
use afl_engine::time::{Backoff, Millis};
use afl_engine::value::{Map, Value};
use afl_engine::version::Version;

use super::channel::Channel;
use super::message::{Delivery, Envelope, Message, MessageData};
use crate::backend::{BucketCursor, Durability, Ranks, Write};
use crate::collection::Collection;
use crate::conflict::unless_overtaken;
use crate::paging::{Pages, last_if_full};
use crate::record::{Content, Key, QueuePosition, Record};
use crate::store::{BucketPage, Defect, Error, Store, bucket, opened_json, sealed_json};

const SCOPE: &str = "@outbox";
pub(super) const PAGE: usize = 500;
/// Between the attempts to deliver a message.
const BACKOFF: Backoff = Backoff::doubling(Millis(1_000), Millis(5 * 60_000));
/// A receiver that was away for so long may not come back.
pub const GIVEN_UP_AFTER: Millis = Millis(24 * 3_600_000);

/// Of an error, so much is kept.
const ERROR_BYTES: usize = 2_000;

/// All messages of a tenant.
#[derive(Clone, Debug)]
pub struct Outbox(pub(super) Store);

/// A message of a channel, as it was read.
#[derive(Clone, PartialEq, Debug)]
pub struct OutboxRow {
    pub channel: String,
    pub message: Message,
    key: Key,
    version: Version,
}

/// Whether a failure of delivery may pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeliveryFailure {
    /// The receiver is away. The message keeps its place, so that it is the one that is tried again and its day runs
    /// out, instead of each attempt taking one that was never tried; the relay makes the pause.
    Unreachable,
    /// The receiver may accept it later. It is put off, and blocks no other message.
    Transient,
    Permanent,
}

impl Outbox {
    pub fn new(store: Store) -> Self {
        Self(store)
    }

    pub fn channels(&self) -> Collection<Channel> {
        Collection::new(self.0.clone())
    }

    /// The channels that messages wait for, each with the time when the next one is due.
    pub async fn waiting(&self) -> Result<Vec<(String, Millis)>, Error> {
        self.by_channel(bucket::OUTBOX).await
    }

    /// The channels with messages that were given up, each with the time of the first one.
    pub async fn dead(&self) -> Result<Vec<(String, Millis)>, Error> {
        self.by_channel(bucket::OUTBOX_DEAD).await
    }

    async fn by_channel(&self, prefix: &str) -> Result<Vec<(String, Millis)>, Error> {
        let heads = self.0.heads(prefix).await?;
        let named = |bucket: &str| bucket[prefix.len()..].to_owned();
        Ok(heads.into_iter().map(|head| (named(&head.bucket), Millis(head.rank))).collect())
    }

    /// A page of the messages that were due by this time. Damaged messages are put aside, so that they block no other;
    /// those that only a newer release can read stay for it.
    pub async fn due(
        &self,
        channel: &str,
        by: Millis,
        after: Option<BucketCursor>,
        limit: usize,
    ) -> Result<BucketPage<OutboxRow>, Error> {
        let (bucket, ranks) = (bucket::outbox(channel), Ranks::UpTo(by.0));
        let records = self.0.scan_bucket(bucket, ranks, after.as_ref(), limit).await?;
        let page = BucketPage::read(&records, limit, |record| decode(channel, record));
        if !page.unreadable.is_empty() {
            for record in records {
                match decode(channel, &record) {
                    Err(error) if !error.is_of_newer_release() => {
                        self.put_aside_unread(channel, record).await?;
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        }
        Ok(page)
    }

    /// A page of all messages in one of a channel's buckets.
    pub(super) async fn page(
        &self,
        channel: &str,
        bucket: String,
        after: Option<&BucketCursor>,
    ) -> Result<BucketPage<OutboxRow>, Error> {
        let records = self.0.scan_bucket(bucket, Ranks::All, after, PAGE).await?;
        Ok(BucketPage::read(&records, PAGE, |record| decode(channel, record)))
    }

    /// As its receiver reads it, with the large values of the run.
    pub async fn envelope(&self, row: &OutboxRow) -> Result<Envelope, Error> {
        let data = match &row.message.data {
            Some(data) => Some(self.values(&row.message.run, data).await?),
            None => None,
        };
        Ok(Envelope::new(row.key.id.clone(), row.message.clone(), data))
    }

    async fn values(&self, run: &RunId, data: &MessageData) -> Result<Map<String, Value>, Error> {
        let name = || "a message".to_owned();
        let fields: Payload = match data {
            MessageData::Fields(fields) => fields.clone(),
            MessageData::Whole(held) => {
                let whole = self.0.value(run, held, name).await?;
                let wrong = |error: serde_json::Error| Error::Unreadable {
                    run: run.clone(),
                    record: name(),
                    defect: Defect::Body(error.to_string()),
                };
                serde_json::from_value(whole).map_err(wrong)?
            }
        };
        let mut values = Map::new();
        for (field, held) in fields {
            values.insert(field, self.0.value(run, &held, name).await?);
        }
        Ok(values)
    }

    /// The receiver has the message, or must not get it. A power cut may bring it back, and then it is delivered again.
    pub async fn discard(&self, row: OutboxRow) -> Result<(), Error> {
        unless_overtaken(self.0.write(vec![Write::delete(row.key, row.version)], Durability::Relaxed).await)?;
        Ok(())
    }

    /// The receiver does not have it, as far as is known.
    pub async fn failed(&self, row: OutboxRow, error: &str, hope: DeliveryFailure) -> Result<(), Error> {
        let now = self.0.now().await?;
        let before = &row.message.delivery;
        let failing_since = before.failing_since.unwrap_or(now);
        let attempts = before.attempts.saturating_add(1);
        let is_dead = hope == DeliveryFailure::Permanent || now.since(failing_since) >= GIVEN_UP_AFTER;
        let not_before = match hope {
            DeliveryFailure::Unreachable => before.not_before,
            DeliveryFailure::Transient | DeliveryFailure::Permanent => {
                Some(now.plus(BACKOFF.after(attempts)))
            }
        };
        let delivery = Delivery {
            attempts,
            failing_since: Some(failing_since),
            not_before,
            last_error: Some(shown(error)),
            is_dead,
        };
        self.change(row, delivery, Durability::Relaxed).await.map(drop)
    }

    /// The relay lacks what any delivery needs. That is no attempt, and the error is shown to people.
    pub async fn noted(&self, row: OutboxRow, error: &str) -> Result<(), Error> {
        let last_error = Some(shown(error));
        if row.message.delivery.last_error == last_error {
            return Ok(());
        }
        let delivery = Delivery { last_error, ..row.message.delivery.clone() };
        self.change(row, delivery, Durability::Relaxed).await.map(drop)
    }

    /// Messages that were given up are to be delivered after all. Says how many; damaged ones stay.
    pub async fn revive(&self, channel: &str) -> Result<usize, Error> {
        let mut revived = 0;
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.page(channel, bucket::outbox_dead(channel), pages.after()).await?;
            for row in page.items {
                revived += usize::from(self.change(row, Delivery::default(), Durability::Durable).await?);
            }
            pages.follow(page.next);
        }
        Ok(revived)
    }

    /// Whether no other process was faster.
    async fn change(
        &self,
        row: OutboxRow,
        delivery: Delivery,
        durability: Durability,
    ) -> Result<bool, Error> {
        let message = Message { delivery, ..row.message };
        let content = content(&row.channel, &row.key, &message);
        let write = Write::put(row.key, row.version, content);
        Ok(unless_overtaken(self.0.write(vec![write], durability).await)?)
    }

    async fn put_aside_unread(&self, channel: &str, record: Record) -> Result<(), Error> {
        let place =
            QueuePosition { bucket: bucket::outbox_dead(channel), rank: BucketCursor::of(&record).rank };
        let content = Content { place: Some(place), ..record.content };
        let write = Write::put(record.key, record.version, content);
        unless_overtaken(self.0.write(vec![write], Durability::Relaxed).await)?;
        Ok(())
    }

    /// Deletes messages of a channel by their ids, durably. Says how many were there.
    pub async fn acknowledge(&self, channel: &str, ids: &[String]) -> Result<usize, Error> {
        let mut acknowledged = 0;
        let own = |id: &&String| id.strip_prefix(channel).is_some_and(|rest| rest.starts_with('/'));
        let mut keys: Vec<Key> = ids.iter().filter(own).map(|id| self.0.shared_key(SCOPE, id)).collect();
        keys.sort();
        keys.dedup();
        for keys in keys.chunks(PAGE) {
            let found = self.0.backend().get(keys).await?;
            let records: Vec<Record> = found.into_iter().flatten().collect();
            acknowledged += self.delete(&records).await?;
        }
        Ok(acknowledged)
    }

    /// Deletes all messages of a channel, readable or not. Says how many.
    pub async fn drop_all(&self, channel: &str) -> Result<usize, Error> {
        let mut dropped = 0;
        loop {
            let page = self.of(channel, "", None).await?;
            let full = page.len() == PAGE;
            dropped += self.delete(&page).await?;
            if !full {
                return Ok(dropped);
            }
        }
    }

    /// Deletes the messages of a removed channel: a process with an older cache may have published to it. A message from
    /// `now` on may belong to a new channel of that name and stays. Returns whether nothing is left.
    pub async fn sweep(&self, channel: &str, now: Millis) -> Result<bool, Error> {
        match self.channels().get(channel).await {
            Ok(None) => {}
            Ok(Some(_)) => return Ok(false),
            Err(error) if error.is_damage() => return Ok(false),
            Err(error) => return Err(error),
        }
        for bucket in [bucket::outbox(channel), bucket::outbox_dead(channel)] {
            self.sweep_bucket(bucket, now).await?;
        }
        Ok(true)
    }

    async fn sweep_bucket(&self, bucket: String, now: Millis) -> Result<(), Error> {
        let mut pages = Pages::first();
        while !pages.is_over() {
            // No message is due before it came.
            let ranks = Ranks::UpTo(now.0 - 1);
            let records = self.0.scan_bucket(&bucket, ranks, pages.after(), PAGE).await?;
            self.delete(&records).await?;
            pages.follow(last_if_full(&records, PAGE).map(BucketCursor::of));
        }
        Ok(())
    }

    async fn delete(&self, records: &[Record]) -> Result<usize, Error> {
        let writes: Vec<Write> = records.iter().map(Write::delete_of).collect();
        if unless_overtaken(self.0.write(writes.clone(), Durability::Durable).await)? {
            return Ok(writes.len());
        }
        // Others deliver some of them meanwhile, so each goes alone.
        let mut deleted = 0;
        for write in writes {
            let outcome = self.0.write(vec![write], Durability::Durable).await;
            deleted += usize::from(unless_overtaken(outcome)?);
        }
        Ok(deleted)
    }

    /// A page of all records of a channel whose names go on like this.
    pub(super) async fn of(
        &self,
        channel: &str,
        rest: &str,
        after: Option<String>,
    ) -> Result<Vec<Record>, Error> {
        self.0.scan_scope(SCOPE, &format!("{channel}/{rest}"), after, PAGE).await
    }
}

impl OutboxRow {
    /// The same at each delivery.
    pub fn id(&self) -> &str {
        &self.key.id
    }

    /// False for a message that was published to an earlier channel of the same name.
    pub fn is_for(&self, channel: &Channel) -> bool {
        self.message.opened == Millis(0) || self.message.opened >= channel.created
    }
}

pub(super) fn row_write(store: &Store, channel: &str, id: &str, message: &Message) -> Write {
    let key = store.shared_key(SCOPE, &format!("{channel}/{id}"));
    let content = content(channel, &key, message);
    Write::put(key, None, content)
}

fn content(channel: &str, key: &Key, message: &Message) -> Content {
    let Delivery { not_before, is_dead, failing_since, .. } = &message.delivery;
    let place = if *is_dead {
        QueuePosition { bucket: bucket::outbox_dead(channel), rank: failing_since.unwrap_or(message.at).0 }
    } else {
        QueuePosition { bucket: bucket::outbox(channel), rank: not_before.unwrap_or(message.at).0 }
    };
    sealed_json(key, message, Some(place))
}

pub(super) fn decode(channel: &str, record: &Record) -> Result<OutboxRow, Error> {
    let (channel, message) = (channel.to_owned(), opened_json(record)?);
    Ok(OutboxRow { channel, message, key: record.key.clone(), version: record.version })
}

/// A row that has no room for its error could not be put off, and would stand in the way of all others.
fn shown(error: &str) -> String {
    error[..error.floor_char_boundary(ERROR_BYTES)].to_owned()
}

//! Channels to the outside, and the messages that wait for them.

use afl_engine::id::{RunId, StepId};
use afl_engine::time::Millis;
use afl_lang::suggest::closest;
use afl_store::backend::{BucketCursor, Durability};
use afl_store::notification::Notification;
use afl_store::outbox::Outbox;
pub use afl_store::outbox::{
    BadChannel, BadUrl, Channel, ChannelStatus, ChannelTarget, Delivery, DeliveryFailure, Envelope,
    GIVEN_UP_AFTER, MAX_CHANNELS, Message, OutboxRow, Topic, plain_url,
};
use afl_store::paging::Pages;
use afl_store::store::{StoredRecord, bucket};
use afl_store::watch::Watch;

use crate::error::{Contention, Error, NotFound, StateRefusal};
use crate::notices::Notice;
use crate::service::Service;

/// So many rows are looked at in one go for a reader that takes few.
const LEAST_PAGE: usize = 16;
const PAGE: usize = 50;

/// The messages of one channel, the oldest first.
#[derive(Debug)]
pub struct DueMessages {
    outbox: Outbox,
    name: String,
    channel: Channel,
    by: Millis,
    limit: usize,
    rows: std::vec::IntoIter<OutboxRow>,
    pages: Pages<BucketCursor>,
}

impl DueMessages {
    pub async fn next(&mut self) -> Result<Option<OutboxRow>, Error> {
        loop {
            let next = self.rows.next();
            if next.is_some() || self.pages.is_over() {
                return Ok(next);
            }
            let after = self.pages.after().cloned();
            let page = self.outbox.due(&self.name, self.by, after, self.limit).await?;
            self.rows = page.items.into_iter();
            self.pages.follow(page.next);
        }
    }

    /// The message as its receiver reads it. One of an earlier channel of this name is deleted, and a damaged one is
    /// given up.
    pub async fn open(&self, row: OutboxRow) -> Result<Option<(OutboxRow, Envelope)>, Error> {
        if !row.is_for(&self.channel) {
            self.outbox.discard(row).await?;
            return Ok(None);
        }
        match self.outbox.envelope(&row).await {
            Ok(letter) => Ok(Some((row, letter))),
            Err(error) if error.is_damage() => {
                self.failed(row, &error.to_string(), DeliveryFailure::Permanent).await?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The receiver has the message.
    pub async fn delivered(&self, row: OutboxRow) -> Result<(), Error> {
        Ok(self.outbox.discard(row).await?)
    }

    /// The receiver does not have the message, as far as is known.
    pub async fn failed(&self, row: OutboxRow, error: &str, failure: DeliveryFailure) -> Result<(), Error> {
        Ok(self.outbox.failed(row, error, failure).await?)
    }

    /// The agent lacks what a delivery needs. That is no attempt, and people see the error.
    pub async fn noted(&self, row: OutboxRow, error: &str) -> Result<(), Error> {
        Ok(self.outbox.noted(row, error).await?)
    }
}

impl Service {
    pub(crate) fn outbox(&self) -> Outbox {
        Outbox::new(self.store.clone())
    }

    /// Wakes after a message came.
    pub fn watch_outbox(&self) -> Watch {
        self.store.watch(bucket::OUTBOX)
    }

    /// Stores a channel in place of the one that had its name. This process writes messages for it at once. Other
    /// processes do so when their watch wakes them, and after ten seconds at the latest.
    pub async fn open_channel(&self, name: &str, channel: Channel) -> Result<Channel, Error> {
        channel.check(name)?;
        let channels = self.outbox().channels();
        let attempt = || async {
            let found = channels.get(name).await?;
            if found.is_none() && channels.readable().await?.len() >= MAX_CHANNELS {
                return Err(StateRefusal::TooManyChannels { limit: MAX_CHANNELS }.into());
            }
            let now = self.store.now().await?;
            let created = found.as_ref().map_or(now, |found| found.item.created);
            let kept = Channel { created, updated: now, ..channel.clone() };
            channels.put(name, &kept, found.map(|found| found.version), Durability::Durable).await?;
            Ok(kept)
        };
        self.redo(Contention::Channel { name: name.to_owned() }, attempt).await
    }

    /// By name.
    pub async fn channels(&self) -> Result<Vec<(String, Channel)>, Error> {
        let channels = self.outbox().channels().readable().await?;
        Ok(channels.into_iter().map(|(name, stored)| (name, stored.item)).collect())
    }

    pub async fn channel(&self, name: &str) -> Result<StoredRecord<Channel>, Error> {
        match self.outbox().channels().get(name).await? {
            Some(channel) => Ok(channel),
            None => Err(self.unknown_channel(name).await?),
        }
    }

    async fn unknown_channel(&self, name: &str) -> Result<Error, Error> {
        let known = self.channels().await?;
        let closest = closest(name, known.iter().map(|(name, _)| name.as_str())).map(str::to_owned);
        Ok(NotFound::Channel { given: name.to_owned(), closest }.into())
    }

    /// Removes a channel without the messages that wait for it; refused while there are any.
    pub async fn close_channel(&self, name: &str) -> Result<(), Error> {
        let channel = self.channel(name).await?;
        let status = self.outbox().status(name, usize::MAX).await?;
        let left = status.waiting + status.dead;
        if left > 0 {
            return Err(StateRefusal::ChannelHolds { name: name.to_owned(), left }.into());
        }
        self.outbox().channels().remove(name, channel.version).await?;
        Ok(())
    }

    /// Removes a channel with all messages that wait for it; returns their number. A process
    /// that has the channel cached may write more; the next round of the janitor removes those.
    pub async fn drop_channel(&self, name: &str) -> Result<usize, Error> {
        let channel = self.channel(name).await?;
        self.outbox().channels().remove(name, channel.version).await?;
        Ok(self.outbox().drop_all(name).await?)
    }

    /// Lets the messages of a channel that were given up be delivered after all; returns their number.
    pub async fn revive_channel(&self, name: &str) -> Result<usize, Error> {
        self.channel(name).await?;
        Ok(self.outbox().revive(name).await?)
    }

    /// `EventDispatcher.poll_completed` of document 002: up to `max` messages of a feed, the oldest first. They come
    /// again until they are acknowledged.
    pub async fn feed(&self, name: &str, max: usize) -> Result<Vec<Envelope>, Error> {
        let channel = self.channel(name).await?.item;
        match channel.to {
            ChannelTarget::Feed => {}
            ChannelTarget::Url(_) => return Err(StateRefusal::NotAFeed { name: name.to_owned() }.into()),
        }
        let mut due = self.due_messages(name, channel, self.store.now().await?);
        due.limit = max.max(LEAST_PAGE);
        let mut letters = Vec::new();
        while letters.len() < max
            && let Some(row) = due.next().await?
        {
            letters.extend(due.open(row).await?.map(|(_, letter)| letter));
        }
        Ok(letters)
    }

    /// The channels that messages wait for, each with the time when the next one is due.
    pub async fn waiting_channels(&self) -> Result<Vec<(String, Millis)>, Error> {
        Ok(self.outbox().waiting().await?)
    }

    /// The messages of a channel that were due by this time, for the agent that delivers them.
    pub fn due_messages(&self, name: &str, channel: Channel, by: Millis) -> DueMessages {
        let (rows, pages) = (Vec::new().into_iter(), Pages::first());
        DueMessages { outbox: self.outbox(), name: name.to_owned(), channel, by, limit: PAGE, rows, pages }
    }

    /// The reader of a feed has these messages; says how many were still there.
    pub async fn acknowledge(&self, name: &str, ids: &[String]) -> Result<usize, Error> {
        self.channel(name).await?;
        Ok(self.outbox().acknowledge(name, ids).await?)
    }

    /// `EventDispatcher.dispatch` of document 002: sends an event that waits for its outcome to a channel, with its
    /// payload. The receiver returns the outcome by [`Service::continue_step`] or [`Service::fail_step`].
    pub async fn dispatch(&self, name: &str, run: &RunId, step: &StepId) -> Result<(), Error> {
        let opened = self.channel(name).await?.item.created;
        if self.outbox().dispatch(name, opened, run, step).await? {
            return Ok(());
        }
        match self.store.task(run, step).await? {
            Some(task) => Err(StateRefusal::Task(afl_store::queue::Refusal::NotOpen {
                path: task.item.path.clone(),
                state: task.item.state,
                verb: "dispatched",
            })
            .into()),
            None => Err(Error::no_step(run, step)),
        }
    }

    /// Writes one notification for each channel with dead letters, and for each whose messages wait too long. Messages
    /// of removed channels are deleted.
    pub(crate) async fn tell_dead(&self, now: Millis) -> Result<(), Error> {
        for (name, since) in self.outbox().dead().await? {
            if self.outbox().sweep(&name, now).await? {
                continue;
            }
            let id = format!("outbox-{name}-{}", since.0);
            self.tell_of_channel(id, &name, now, Notification::of_dead).await?;
        }
        for (name, since) in self.outbox().waiting().await? {
            if self.outbox().sweep(&name, now).await? {
                continue;
            }
            if now.since(since) >= GIVEN_UP_AFTER && self.is_to_be_heard(&name).await? {
                // The oldest message of a slow reader changes all the time, so its day identifies the notification.
                let id = format!("outbox-late-{name}-{}", since.0 / GIVEN_UP_AFTER.0);
                self.tell_of_channel(id, &name, now, Notification::of_late).await?;
            }
        }
        Ok(())
    }

    /// Not so when a person has silenced it: then messages are meant to wait.
    async fn is_to_be_heard(&self, name: &str) -> Result<bool, Error> {
        match self.outbox().channels().get(name).await {
            Ok(channel) => Ok(channel.is_some_and(|channel| channel.item.enabled)),
            Err(error) if error.is_damage() => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    async fn tell_of_channel(
        &self,
        id: String,
        name: &str,
        now: Millis,
        notification: fn(&str, &str, Millis) -> Notification,
    ) -> Result<(), Error> {
        if self.collection::<Notification>().get(&id).await?.is_none() {
            // There is no error before the first delivery.
            let error = self.outbox().status(name, 1).await?.last_error.unwrap_or_default();
            self.tell_once(vec![Notice { id, notification: notification(name, &error, now) }]).await?;
        }
        Ok(())
    }
}

//! Counts and ages of the messages of a channel, without delivering them.

use afl_engine::id::RunId;
use afl_engine::time::Millis;
use serde::Serialize;

use super::message::MessageData;
use super::rows::{Outbox, PAGE, decode};
use crate::paging::{Pages, last_if_full};
use crate::record::Record;
use crate::store::{Error, bucket};

/// How it stands with a channel. Counts stop at a limit that the asker gives.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ChannelStatus {
    pub waiting: usize,
    pub dead: usize,
    /// When the oldest of them was written, by the first ones of each kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Millis>,
    /// Of a message that is tried again, or else of one that was given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl Outbox {
    pub async fn status(&self, channel: &str, counted: usize) -> Result<ChannelStatus, Error> {
        let (waiting, dead) = (bucket::outbox(channel), bucket::outbox_dead(channel));
        let mut status = ChannelStatus {
            waiting: self.0.count(&waiting, counted).await?,
            dead: self.0.count(&dead, counted).await?,
            ..ChannelStatus::default()
        };
        for bucket in [dead, waiting] {
            for row in self.page(channel, bucket, None).await?.items {
                let at = row.message.at;
                status.oldest = Some(status.oldest.map_or(at, |oldest| oldest.min(at)));
                status.last_error = row.message.delivery.last_error.or(status.last_error);
            }
        }
        Ok(status)
    }

    pub async fn names(&self) -> Result<Vec<String>, Error> {
        Ok(self.channels().readable().await?.into_iter().map(|(name, _)| name).collect())
    }

    /// Whether a message that waits for one of these channels, or was given up, cannot be read without the run, or may
    /// be one.
    pub async fn refers_to(&self, run: &RunId, channels: &[String]) -> Result<bool, Error> {
        for channel in channels {
            let mut pages = Pages::first();
            while !pages.is_over() {
                let page = self.of(channel, &format!("{run}/"), pages.after().cloned()).await?;
                let refers = |record: &Record| match decode(channel, record) {
                    Ok(row) => row.message.data.as_ref().is_some_and(MessageData::refers_to_run),
                    Err(_) => true,
                };
                if page.iter().any(refers) {
                    return Ok(true);
                }
                pages.follow(last_if_full(&page, PAGE).map(|last| last.key.id.clone()));
            }
        }
        Ok(false)
    }
}

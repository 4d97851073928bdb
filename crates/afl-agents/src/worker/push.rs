//! Pushes the messages of one channel to its receiver, in order while all goes well.

use std::sync::Arc;
use std::time::Duration;

use afl_runtime::lock::Hold;
use afl_runtime::outbox::{Channel, DeliveryFailure, Outbox, OutboxRow};
use afl_runtime::{Error, Millis, Service};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::host::Hosts;
use crate::http::DeliveryError;

const LOCKS: &str = "afl.outbox/";
/// Longer than a delivery can take.
const HELD_FOR: Duration = Duration::from_mins(1);
/// A receiver that does not answer for so long is away.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const PAGE: usize = 50;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PushResult {
    /// All that was due.
    All,
    /// This release cannot read the messages that are due, or another agent was faster.
    Nothing,
    /// Another agent does it.
    Elsewhere,
    /// The receiver takes nothing now.
    Away,
    /// This agent cannot; another one may.
    NotHere,
}

pub(super) struct ChannelPush {
    pub(super) service: Service,
    pub(super) hosts: Arc<Hosts>,
    pub(super) owner: String,
    pub(super) name: String,
    pub(super) channel: Channel,
    pub(super) url: String,
    /// Later messages are for the next push.
    pub(super) due: Millis,
    pub(super) stopped: watch::Receiver<bool>,
}

impl ChannelPush {
    pub(super) async fn run(self) -> Result<PushResult, Error> {
        let (locks, key) = (self.service.locks(), format!("{LOCKS}{}", self.name));
        let duration = Millis::from(HELD_FOR);
        let Some(hold) = locks.acquire(&key, &self.owner, duration, Value::Null).await? else {
            return Ok(PushResult::Elsewhere);
        };
        let pushed = self.push(&hold, duration).await;
        // One that is not given back runs out.
        drop(locks.release(&hold).await);
        pushed
    }

    async fn push(&self, hold: &Hold, duration: Millis) -> Result<PushResult, Error> {
        let outbox = self.service.outbox();
        let mut since = Instant::now();
        let mut after = None;
        let mut pushed = PushResult::Nothing;
        loop {
            let page = outbox.due(&self.name, self.due, after.take(), PAGE).await?;
            for row in page.items {
                pushed = PushResult::All;
                // A posted message is waited for, so that no agent posts it again; no other is begun.
                if *self.stopped.borrow() {
                    return Ok(pushed);
                }
                if !row.is_for(&self.channel) {
                    outbox.discard(row).await?;
                    continue;
                }
                if since.elapsed() > HELD_FOR / 2 {
                    if !self.service.locks().extend(hold, duration).await? {
                        return Ok(PushResult::Elsewhere);
                    }
                    since = Instant::now();
                }
                match self.send(&outbox, &row).await? {
                    Ok(()) => outbox.discard(row).await?,
                    Err(DeliveryError::NotHere(error)) => {
                        outbox.noted(row, &error).await?;
                        return Ok(PushResult::NotHere);
                    }
                    Err(DeliveryError::Away(error)) => {
                        outbox.failed(row, &error, DeliveryFailure::Unreachable).await?;
                        return Ok(PushResult::Away);
                    }
                    Err(DeliveryError::Refused(error)) => {
                        outbox.failed(row, &error, DeliveryFailure::Transient).await?;
                    }
                    Err(DeliveryError::Gone(error)) => {
                        outbox.failed(row, &error, DeliveryFailure::Permanent).await?;
                    }
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(pushed),
            }
        }
    }

    async fn send(&self, outbox: &Outbox, row: &OutboxRow) -> Result<Result<(), DeliveryError>, Error> {
        let letter = match outbox.envelope(row).await {
            Ok(letter) => letter,
            // The content of the message is gone, and does not come back.
            Err(error) if error.is_damage() => return Ok(Err(DeliveryError::Gone(error.to_string()))),
            Err(error) => return Err(error.into()),
        };
        let body = serde_json::to_vec(&letter).expect("a letter has a JSON form");
        let secret = self.channel.secret.as_deref();
        let delivery = self.hosts.http().deliver(&self.url, secret, &letter.id, body);
        Ok(timeout(ANSWER_TIMEOUT, delivery).await.unwrap_or_else(|_| {
            let seconds = ANSWER_TIMEOUT.as_secs();
            Err(DeliveryError::Away(format!("no answer within {seconds} s")))
        }))
    }
}

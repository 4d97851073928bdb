//! Pushes the messages of one channel to its receiver, in order while all goes well.

use std::sync::Arc;
use std::time::Duration;

use afl_runtime::lock::Hold;
use afl_runtime::outbox::{Channel, DeliveryFailure, Envelope};
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
        let mut due = self.service.due_messages(&self.name, self.channel.clone(), self.due);
        let mut since = Instant::now();
        let mut pushed = PushResult::Nothing;
        while let Some(row) = due.next().await? {
            pushed = PushResult::All;
            // A posted message is waited for, so that no agent posts it again; no other is begun.
            if *self.stopped.borrow() {
                break;
            }
            if since.elapsed() > HELD_FOR / 2 {
                if !self.service.locks().extend(hold, duration).await? {
                    return Ok(PushResult::Elsewhere);
                }
                since = Instant::now();
            }
            let Some((row, letter)) = due.open(row).await? else { continue };
            match self.send(&letter).await {
                Ok(()) => due.delivered(row).await?,
                Err(DeliveryError::NotHere(error)) => {
                    due.noted(row, &error).await?;
                    return Ok(PushResult::NotHere);
                }
                Err(DeliveryError::Away(error)) => {
                    due.failed(row, &error, DeliveryFailure::Unreachable).await?;
                    return Ok(PushResult::Away);
                }
                Err(DeliveryError::Refused(error)) => {
                    due.failed(row, &error, DeliveryFailure::Transient).await?;
                }
                Err(DeliveryError::Gone(error)) => {
                    due.failed(row, &error, DeliveryFailure::Permanent).await?;
                }
            }
        }
        Ok(pushed)
    }

    async fn send(&self, letter: &Envelope) -> Result<(), DeliveryError> {
        let body = serde_json::to_vec(letter).expect("a letter has a JSON form");
        let secret = self.channel.secret.as_deref();
        let delivery = self.hosts.http().deliver(&self.url, secret, &letter.id, body);
        timeout(ANSWER_TIMEOUT, delivery).await.unwrap_or_else(|_| {
            let seconds = ANSWER_TIMEOUT.as_secs();
            Err(DeliveryError::Away(format!("no answer within {seconds} s")))
        })
    }
}

//! Relays the outbox: delivers the messages of each channel to its address.
//!
//! **Problem.** A message must reach its receiver at least once, although agents die and receivers are slow,
//! unreachable or refuse. One bad receiver must not delay the others, and idle channels must cost nothing.
//!
//! **Approach.** Messages wait in one bucket for each channel, by the time at which they are due. A watch wakes the
//! relay when a message is written; without news it looks every 15 seconds. One read of the heads of these buckets
//! finds the channels with due messages, and each gets a push of its own, which delivers them one by one. A named
//! lock lets one agent push a channel. The lock only saves work: an agent that loses it may deliver a message twice,
//! under the same id.
//!
//! An unreachable receiver pauses its channel here, in memory, twice as long each time and for a minute at most. So
//! its messages keep their position, and each agent finds out for itself when the receiver is back.
//!
//! **Rejected.** One loop over all channels lets a slow receiver delay every other one. A delay for each message of
//! an unreachable receiver costs a write for each of them, and they come back out of order.
//!
//! **Measured** by the counts of `tests/worker/outbox.rs`: with 30 messages for an unreachable receiver, 24 looks at the
//! channel send 24 requests, not 720.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::time::Duration;

use afl_runtime::outbox::ChannelTarget;
use afl_runtime::{Backoff, Error, Millis};
use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::push::{ChannelPush, PushResult};
use super::rounds::ended;
use super::{Worker, WorkerError};

/// From one look to the next: at least, and when nothing is due.
const LEAST: Duration = Duration::from_millis(20);
const IDLE: Duration = Duration::from_secs(15);
/// How long to leave a store alone that failed.
const BACKOFF: Duration = Duration::from_millis(500);
/// How long a channel is left alone that another agent pushes.
const ELSEWHERE: Duration = Duration::from_secs(5);
/// Between the attempts to reach a receiver that does not answer.
const AWAY: Backoff = Backoff::doubling(Millis(1_000), Millis(60_000));

/// The channels that are in a push, or pause after one.
#[derive(Default)]
struct ChannelPauses {
    /// By the task that pushes, which has no name to give back when it panics.
    busy: HashMap<task::Id, String>,
    rests: BTreeMap<String, ChannelPause>,
}

struct ChannelPause {
    until: Instant,
    /// How often in a row its receiver could not be reached.
    failures: u32,
}

impl Worker {
    pub(super) async fn keep_relaying(&self, stopped: watch::Receiver<bool>) {
        if self.directory.borrow().hosts.is_none() {
            return;
        }
        let mut came = self.service.watch_outbox();
        let mut rests = ChannelPauses::default();
        let mut pushing = JoinSet::new();
        let mut due = Instant::now();
        let mut until = pin!(ended(stopped.clone()));
        loop {
            tokio::select! {
                () = &mut until => break,
                () = came.changed() => due = due.min(Instant::now() + LEAST),
                Some(joined) = pushing.join_next_with_id() => {
                    rests.ended(joined);
                    due = due.min(Instant::now() + LEAST);
                }
                () = sleep_until(due) => {
                    let next = self.push_due(&rests, stopped.clone()).await;
                    let (wait, pushes) = next.unwrap_or((BACKOFF, Vec::new()));
                    due = Instant::now() + wait;
                    for push in pushes {
                        let name = push.name.clone();
                        let job = pushing.spawn(push.run());
                        rests.busy.insert(job.id(), name);
                    }
                }
            }
        }
        // Each finishes the message it has begun, and lets its lock go.
        while pushing.join_next().await.is_some() {}
    }

    /// Pushes the messages that are due now, once; after `until` it only finishes those it has begun.
    pub async fn relay_once(&self, until: impl Future<Output = ()>) -> Result<(), WorkerError> {
        let mut until = pin!(until);
        if until.as_mut().now_or_never().is_some() {
            return Ok(());
        }
        let (stop, stopped) = watch::channel(false);
        let (_, pushes) = self.push_due(&ChannelPauses::default(), stopped).await?;
        let mut pushing: JoinSet<_> = pushes.into_iter().map(ChannelPush::run).collect();
        let mut relayed = Ok(());
        loop {
            let joined = tokio::select! {
                () = &mut until, if !*stop.borrow() => {
                    stop.send_replace(true);
                    continue;
                }
                joined = pushing.join_next() => joined,
            };
            // One that fails keeps no other from its end.
            relayed = match joined {
                None => return relayed,
                Some(Ok(ended)) => relayed.and(ended.map(drop).map_err(WorkerError::from)),
                Some(Err(broken)) => relayed.and(Err(WorkerError::Panicked(broken.to_string()))),
            };
        }
    }

    /// The channels to push now, and how long until the next look.
    async fn push_due(
        &self,
        rests: &ChannelPauses,
        stopped: watch::Receiver<bool>,
    ) -> Result<(Duration, Vec<ChannelPush>), Error> {
        let hosts = self.directory.borrow().hosts.clone();
        let Some(hosts) = hosts else { return Ok((IDLE, Vec::new())) };
        let waiting = self.service.waiting_channels().await?;
        let now = self.service.now().await?;
        let mut wait = IDLE;
        let mut pushes = Vec::new();
        for (name, at) in waiting {
            let until_due = at.since(now).as_duration().max(rests.left(&name));
            if !until_due.is_zero() {
                wait = wait.min(until_due.max(LEAST));
                continue;
            }
            let channel = match self.service.channel(&name).await {
                Ok(channel) => channel.item,
                // It was removed, or is damaged; the relay continues with the others.
                Err(error) if matches!(error, Error::NotFound(_)) || error.is_damage() => continue,
                Err(error) => return Err(error),
            };
            match &channel.to {
                ChannelTarget::Url(url) if channel.enabled => pushes.push(ChannelPush {
                    service: self.service.clone(),
                    hosts: hosts.clone(),
                    owner: self.server_id.to_string(),
                    name,
                    url: url.clone(),
                    channel,
                    due: now,
                    stopped: stopped.clone(),
                }),
                ChannelTarget::Url(_) | ChannelTarget::Feed => {}
            }
        }
        Ok((wait, pushes))
    }
}

impl ChannelPauses {
    fn left(&self, name: &str) -> Duration {
        if self.busy.values().any(|busy| busy == name) {
            return IDLE;
        }
        let until = self.rests.get(name).map(|rest| rest.until);
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    fn ended(&mut self, joined: Result<(task::Id, Result<PushResult, Error>), JoinError>) {
        let (id, pushed) = match joined {
            Ok((id, pushed)) => (id, Some(pushed)),
            Err(broken) => (broken.id(), None),
        };
        let name = self.busy.remove(&id).expect("every spawned push is noted");
        let before = self.rests.get(&name).map_or(0, |rest| rest.failures);
        let (span, failures) = match pushed {
            Some(Ok(PushResult::All)) => (Duration::ZERO, 0),
            Some(Ok(PushResult::Nothing)) => (AWAY.first.as_duration(), 0),
            Some(Ok(PushResult::Elsewhere)) => (ELSEWHERE, before),
            // A panic may come again.
            Some(Ok(PushResult::Away | PushResult::NotHere)) | None => {
                (AWAY.after(before + 1).as_duration(), before + 1)
            }
            Some(Err(_)) => (BACKOFF, before),
        };
        self.rests.insert(name, ChannelPause { until: Instant::now() + span, failures });
    }
}

//! Relays the outbox: each channel that something is due for is pushed on its own, so that a slow receiver keeps
//! nobody else waiting.

use std::collections::BTreeMap;
use std::time::Duration;

use afl_runtime::Error;
use afl_runtime::outbox::Target;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::push::{Push, Pushed};
use super::rounds::ended;
use super::{Worker, WorkerError};

/// From one look to the next: at least, and when nothing is due.
const LEAST: Duration = Duration::from_millis(20);
const IDLE: Duration = Duration::from_secs(15);
/// How long to leave a store alone that failed.
const BACKOFF: Duration = Duration::from_millis(500);
/// How long a channel is left alone that another agent pushes.
const ELSEWHERE: Duration = Duration::from_secs(5);
/// How long a receiver is left alone that is away; twice as long each time.
const AWAY_FIRST: Duration = Duration::from_secs(1);
const AWAY_MOST: Duration = Duration::from_mins(1);

/// What is known of the channels that are, or were, pushed.
#[derive(Default)]
struct Rests(BTreeMap<String, Rest>);

struct Rest {
    until: Instant,
    /// How long it was left alone the last time.
    span: Duration,
    is_busy: bool,
}

impl Worker {
    pub(super) async fn keep_relaying(&self, stopped: watch::Receiver<bool>) {
        if self.directory.borrow().hosts.is_none() {
            return;
        }
        let mut came = self.service.watch_outbox();
        let mut rests = Rests::default();
        let mut pushing = JoinSet::new();
        let mut due = Instant::now();
        let mut until = std::pin::pin!(ended(stopped.clone()));
        loop {
            tokio::select! {
                () = &mut until => break,
                () = came.changed() => due = due.min(Instant::now() + LEAST),
                Some(pushed) = pushing.join_next() => {
                    if let Ok((name, pushed)) = pushed {
                        rests.pushed(name, &pushed);
                    }
                    due = due.min(Instant::now() + LEAST);
                }
                () = sleep_until(due) => {
                    let next = self.push_due(&rests, stopped.clone()).await;
                    let (wait, pushes) = next.unwrap_or((BACKOFF, Vec::new()));
                    due = Instant::now() + wait;
                    for push in pushes {
                        let name = push.name.clone();
                        rests.began(&name);
                        pushing.spawn(async move { (name, push.run().await) });
                    }
                }
            }
        }
        // Each finishes the message it has begun, and lets its lock go.
        while pushing.join_next().await.is_some() {}
    }

    /// Pushes all that is due now, once.
    pub async fn relay_once(&self) -> Result<(), WorkerError> {
        if self.directory.borrow().hosts.is_none() {
            return Ok(());
        }
        let (_stop, never) = watch::channel(false);
        let (_, pushes) = self.push_due(&Rests::default(), never).await?;
        for push in pushes {
            push.run().await?;
        }
        Ok(())
    }

    /// What is to be pushed now, and how long until the next look.
    async fn push_due(
        &self,
        rests: &Rests,
        stopped: watch::Receiver<bool>,
    ) -> Result<(Duration, Vec<Push>), Error> {
        let hosts = self.directory.borrow().hosts.clone();
        let Some(hosts) = hosts else { return Ok((IDLE, Vec::new())) };
        let waiting = self.service.outbox().waiting().await?;
        let now = self.service.store().now().await?;
        let mut wait = IDLE;
        let mut pushes = Vec::new();
        for (name, at) in waiting {
            let until_due = u64::try_from(at.since(now).0).unwrap_or(0);
            let until_due = Duration::from_millis(until_due).max(rests.left(&name));
            if !until_due.is_zero() {
                wait = wait.min(until_due.max(LEAST));
                continue;
            }
            let channel = match self.service.outbox().channels().get(&name).await {
                Ok(Some(channel)) => channel.item,
                // It was removed.
                Ok(None) => continue,
                // The others go on without it.
                Err(error) if error.is_damage() => continue,
                Err(error) => return Err(error.into()),
            };
            match &channel.to {
                Target::Url(url) if channel.enabled => pushes.push(Push {
                    service: self.service.clone(),
                    hosts: hosts.clone(),
                    owner: self.server_id.to_string(),
                    name,
                    url: url.clone(),
                    channel,
                    stopped: stopped.clone(),
                }),
                Target::Url(_) | Target::Feed => {}
            }
        }
        Ok((wait, pushes))
    }
}

impl Rests {
    fn left(&self, name: &str) -> Duration {
        match self.0.get(name) {
            Some(Rest { is_busy: true, .. }) => IDLE,
            Some(Rest { until, .. }) => until.saturating_duration_since(Instant::now()),
            None => Duration::ZERO,
        }
    }

    fn began(&mut self, name: &str) {
        let fresh = Rest { until: Instant::now(), span: Duration::ZERO, is_busy: true };
        self.0.entry(name.to_owned()).or_insert(fresh).is_busy = true;
    }

    fn pushed(&mut self, name: String, pushed: &Result<Pushed, Error>) {
        let before = self.0.get(&name).map_or(Duration::ZERO, |rest| rest.span);
        let span = match pushed {
            Ok(Pushed::All) => Duration::ZERO,
            Ok(Pushed::Nothing) => AWAY_FIRST,
            Ok(Pushed::Elsewhere) => ELSEWHERE,
            Ok(Pushed::Away) => (2 * before).clamp(AWAY_FIRST, AWAY_MOST),
            Err(_) => BACKOFF,
        };
        let until = Instant::now() + span;
        self.0.insert(name, Rest { until, span, is_busy: false });
    }
}

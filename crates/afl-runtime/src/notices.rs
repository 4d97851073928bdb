//! What the janitor tells people of: agents that went offline, tasks that nobody takes, messages that were given up. Each
//! is told once.

use std::cmp::Reverse;

use afl_engine::time::Millis;
use afl_store::backend::Durability;
use afl_store::notification::{KEPT_FOR, Notification, STUCK_AFTER};
use afl_store::server::{OFFLINE_AFTER, Server, ServerState};
use afl_store::store::bucket;

use crate::error::Error;
use crate::service::Service;

/// Of one queue, the most urgent ones: for the others the same would be told.
const STUCK_TOLD: usize = 20;

/// A notification with the name it is stored under.
#[derive(Clone, PartialEq, Debug)]
pub struct Notice {
    pub id: String,
    pub notification: Notification,
}

/// Which notifications to mark.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mark {
    All,
    One(String),
}

impl Service {
    /// Those that nobody has read, the newest first.
    pub async fn unread(&self) -> Result<Vec<Notice>, Error> {
        let mut unread = self.collection::<Notification>().all().await?;
        unread.retain(|(_, stored)| !stored.item.read);
        unread.sort_by_key(|(_, stored)| Reverse(stored.item.created));
        Ok(unread.into_iter().map(|(id, stored)| Notice { id, notification: stored.item }).collect())
    }

    /// The newest first.
    pub async fn notifications(&self, limit: usize) -> Result<Vec<Notice>, Error> {
        let newest = self.collection::<Notification>().newest(limit).await?;
        Ok(newest.into_iter().map(|(id, stored)| Notice { id, notification: stored.item }).collect())
    }

    /// Marks notifications as read; says how many were not.
    pub async fn mark_read(&self, which: &Mark) -> Result<usize, Error> {
        let notifications = self.collection::<Notification>();
        let found = match which {
            Mark::All => notifications.all().await?,
            Mark::One(id) => match notifications.get(id).await? {
                Some(stored) => vec![(id.clone(), stored)],
                None => return Err(Error::UnknownNotification { given: id.clone() }),
            },
        };
        let mut marked = 0;
        for (id, stored) in found.into_iter().filter(|(_, stored)| !stored.item.read) {
            let read = Notification { read: true, ..stored.item };
            match notifications.put(&id, &read, Some(stored.version), Durability::Durable).await {
                Ok(_) => marked += 1,
                // Somebody else marked it, or it is too old.
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(marked)
    }

    /// A slow round of the janitor. It is safe for many to do it at once.
    pub async fn watch_over(&self, now: Millis) -> Result<(), Error> {
        self.tell_offline(now).await?;
        self.tell_stuck(now).await?;
        self.tell_dead(now).await?;
        self.forget_old(now).await
    }

    async fn tell_offline(&self, now: Millis) -> Result<(), Error> {
        let silent = Millis(now.0.saturating_sub(OFFLINE_AFTER.0));
        for (_, server) in self.collection::<Server>().up_to(silent.0).await? {
            match server.item.state {
                ServerState::Startup | ServerState::Running => {
                    let id = format!("offline-{}-{}", server.item.uuid, server.item.ping_time.0);
                    self.tell_once(&id, || Notification::of_offline(&server.item, now)).await?;
                }
                // It said so itself.
                ServerState::Shutdown | ServerState::Error => {}
            }
        }
        Ok(())
    }

    async fn tell_stuck(&self, now: Millis) -> Result<(), Error> {
        for bucket in self.store.buckets(bucket::TASKS).await? {
            for task in self.store.tasks_in(&bucket, STUCK_TOLD).await? {
                let task = task.item;
                if now.since(task.updated) >= STUCK_AFTER {
                    let id = format!("stuck-{}-{}", task.workflow_id, task.step_id);
                    self.tell_once(&id, || Notification::of_stuck(&task, now)).await?;
                }
            }
        }
        Ok(())
    }

    pub(crate) async fn tell_once(&self, id: &str, tell: impl FnOnce() -> Notification) -> Result<(), Error> {
        let notifications = self.collection::<Notification>();
        if notifications.get(id).await?.is_some() {
            return Ok(());
        }
        match notifications.put(id, &tell(), None, Durability::Relaxed).await {
            Err(error) if !error.is_conflict() => Err(error.into()),
            // Another janitor was faster.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn forget_old(&self, now: Millis) -> Result<(), Error> {
        let notifications = self.collection::<Notification>();
        let before = now.0.saturating_sub(KEPT_FOR.0);
        for (id, stored) in notifications.up_to(before).await? {
            match notifications.remove(&id, stored.version).await {
                Err(error) if !error.is_conflict() => return Err(error.into()),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }
}

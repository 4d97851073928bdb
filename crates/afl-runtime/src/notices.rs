//! Notifications of the janitor: agents that went offline, tasks that no agent takes, dead letters. Each is written
//! once.

use std::cmp::Reverse;

use afl_engine::time::Millis;
use afl_store::backend::Durability;
use afl_store::notification::{KEPT_FOR, Notification, NotificationType, STUCK_AFTER};
use afl_store::paging::Pages;
use afl_store::server::{OFFLINE_AFTER, Server, ServerState};
use afl_store::store::{Error as Unreadable, bucket};
use serde::Serialize;

use crate::error::{Error, NotFound};
use crate::service::Service;

/// Of one queue, the most urgent tasks: the notifications of the others would say the same.
const STUCK_TOLD: usize = 20;

/// A notification with the name it is stored under.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Notice {
    pub id: String,
    #[serde(flatten)]
    pub notification: Notification,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mark {
    All,
    One(String),
}

impl Service {
    /// Unread notifications, the newest first.
    pub async fn unread(&self) -> Result<Vec<Notice>, Error> {
        let mut unread = self.collection::<Notification>().readable().await?;
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
            Mark::All => notifications.readable().await?,
            Mark::One(id) => match notifications.get(id).await? {
                Some(stored) => vec![(id.clone(), stored)],
                None => return Err(NotFound::Notification { given: id.clone() }.into()),
            },
        };
        let mut marked = 0;
        for (id, stored) in found.into_iter().filter(|(_, stored)| !stored.item.read) {
            let read = Notification { read: true, ..stored.item };
            match notifications.put(&id, &read, Some(stored.version), Durability::Durable).await {
                Ok(_) => marked += 1,
                // Another caller marked it, or it is gone because of its age.
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
        let servers = self.collection::<Server>();
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = servers.up_to(silent.0, pages.after()).await?;
            let is_silent = |server: &Server| match server.state {
                ServerState::Startup | ServerState::Running => true,
                // It said so itself.
                ServerState::Shutdown | ServerState::Error => false,
            };
            let gone = page.items.iter().map(|(_, stored)| &stored.item).filter(|server| is_silent(server));
            let offline = gone.map(|server| Notice {
                id: format!("offline-{}-{}", server.uuid, server.ping_time.0),
                notification: Notification::of_offline(server, now),
            });
            let type_of_damage = NotificationType::AgentOffline;
            let damaged = page.unreadable.iter().filter_map(|error| damage(error, type_of_damage, now));
            self.tell_once(offline.chain(damaged).collect()).await?;
            pages.follow(page.next);
        }
        Ok(())
    }

    /// Tasks that no agent takes, and tasks that no agent can take because their record is damaged.
    async fn tell_stuck(&self, now: Millis) -> Result<(), Error> {
        for bucket in self.store.buckets(bucket::TASKS).await? {
            let mut pages = Pages::first();
            while !pages.is_over() {
                let page = self.store.tasks_in(&bucket, pages.after(), STUCK_TOLD).await?;
                let tasks = page.items.iter().map(|stored| &stored.item);
                let stuck = tasks.filter(|task| now.since(task.updated) >= STUCK_AFTER).map(|task| Notice {
                    id: format!("stuck-{}-{}", task.workflow_id, task.step_id),
                    notification: Notification::of_stuck(task, now),
                });
                let type_of_damage = NotificationType::TaskError;
                let damaged = page.unreadable.iter().filter_map(|error| damage(error, type_of_damage, now));
                self.tell_once(stuck.chain(damaged).collect()).await?;
                // Those that cannot be read hide none behind them.
                pages.follow(page.next.filter(|_| page.items.is_empty()));
            }
        }
        Ok(())
    }

    /// Writes the notifications that are not stored yet; one read finds those that are.
    pub(crate) async fn tell_once(&self, notices: Vec<Notice>) -> Result<(), Error> {
        if notices.is_empty() {
            return Ok(());
        }
        let notifications = self.collection::<Notification>();
        let ids: Vec<String> = notices.iter().map(|notice| notice.id.clone()).collect();
        let known = notifications.known(&ids).await?;
        for Notice { id, notification } in notices.iter().filter(|notice| !known.contains(&notice.id)) {
            match notifications.put(id, notification, None, Durability::Relaxed).await {
                Err(error) if !error.is_conflict() => return Err(error.into()),
                // Another janitor was faster.
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    async fn forget_old(&self, now: Millis) -> Result<(), Error> {
        let notifications = self.collection::<Notification>();
        let before = now.0.saturating_sub(KEPT_FOR.0);
        let mut pages = Pages::first();
        while !pages.is_over() {
            // One that cannot be read stays: it is in nobody's way.
            let page = notifications.up_to(before, pages.after()).await?;
            match notifications.forget_all(&page.items).await {
                Err(error) if !error.is_conflict() => return Err(error.into()),
                // A reader has just marked one of them; the next round removes them.
                Ok(()) | Err(_) => {}
            }
            pages.follow(page.next);
        }
        Ok(())
    }

    /// Those that were silent since before this time.
    pub(crate) async fn forget_servers(&self, before: Millis) -> Result<(), Error> {
        let servers = self.collection::<Server>();
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = servers.up_to(before.0, pages.after()).await?;
            for (name, server) in page.items {
                match servers.remove(&name, server.version).await {
                    // It has come back.
                    Err(error) if error.is_conflict() => {}
                    removed => removed?,
                }
            }
            pages.follow(page.next);
        }
        Ok(())
    }
}

/// The notification about a damaged record; none about a store that is unreachable.
fn damage(error: &Unreadable, told_as: NotificationType, now: Millis) -> Option<Notice> {
    let (scope, record, run) = match error {
        Unreadable::Unreadable { run, record, .. } => (run.to_string(), record, Some(run.clone())),
        Unreadable::Shared { key, .. } => (key.scope.to_string(), &key.id, None),
        Unreadable::Backend(_) => return None,
    };
    let notification = Notification { run, ..Notification::of_damage(told_as, &error.to_string(), now) };
    Some(Notice { id: format!("damaged-{scope}-{record}"), notification })
}

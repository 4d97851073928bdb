//! Named locks (document 000 §7.4): one owner at a time, until it lets go or its time is over.

use afl_engine::time::Millis;
use afl_engine::version::Version;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::backend::{ClockStatus, Durability};
use crate::collection::{Collection, CollectionItem};
use crate::conflict::unless_overtaken;
use crate::paging::Pages;
use crate::store::{Error, Store, StoredRecord};

/// A lock with its current or last owner.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Lock {
    pub owner: String,
    /// One more each time the lock is acquired, for systems outside that fence by number. When a crash of the database takes
    /// an acquisition back, the next owner gets its number.
    pub token: u64,
    pub acquired: Millis,
    /// When its owner acquired or extended it last.
    #[serde(default)]
    pub renewed: Millis,
    pub expires: Millis,
    /// The owner's own data.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub meta: Value,
}

impl CollectionItem for Lock {
    const COLLECTION: &'static str = "locks";

    fn rank(&self) -> i64 {
        self.expires.0
    }
}

impl Lock {
    fn is_held(&self, clock: ClockStatus) -> bool {
        self.expires > clock.judging(self.renewed)
    }
}

/// The proof that a lock is held.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hold {
    pub key: String,
    pub owner: String,
    pub token: u64,
}

/// All locks of a tenant, by the store's clock.
#[derive(Clone, Debug)]
pub struct Locks(Collection<Lock>);

impl Locks {
    pub fn new(store: Store) -> Self {
        Self(Collection::new(store))
    }

    /// Acquires the lock unless another owner holds it. Its own owner gets it again under a new token.
    pub async fn acquire(
        &self,
        key: &str,
        owner: &str,
        duration: Millis,
        meta: Value,
    ) -> Result<Option<Hold>, Error> {
        let found = self.0.get(key).await?;
        let clock = self.0.clock().await?;
        let now = clock.now;
        if found.as_ref().is_some_and(|lock| lock.item.is_held(clock) && lock.item.owner != owner) {
            return Ok(None);
        }
        let token = found.as_ref().map_or(0, |lock| lock.item.token) + 1;
        let expires = now.plus(duration);
        let lock = Lock { owner: owner.to_owned(), token, acquired: now, renewed: now, expires, meta };
        let written = self.write(key, &lock, found.map(|lock| lock.version)).await?;
        Ok(written.then(|| Hold { key: key.to_owned(), owner: owner.to_owned(), token }))
    }

    /// Whether it is still held, and is for this much longer.
    pub async fn extend(&self, hold: &Hold, duration: Millis) -> Result<bool, Error> {
        let Some(StoredRecord { item, version }) = self.held(hold).await? else { return Ok(false) };
        let now = self.0.now().await?;
        let lock = Lock { renewed: now, expires: now.plus(duration), ..item };
        self.write(&hold.key, &lock, Some(version)).await
    }

    /// Lets go; `false` when it was lost before.
    pub async fn release(&self, hold: &Hold) -> Result<bool, Error> {
        let Some(StoredRecord { item, version }) = self.held(hold).await? else { return Ok(false) };
        // The record stays, so that tokens go on.
        let lock = Lock { expires: Millis(0), ..item };
        self.write(&hold.key, &lock, Some(version)).await
    }

    /// Releases a lock that will not be acquired again; its tokens begin anew.
    pub async fn forget(&self, hold: &Hold) -> Result<bool, Error> {
        let Some(StoredRecord { version, .. }) = self.held(hold).await? else { return Ok(false) };
        unless_overtaken(self.0.forget(&hold.key, version).await)
    }

    /// Forgets locks whose key begins so and whose time was over before this one. Says how many.
    pub async fn sweep(&self, prefix: &str, before: Millis) -> Result<usize, Error> {
        let mut swept = 0;
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.0.up_to(before.0, pages.after()).await?;
            for (key, lock) in page.items.iter().filter(|(key, _)| key.starts_with(prefix)) {
                // Another owner may have acquired it just now, or another janitor swept it.
                swept += usize::from(unless_overtaken(self.0.forget(key, lock.version).await)?);
            }
            pages.follow(page.next);
        }
        Ok(swept)
    }

    pub async fn get(&self, key: &str) -> Result<Option<Lock>, Error> {
        let clock = self.0.clock().await?;
        Ok(self.0.get(key).await?.map(|lock| lock.item).filter(|lock| lock.is_held(clock)))
    }

    async fn held(&self, hold: &Hold) -> Result<Option<StoredRecord<Lock>>, Error> {
        let found = self.0.get(&hold.key).await?;
        let clock = self.0.clock().await?;
        Ok(found.filter(|lock| {
            lock.item.token == hold.token && lock.item.owner == hold.owner && lock.item.is_held(clock)
        }))
    }

    /// `false` when another owner was faster and has the lock, or had it.
    async fn write(&self, key: &str, lock: &Lock, version: Option<Version>) -> Result<bool, Error> {
        unless_overtaken(self.0.put(key, lock, version, Durability::Relaxed).await)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::{Clock, SimClock};
    use crate::memory::Memory;
    use crate::record::Tenant;

    const MINUTE: Millis = Millis(60_000);

    fn locks() -> (Locks, SimClock) {
        let clock = SimClock::new(Millis(1_000));
        let memory = Arc::new(Memory::new(Clock::Simulated(clock.clone())));
        (Locks::new(Store::new(memory, Tenant::new(Tenant::LOCAL).unwrap())), clock)
    }

    async fn acquire(locks: &Locks, owner: &str) -> Option<Hold> {
        locks.acquire("janitor", owner, MINUTE, Value::Null).await.unwrap()
    }

    // covers: SDK-7.4-d
    #[tokio::test]
    async fn a_lock_has_one_owner_until_it_lets_go_or_its_time_is_over() {
        let (locks, clock) = locks();
        let first = acquire(&locks, "a").await.expect("it is free");
        assert_eq!(acquire(&locks, "b").await, None);
        clock.advance(Millis(50_000));
        assert!(locks.extend(&first, MINUTE).await.unwrap());
        clock.advance(Millis(50_000));
        assert_eq!(acquire(&locks, "b").await, None, "it was extended");
        clock.advance(Millis(10_000));
        let second = acquire(&locks, "b").await.expect("its time is over");
        assert!(second.token > first.token);
        assert!(!locks.extend(&first, MINUTE).await.unwrap(), "it is lost");
        assert!(!locks.release(&first).await.unwrap(), "it is lost");
        assert!(locks.release(&second).await.unwrap());
        let third = acquire(&locks, "a").await.expect("it was let go");
        assert!(third.token > second.token, "tokens go on after a release");
    }

    #[tokio::test]
    async fn a_lock_that_is_forgotten_leaves_nothing_behind() {
        let (locks, clock) = locks();
        let first = locks.acquire("task/1", "a", MINUTE, Value::Null).await.unwrap().expect("it is free");
        assert!(locks.forget(&first).await.unwrap());
        assert!(!locks.forget(&first).await.unwrap(), "it is lost");
        for key in ["task/2", "task/3", "janitor"] {
            assert!(locks.acquire(key, "dead", MINUTE, Value::Null).await.unwrap().is_some());
        }
        clock.advance(Millis(90_000));
        assert_eq!(locks.sweep("task/", Millis(60_000)).await.unwrap(), 0);
        assert_eq!(locks.sweep("task/", Millis(61_000)).await.unwrap(), 2);
        let left: Vec<String> = locks.0.all().await.unwrap().into_iter().map(|(key, _)| key).collect();
        assert_eq!(left, ["janitor"]);
    }

    #[tokio::test]
    async fn of_many_that_want_a_lock_at_once_one_gets_it() {
        let (locks, _) = locks();
        let tries = (0..20).map(|owner| {
            let locks = locks.clone();
            tokio::spawn(async move { acquire(&locks, &owner.to_string()).await })
        });
        let mut held = 0;
        for attempt in tries.collect::<Vec<_>>() {
            held += usize::from(attempt.await.unwrap().is_some());
        }
        assert_eq!(held, 1);
    }
}

//! Named things beside the runs, such as servers, handlers and locks: each sort in a scope of its own.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use afl_engine::time::Millis;
use afl_engine::version::Version;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::backend::{BucketCursor, ClockStatus, Durability, Expect, Ranks, StoreError, Write};
use crate::conflict::CONFLICT_TRIES;
use crate::paging::{Pages, last_if_full};
use crate::record::{Key, QueuePosition, Record};
use crate::store::{BucketPage, Error, Store, StoredRecord, opened_json, sealed_json};
use crate::watch::Watch;

/// An item of a collection.
pub trait CollectionItem: Serialize + DeserializeOwned {
    /// Its name, and that of the bucket that holds it in order of rank.
    const COLLECTION: &'static str;

    fn rank(&self) -> i64;
}

/// All items of one sort. Clones are the same collection.
#[derive(Debug)]
pub struct Collection<T> {
    store: Store,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Collection<T> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), of: PhantomData }
    }
}

/// Written with each removal, so that watches wake. No name begins so.
const REMOVED: &str = "@removed";
const PAGE: usize = 500;

impl<T: CollectionItem> Collection<T> {
    pub fn new(store: Store) -> Self {
        Self { store, of: PhantomData }
    }

    pub async fn get(&self, name: &str) -> Result<Option<StoredRecord<T>>, Error> {
        self.store.record(&self.key(name)).await?.as_ref().map(decode).transpose()
    }

    /// All of them by name.
    pub async fn all(&self) -> Result<Vec<(String, StoredRecord<T>)>, Error> {
        let records = self.records().await?;
        records.iter().map(named).collect()
    }

    /// The same without unreadable items, which the doctor reports.
    pub async fn readable(&self) -> Result<Vec<(String, StoredRecord<T>)>, Error> {
        Ok(self.records().await?.iter().filter_map(|record| named(record).ok()).collect())
    }

    async fn records(&self) -> Result<Vec<Record>, Error> {
        let mut records = Vec::new();
        let mut pages = Pages::first();
        while !pages.is_over() {
            let page = self.store.scan_scope(Self::scope(), "", pages.after().cloned(), PAGE).await?;
            pages.follow(last_if_full(&page, PAGE).map(|last| last.key.id.clone()));
            records.extend(page.into_iter().filter(|record| record.key.id != REMOVED));
        }
        Ok(records)
    }

    /// Those of the lowest ranks, up to this one.
    pub async fn up_to(
        &self,
        rank: i64,
        after: Option<&BucketCursor>,
    ) -> Result<BucketPage<(String, StoredRecord<T>)>, Error> {
        let mut records = self.store.scan_bucket(T::COLLECTION, Ranks::UpTo(rank), after, PAGE).await?;
        let next = last_if_full(&records, PAGE).map(BucketCursor::of);
        records.retain(|record| record.key.id != REMOVED);
        Ok(BucketPage { next, ..BucketPage::read(&records, PAGE, named) })
    }

    /// Which of these are there, as one look sees it; whether they can be read is not asked.
    pub async fn known(&self, names: &[String]) -> Result<BTreeSet<String>, Error> {
        let keys: Vec<Key> = names.iter().map(|name| self.key(name)).collect();
        let found = self.store.backend().get(&keys).await?;
        Ok(found.into_iter().flatten().map(|record| record.key.id).collect())
    }

    /// The newest first, by their ranks, without those that are damaged.
    pub async fn newest(&self, limit: usize) -> Result<Vec<(String, StoredRecord<T>)>, Error> {
        // One more, should the mark of a removal be among them.
        let page = self.store.scan_newest(T::COLLECTION, None, limit + 1).await?;
        let newest = page.iter().filter(|record| record.key.id != REMOVED).take(limit);
        Ok(newest.filter_map(|record| named(record).ok()).collect())
    }

    /// Writes a new item together with something else.
    pub(crate) fn create(&self, name: &str, item: &T) -> Write {
        self.write(name, item, Expect::Absent)
    }

    fn write(&self, name: &str, item: &T, expect: Expect) -> Write {
        let key = self.key(name);
        let content = sealed_json(&key, item, Some(Self::place(item.rank())));
        Write::put(key, expect, content)
    }

    /// Writes over the version that was read, or for the first time; a conflict means that another writer did.
    /// Returns the new version.
    pub async fn put(
        &self,
        name: &str,
        item: &T,
        version: Option<Version>,
        durability: Durability,
    ) -> Result<Version, Error> {
        let epoch = self.store.epoch();
        let write = self.write(name, item, version.into());
        self.store.write(vec![write], durability).await?;
        Ok(version.map_or(Version::first(epoch), Version::next))
    }

    pub async fn remove(&self, name: &str, version: Version) -> Result<(), Error> {
        let mark = self.key(REMOVED);
        for _ in 0..CONFLICT_TRIES {
            let found = self.store.record(&mark).await?.map(|record| record.version);
            let content = sealed_json(&mark, &(), Some(Self::place(0)));
            let writes =
                vec![Write::delete(self.key(name), version), Write::put(mark.clone(), found, content)];
            match self.store.write(writes, Durability::Durable).await {
                Err(StoreError::Conflict { key }) if key == mark => {}
                other => return Ok(other?),
            }
        }
        Err(StoreError::Conflict { key: mark }.into())
    }

    /// As [`remove`](Self::remove), but watches do not wake, and a power cut may bring it back.
    pub async fn forget(&self, name: &str, version: Version) -> Result<(), Error> {
        Ok(self.store.write(vec![Write::delete(self.key(name), version)], Durability::Relaxed).await?)
    }

    /// The same for many, in one commit. None is forgotten when one of them was written meanwhile.
    pub async fn forget_all(&self, items: &[(String, StoredRecord<T>)]) -> Result<(), Error> {
        if items.is_empty() {
            return Ok(());
        }
        let deletes = items.iter().map(|(name, stored)| Write::delete(self.key(name), stored.version));
        Ok(self.store.write(deletes.collect(), Durability::Relaxed).await?)
    }

    /// Wakes after an item came, changed or went.
    pub fn watch(&self) -> Watch {
        self.store.watch(T::COLLECTION)
    }

    /// The time by the clock of the store that keeps the items.
    pub async fn now(&self) -> Result<Millis, Error> {
        self.store.now().await
    }

    pub async fn clock(&self) -> Result<ClockStatus, Error> {
        self.store.clock().await
    }

    fn scope() -> String {
        format!("@{}", T::COLLECTION)
    }

    fn key(&self, name: &str) -> Key {
        self.store.shared_key(&Self::scope(), name)
    }

    fn place(rank: i64) -> QueuePosition {
        QueuePosition { bucket: T::COLLECTION.to_owned(), rank }
    }
}

fn named<T: CollectionItem>(record: &Record) -> Result<(String, StoredRecord<T>), Error> {
    Ok((record.key.id.clone(), decode(record)?))
}

fn decode<T: CollectionItem>(record: &Record) -> Result<StoredRecord<T>, Error> {
    Ok(StoredRecord { item: opened_json(record)?, version: record.version })
}

#[cfg(test)]
mod tests {
    use crate::conformance::unread;
    use std::sync::Arc;

    use super::*;
    use crate::clock::{Clock, SimClock};
    use crate::memory::Memory;
    use crate::record::Tenant;
    use crate::server::{OFFLINE_AFTER, STALE_AFTER, Server, ServerState, ServerStatus};

    fn server(name: &str, ping: i64) -> Server {
        let fields = serde_json::json!({
            "uuid": name, "server_group": "default", "service_name": "afl-agent", "server_name": "host",
            "ping_time": ping,
        });
        serde_json::from_value(fields).unwrap()
    }

    fn servers() -> Collection<Server> {
        let memory = Arc::new(Memory::new(Clock::Simulated(SimClock::new(Millis(0)))));
        Collection::new(Store::new(memory, Tenant::new(Tenant::LOCAL).unwrap()))
    }

    #[tokio::test]
    async fn items_are_listed_by_name_found_by_rank_and_written_over_the_version_read() {
        let servers = servers();
        for number in 0..600 {
            let item = server(&format!("s{number:03}"), number);
            servers.put(&item.uuid, &item, None, Durability::Relaxed).await.unwrap();
        }
        let all = servers.all().await.unwrap();
        assert_eq!(all.len(), 600);
        assert!(all.is_sorted_by_key(|(name, _)| name.clone()));
        assert_eq!(servers.up_to(2, None).await.unwrap().items.len(), 3);
        let read = servers.get("s001").await.unwrap().unwrap();
        servers.put("s001", &server("s001", 900), Some(read.version), Durability::Relaxed).await.unwrap();
        let late = servers.put("s001", &read.item, Some(read.version), Durability::Relaxed).await;
        assert!(late.unwrap_err().is_conflict());
        servers.remove("s002", unread(1)).await.unwrap();
        servers.remove("s003", unread(1)).await.unwrap();
        assert!(servers.remove("s004", unread(7)).await.unwrap_err().is_conflict());
        assert_eq!(servers.all().await.unwrap().len(), 598);
    }

    #[tokio::test]
    async fn a_removal_wakes_those_who_watch() {
        let servers = servers();
        servers.put("a", &server("a", 1), None, Durability::Durable).await.unwrap();
        let mut watch = servers.watch();
        servers.remove("a", unread(1)).await.unwrap();
        watch.changed().await;
        assert_eq!(servers.all().await.unwrap().len(), 0);
    }

    // covers: SDK-5.1-a, SDK-5.1-b, XR-12
    #[test]
    fn the_status_of_a_server_follows_from_its_last_heartbeat_and_its_own_word() {
        let fresh = server("a", 1_000);
        let written = serde_json::to_value(&fresh).unwrap();
        for field in [
            "uuid",
            "server_group",
            "service_name",
            "server_name",
            "server_ips",
            "start_time",
            "ping_time",
            "topics",
            "handlers",
            "handled",
            "state",
            "manager",
            "error",
        ] {
            assert!(written.get(field).is_some(), "{field}");
        }
        assert_eq!((written["state"].as_str(), written["manager"].as_str()), (Some("startup"), Some("")));
        for empty in ["server_ips", "topics", "handlers"] {
            assert_eq!(written[empty], serde_json::json!([]), "{empty}");
        }
        assert_eq!((&written["start_time"], &written["error"]), (&0.into(), &serde_json::Value::Null));
        let names: Vec<&str> = ServerState::ALL.iter().map(|state| state.name()).collect();
        assert_eq!(names, ["startup", "running", "shutdown", "error"]);
        let at = |span: Millis| fresh.status(Millis(1_000).plus(span));
        assert_eq!(at(Millis(STALE_AFTER.0 - 1)), ServerStatus::Online);
        assert_eq!(at(STALE_AFTER), ServerStatus::Stale);
        assert_eq!(at(OFFLINE_AFTER), ServerStatus::Offline);
        let ended = Server { state: ServerState::Shutdown, ..fresh };
        assert_eq!(ended.status(Millis(1_000)), ServerStatus::Offline);
    }
}

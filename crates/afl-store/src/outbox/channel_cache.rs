//! Caches the filters of all channels, so that the end of a task costs nothing in a store without channels.

use std::sync::{Arc, MutexGuard, PoisonError};

use afl_engine::time::Millis;

use super::channel::{Channel, ChannelFilter};
use crate::collection::{Collection, CollectionItem};
use crate::store::{Error, Store};
use crate::watch::Watch;

/// A watch reports a new or removed channel at once, or within the moment that a watch takes between processes. Should
/// the watch fail, the cache is read again after this time. Ends before that are not published to the new channel.
pub(super) const SLOW_LOOK: Millis = Millis(10_000);

/// The channels as they were looked at last. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChannelCache {
    /// Protects the last look alone, and is held to clone or to replace it.
    #[expect(
        clippy::disallowed_types,
        reason = "every end of a task looks here; a channel would make it wait"
    )]
    cached: Arc<std::sync::Mutex<Option<CachedFilters>>>,
}

#[derive(Debug)]
struct CachedFilters {
    filters: Arc<[ChannelFilter]>,
    looked: Millis,
    since: Watch,
}

impl CachedFilters {
    fn is_fresh(&self, now: Millis) -> bool {
        // A clock that went back must not make it look fresh for long.
        (Millis(0)..SLOW_LOOK).contains(&now.since(self.looked)) && !self.since.has_changed()
    }
}

impl ChannelCache {
    pub(super) async fn filters(&self, store: &Store, now: Millis) -> Result<Arc<[ChannelFilter]>, Error> {
        if let Some(cached) = self.lock().as_ref().filter(|cached| cached.is_fresh(now)) {
            return Ok(cached.filters.clone());
        }
        // It is made before the look, so that what changes during the look makes another one necessary.
        let since = store.watch(Channel::COLLECTION);
        let filters = look(store).await?;
        *self.lock() = Some(CachedFilters { filters: filters.clone(), looked: now, since });
        Ok(filters)
    }

    fn lock(&self) -> MutexGuard<'_, Option<CachedFilters>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A channel that cannot be read receives nothing; no task may fail because of it.
async fn look(store: &Store) -> Result<Arc<[ChannelFilter]>, Error> {
    let channels = Collection::<Channel>::new(store.clone()).readable().await?;
    let enabled = channels.into_iter().filter(|(_, channel)| channel.item.enabled);
    Ok(enabled.filter_map(|(name, channel)| channel.item.filter(&name).ok()).collect())
}

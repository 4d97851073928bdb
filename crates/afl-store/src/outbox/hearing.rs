//! What this process knows of the channels, so that the end of a task costs nothing where nobody listens.

use std::sync::Arc;

use afl_engine::time::Millis;
use tokio::sync::watch;

use super::channel::{Channel, Ear};
use crate::collection::{Collection, Item};
use crate::store::{Error, Store};
use crate::watch::Watch;

/// A channel that came or went is heard of by watch, at once or within the moment that a watch takes from another
/// process; should that fail, so long after the last look. What ended before it was heard of is not told.
pub(super) const SLOW_LOOK: Millis = Millis(10_000);

/// The channels as they were looked at last. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hearing(watch::Sender<Option<Heard>>);

#[derive(Debug)]
struct Heard {
    ears: Arc<[Ear]>,
    looked: Millis,
    since: Watch,
}

impl Heard {
    fn is_fresh(&self, now: Millis) -> bool {
        // A clock that went back must not make it look fresh for long.
        (Millis(0)..SLOW_LOOK).contains(&now.since(self.looked)) && !self.since.has_changed()
    }
}

impl Hearing {
    pub(super) async fn ears(&self, store: &Store, now: Millis) -> Result<Arc<[Ear]>, Error> {
        if let Some(heard) = self.0.borrow().as_ref().filter(|heard| heard.is_fresh(now)) {
            return Ok(heard.ears.clone());
        }
        // It is made before the look, so that what changes during the look makes another one necessary.
        let since = store.watch(Channel::COLLECTION);
        let ears = look(store).await?;
        self.0.send_replace(Some(Heard { ears: ears.clone(), looked: now, since }));
        Ok(ears)
    }
}

/// A channel that cannot be read hears nothing; no task may fail because of it.
async fn look(store: &Store) -> Result<Arc<[Ear]>, Error> {
    let channels = Collection::<Channel>::new(store.clone()).readable().await?;
    let enabled = channels.into_iter().filter(|(_, channel)| channel.item.enabled);
    Ok(enabled.filter_map(|(name, channel)| channel.item.ear(&name).ok()).collect())
}

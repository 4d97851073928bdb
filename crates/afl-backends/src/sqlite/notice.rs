//! Noticing what other processes write to the file.
//!
//! Those who wait watch their own bells. Where there is no ring, because a file cannot be watched or a writer died before
//! it rang, the writer's own slow look finds the change.

use std::collections::BTreeMap;
#[expect(
    clippy::disallowed_types,
    reason = "a watch is made in any thread, and is there when the call returns"
)]
use std::sync::Mutex;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use afl_store::watch::Watchers;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::bells::{Bell, Ringer, family, family_of};

/// Rings that come this close count as one: a busy store wakes those who wait a few thousand times a second at most.
const COALESCE: Duration = Duration::from_micros(300);

#[derive(Debug)]
pub(super) struct Notice {
    ringer: Ringer,
    watchers: Arc<Watchers>,
    /// The lock is held while a watch is made.
    #[expect(
        clippy::disallowed_types,
        reason = "a watch is made in any thread, and is there when the call returns"
    )]
    heard: Mutex<Heard>,
}

#[derive(Debug, Default)]
struct Heard {
    /// Begun with the first watch.
    watcher: Option<RecommendedWatcher>,
    /// By family; none for one that cannot be watched, which is left to the slow look.
    bells: BTreeMap<String, Option<Bell>>,
}

impl Notice {
    pub(super) fn new(ringer: Ringer, watchers: Arc<Watchers>) -> Self {
        Self { ringer, watchers, heard: Heard::default().into() }
    }

    /// From here on, changes of these buckets are noticed.
    pub(super) fn begin(&self, prefix: &str) {
        // What is done under the lock leaves a family unheard at worst.
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let family = family(prefix);
        if heard.bells.contains_key(family) {
            return;
        }
        if heard.watcher.is_none() {
            // Where files cannot be watched, the slow look is all there is.
            heard.watcher = watcher(self.watchers.clone()).ok();
        }
        let watch = |watcher: &mut RecommendedWatcher| {
            let bell = self.ringer.hang(family).ok()?;
            watcher.watch(bell.path(), RecursiveMode::NonRecursive).ok()?;
            Some(bell)
        };
        let bell = heard.watcher.as_mut().and_then(watch);
        heard.bells.insert(family.to_owned(), bell);
    }
}

fn watcher(watchers: Arc<Watchers>) -> notify::Result<RecommendedWatcher> {
    notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        match event {
            // Rings may be lost.
            Ok(event) if event.need_rescan() => watchers.wake_all(),
            Ok(event) if !matches!(event.kind, EventKind::Modify(_)) => return,
            Ok(event) => {
                for family in event.paths.iter().filter_map(|bell| family_of(bell)) {
                    watchers.wake_family(family);
                }
            }
            Err(_) => watchers.wake_all(),
        }
        thread::sleep(COALESCE);
    })
}

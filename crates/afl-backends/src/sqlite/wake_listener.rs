//! Watches the wake-up files of this process, and wakes its watchers when another process signals one.
//!
//! A file that cannot be watched is left to the writer's slow check of the store.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use afl_store::watch::Watchers;
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::wake_files::{WakeFile, WakeFolder, family, family_of};

/// Signals this close together count as one: a busy store wakes its watchers a few thousand times a second at most.
const COALESCE: Duration = Duration::from_micros(300);

#[derive(Debug)]
pub(super) struct WakeListener {
    wake_folder: WakeFolder,
    watchers: Arc<Watchers>,
    /// Protects the registered families; held while one is added.
    #[expect(
        clippy::disallowed_types,
        reason = "a watch is made in any thread, and is there when the call returns"
    )]
    state: std::sync::Mutex<ListenerState>,
}

#[derive(Debug, Default)]
struct ListenerState {
    /// Started with the first watch.
    watcher: Option<RecommendedWatcher>,
    /// By family; none for a family that cannot be watched.
    files: BTreeMap<String, Option<WakeFile>>,
}

impl WakeListener {
    pub(super) fn new(wake_folder: WakeFolder, watchers: Arc<Watchers>) -> Self {
        Self { wake_folder, watchers, state: ListenerState::default().into() }
    }

    /// From here on, signals for these buckets wake the watchers.
    pub(super) fn listen(&self, prefix: &str) {
        // A panic under the lock leaves a family unwatched at worst.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let family = family(prefix);
        if state.files.contains_key(family) {
            return;
        }
        if state.watcher.is_none() {
            // Where files cannot be watched, the slow check is all there is.
            state.watcher = watcher(self.watchers.clone()).ok();
        }
        let watch = |watcher: &mut RecommendedWatcher| {
            let file = self.wake_folder.register(family).ok()?;
            watcher.watch(&file.path, RecursiveMode::NonRecursive).ok()?;
            Some(file)
        };
        let file = state.watcher.as_mut().and_then(watch);
        state.files.insert(family.to_owned(), file);
    }
}

fn watcher(watchers: Arc<Watchers>) -> notify::Result<RecommendedWatcher> {
    notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        match event {
            // Signals may be lost.
            Ok(event) if event.need_rescan() => watchers.wake_all(),
            Ok(event) if !matches!(event.kind, EventKind::Modify(_)) => return,
            Ok(event) => {
                for family in event.paths.iter().filter_map(|file| family_of(file)) {
                    watchers.wake_family(family);
                }
            }
            Err(_) => watchers.wake_all(),
        }
        thread::sleep(COALESCE);
    })
}

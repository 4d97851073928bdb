//! Noticing what other processes write to the file.
//!
//! Whoever wrote into a bucket rings the bell of its family, which is the name up to the first `/`: it writes a byte to a
//! file in a folder beside the store. Those who wait for that family have a watch on the file, and nobody else is
//! disturbed. The write-ahead log itself tells too early, before its commit can be seen. Where there is no ring, because
//! the file cannot be watched or its writer died before it rang, the writer's own slow look finds the change.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
#[expect(
    clippy::disallowed_types,
    reason = "a watch is made in any thread, and is there when the call returns"
)]
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// Rings that come this close count as one, also our own: a busy store looks a few thousand times a second at most.
const COALESCE: Duration = Duration::from_micros(300);

/// Hears the ring of others.
#[derive(Debug)]
pub(super) struct Notice {
    bells: PathBuf,
    look: Look,
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
    /// The families whose bells were tried; those that cannot be watched are left to the slow look.
    families: BTreeSet<String>,
}

/// Asks the writer to look.
#[derive(Clone, Debug)]
pub(super) struct Look(pub(super) std::sync::mpsc::Sender<super::writer::Request>);

impl Notice {
    pub(super) fn new(store: &Path, look: Look) -> Self {
        Self { bells: bells_path(store), look, heard: Heard::default().into() }
    }

    /// From here on, changes of these buckets are noticed.
    pub(super) fn begin(&self, prefix: &str) {
        // What is done under the lock leaves a family unheard at worst.
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let family = family(prefix);
        if !heard.families.insert(family.to_owned()) {
            return;
        }
        if heard.watcher.is_none() {
            // Where files cannot be watched, the slow look is all there is.
            heard.watcher = watcher(self.look.clone()).ok();
        }
        if let Some(watcher) = &mut heard.watcher
            && let Ok(bell) = hang(&self.bells, family)
            && watcher.watch(&bell, RecursiveMode::NonRecursive).is_err()
        {
            // A bell that rings for nobody costs each writer a moment.
            fs::remove_file(bell).unwrap_or_default();
        }
    }
}

/// Makes the file, so that writers ring.
fn hang(bells: &Path, family: &str) -> io::Result<PathBuf> {
    fs::create_dir_all(bells)?;
    let bell = bells.join(family);
    OpenOptions::new().create(true).truncate(false).write(true).open(&bell)?;
    Ok(bell)
}

fn watcher(look: Look) -> notify::Result<RecommendedWatcher> {
    notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let rang = event.map_or(true, |event| matches!(event.kind, EventKind::Modify(_)));
        // A writer that is gone has nobody to wake.
        if rang && look.0.send(super::writer::Request::Look).is_ok() {
            thread::sleep(COALESCE);
        }
    })
}

/// Rings for others.
#[derive(Debug)]
pub(super) struct Bells {
    path: PathBuf,
    open: BTreeMap<String, File>,
}

impl Bells {
    pub(super) fn new(store: &Path) -> Self {
        Self { path: bells_path(store), open: BTreeMap::new() }
    }

    /// For the families of buckets that were written to.
    pub(super) fn ring(&mut self, families: BTreeSet<&str>) {
        for family in families {
            let bell = match self.open.entry(family.to_owned()) {
                Entry::Occupied(open) => open.into_mut(),
                Entry::Vacant(vacant) => match OpenOptions::new().write(true).open(self.path.join(family)) {
                    Ok(bell) => vacant.insert(bell),
                    // Nobody has ever waited for it.
                    Err(_) => continue,
                },
            };
            if ring(bell).is_err() {
                // The others find the change with their next slow look, and the next ring finds a bell that works.
                self.open.remove(family);
            }
        }
    }
}

fn ring(bell: &mut File) -> io::Result<()> {
    bell.seek(SeekFrom::Start(0))?;
    bell.write_all(b"!")
}

/// The part of a bucket's name, or of a prefix of such names, that has a bell.
pub(super) fn family(bucket: &str) -> &str {
    bucket.split_once('/').map_or(bucket, |(family, _)| family)
}

fn bells_path(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push("-bells");
    path.into()
}

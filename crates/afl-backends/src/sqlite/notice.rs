//! Noticing what other processes write to the file.
//!
//! Whoever wrote into a bucket rings: it writes a byte to a file beside the store, on which all processes have a watch.
//! The write-ahead log itself tells too early, before its commit can be seen. Where there is no ring, because the file
//! cannot be watched or its writer died before it rang, the writer's own slow look finds the change.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

/// Rings that come this close count as one, also our own: a busy store looks a thousand times a second at most.
const COALESCE: Duration = Duration::from_millis(1);

/// Hears the ring of others.
#[derive(Debug)]
pub(super) struct Notice {
    path: PathBuf,
    look: Look,
    /// Begun with the first watch; nothing when files cannot be watched here.
    watcher: OnceLock<Option<RecommendedWatcher>>,
}

/// Asks the writer to look.
#[derive(Clone, Debug)]
pub(super) struct Look(pub(super) std::sync::mpsc::Sender<super::writer::Request>);

impl Notice {
    pub(super) fn new(store: &Path, look: Look) -> Self {
        Self { path: bell_path(store), look, watcher: OnceLock::new() }
    }

    /// From here on, changes are noticed.
    pub(super) fn begin(&self) {
        self.watcher.get_or_init(|| watch(&self.path, self.look.clone()).ok());
    }
}

fn watch(path: &Path, look: Look) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let rang = event.map_or(true, |event| matches!(event.kind, EventKind::Modify(_)));
        // A writer that is gone has nobody to wake.
        if rang && look.0.send(super::writer::Request::Look).is_ok() {
            thread::sleep(COALESCE);
        }
    })?;
    watcher.watch(path, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// Rings for others.
#[derive(Debug)]
pub(super) struct Bell(Option<File>);

impl Bell {
    pub(super) fn new(store: &Path) -> Self {
        Self(OpenOptions::new().create(true).truncate(false).write(true).open(bell_path(store)).ok())
    }

    pub(super) fn ring(&mut self) {
        if let Some(file) = &mut self.0 {
            // Without this ring, the others find the change with their next slow look.
            ring(file).unwrap_or_default();
        }
    }
}

fn ring(file: &mut File) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(b"!")
}

fn bell_path(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push("-bell");
    path.into()
}

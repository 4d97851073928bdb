//! Ringing for other processes that wait on the file.
//!
//! Whoever waits hangs up a bell of its own for each family of buckets it waits for, which is their name up to the first
//! `/`: a file in a folder beside the store, locked as long as its owner lives. Whoever wrote into a bucket writes a byte
//! to the bells of its family, but for its own: a process that is alone on the file rings nowhere. The write-ahead log
//! itself would tell too early, before its commit can be seen.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The times of a folder are as coarse as a tick of the system. A list that was made this long after the last change
/// has seen it.
const SETTLED: Duration = Duration::from_secs(1);

const RING: &[u8] = b"!";

/// Who waits and rings: one opened store of one process.
#[derive(Clone, Debug)]
pub(super) struct Ringer {
    folder: PathBuf,
    id: String,
}

impl Ringer {
    pub(super) fn new(store: &Path) -> Self {
        let mut folder = store.as_os_str().to_owned();
        folder.push("-bells");
        // Processes in different containers may have the same number.
        let id = format!("{:016x}", RandomState::new().hash_one(()));
        Self { folder: folder.into(), id }
    }

    /// Makes the bell of a family, which others ring while it is kept.
    pub(super) fn hang(&self, family: &str) -> io::Result<Bell> {
        fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(format!("{family}.{}", self.id));
        // Under its name it is locked, else somebody might take it for that of a dead process.
        let unlocked = path.with_extension(format!("{}-new", self.id));
        let mut lock = File::create(&unlocked)?;
        lock.try_lock()?;
        // What is there can be written over on a full disk.
        lock.write_all(RING)?;
        fs::rename(&unlocked, &path)?;
        Ok(Bell { path, _lock: lock })
    }
}

#[derive(Debug)]
pub(super) struct Bell {
    path: PathBuf,
    _lock: File,
}

impl Bell {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        // One that stays is found without its lock.
        fs::remove_file(&self.path).unwrap_or_default();
    }
}

/// The family that a bell was made for.
pub(super) fn family_of(bell: &Path) -> Option<&str> {
    bell.file_stem()?.to_str()
}

/// The part of a bucket's name, or of a prefix of such names, that has a bell.
pub(super) fn family(bucket: &str) -> &str {
    bucket.split_once('/').map_or(bucket, |(family, _)| family)
}

/// The bells of others.
#[derive(Debug)]
pub(super) struct Bells {
    own: Ringer,
    hung: Vec<Hung>,
    /// The folder's time of the last list, once nothing can be missing from it.
    seen: Option<SystemTime>,
}

#[derive(Debug)]
struct Hung {
    path: PathBuf,
    /// From its first ring on.
    file: Option<File>,
}

impl Bells {
    pub(super) fn new(own: Ringer) -> Self {
        Self { own, hung: Vec::new(), seen: None }
    }

    /// For the families of buckets that were written to.
    pub(super) fn ring(&mut self, families: &BTreeSet<&str>) {
        if families.is_empty() {
            return;
        }
        // Whoever cannot be rung for finds the change with its next slow look, and the next ring tries again.
        match fs::metadata(&self.own.folder).and_then(|folder| folder.modified()) {
            Ok(changed) if self.seen == Some(changed) => {}
            Ok(changed) => {
                let is_settled = changed.elapsed().is_ok_and(|age| age >= SETTLED);
                self.seen = self.list().ok().filter(|()| is_settled).map(|()| changed);
            }
            // Nobody has ever waited.
            Err(_) => return,
        }
        let is_wanted = |bell: &Hung| family_of(&bell.path).is_some_and(|family| families.contains(family));
        self.hung.retain_mut(|bell| !is_wanted(bell) || bell.ring() == Owner::Lives);
    }

    fn list(&mut self) -> io::Result<()> {
        let mut paths = BTreeSet::new();
        for entry in fs::read_dir(&self.own.folder)? {
            paths.insert(entry?.path());
        }
        self.hung.retain(|bell| paths.remove(&bell.path));
        let is_ours = |owner: &str| owner == self.own.id || owner.ends_with("-new");
        paths.retain(|path| path.extension().is_some_and(|owner| !is_ours(&owner.to_string_lossy())));
        self.hung.extend(paths.into_iter().map(|path| Hung { path, file: None }));
        Ok(())
    }
}

#[derive(PartialEq, Eq)]
enum Owner {
    Lives,
    Gone,
}

impl Hung {
    fn ring(&mut self) -> Owner {
        let file = match self.file.take().map_or_else(|| self.open(), |file| Ok(Some(file))) {
            Ok(Some(file)) => file,
            Ok(None) => return Owner::Gone,
            Err(_) => return Owner::Lives,
        };
        self.file = file.write_at(RING, 0).is_ok().then_some(file);
        Owner::Lives
    }

    /// None for a bell whose owner is gone; it is taken down.
    fn open(&self) -> io::Result<Option<File>> {
        let file = match OpenOptions::new().write(true).open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        if file.try_lock().is_ok() {
            fs::remove_file(&self.path)?;
            return Ok(None);
        }
        Ok(Some(file))
    }
}

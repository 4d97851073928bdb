//! Finds the process that keeps other processes from writing the file.
//!
//! A process that was stopped inside a transaction (Ctrl-Z, a debugger) keeps the write lock until it is continued or ends.
//! Nothing can take the lock from it, so the waiting processes name it.
//!
//! SQLite locks bytes with `fcntl`: of the index `-shm` in write-ahead mode, of the file itself while that mode is being
//! entered or left. Linux lists such locks with their owners in `/proc/locks`, by device and inode. Asking with `F_GETLK`
//! would name the owner too, but it needs a descriptor of our own, and closing that would release SQLite's locks.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Bytes of `-shm` that SQLite locks: those of a writer, of a recovery, and of the first process that maps the file.
const INDEX_BYTES: [u64; 3] = [120, 122, 128];
/// The 512 bytes from here on are the locks of the file itself.
const FILE_BYTES: [u64; 3] = [0x4000_0000, 0x4000_0001, 0x4000_0002];

/// A process that holds the lock which writers need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LockHolder {
    pid: u32,
    /// The name of its program.
    program: String,
    is_stopped: bool,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, program, is_stopped } = self;
        write!(f, "process {pid} (`{program}`) holds its lock")?;
        if *is_stopped {
            write!(
                f,
                " and is stopped; continue it with `kill -CONT {pid}`, or end it with `kill -KILL {pid}`"
            )
        } else {
            write!(f, "; let that process finish its transaction, or end it")
        }
    }
}

/// None where the system does not list locks, or when the lock has just been released.
pub(super) fn find(store: &Path) -> Option<LockHolder> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let mut index = store.as_os_str().to_owned();
    index.push("-shm");
    let holder_of = |path: &Path, bytes: &[u64]| {
        let file = FileIdentity::of(path)?;
        let held = locks.lines().filter_map(HeldLock::parse);
        held.filter(|lock| lock.inode == file.inode && bytes.iter().any(|byte| lock.covers(*byte)))
            .find(|lock| lock.device == file.device() || has_open(lock.pid, &file))
            .map(|lock| lock.pid)
    };
    let pid = holder_of(&PathBuf::from(index), &INDEX_BYTES).or_else(|| holder_of(store, &FILE_BYTES))?;
    let program = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The state follows the program's name, which may hold brackets of its own: `4711 (afl) T 1 …`.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())?;
    Some(LockHolder { pid, program: program.trim_end().to_owned(), is_stopped: matches!(state, 'T' | 't') })
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    /// As `/proc/locks` writes it.
    fn device(&self) -> String {
        let major = ((self.device >> 8) & 0xfff) | ((self.device >> 32) & !0xfff);
        let minor = (self.device & 0xff) | ((self.device >> 12) & !0xff);
        format!("{major:02x}:{minor:02x}")
    }
}

/// Some file systems, such as btrfs, give a file another device than `/proc/locks` does.
fn has_open(pid: u32, file: &FileIdentity) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.flatten().any(|descriptor| FileIdentity::of(&descriptor.path()) == Some(*file))
}

/// An exclusive lock, as a line of `/proc/locks`.
#[derive(PartialEq, Eq, Debug)]
struct HeldLock<'a> {
    pid: u32,
    device: &'a str,
    inode: u64,
    first: u64,
    last: u64,
}

impl<'a> HeldLock<'a> {
    /// None for a shared lock, for one of another sort, and for a request that waits (`->`).
    fn parse(line: &'a str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", pid, file, first, last] = words[..] else { return None };
        let (device, inode) = file.rsplit_once(':')?;
        let (pid, inode, first) = (pid.parse().ok()?, inode.parse().ok()?, first.parse().ok()?);
        let last = match last {
            "EOF" => u64::MAX,
            last => last.parse().ok()?,
        };
        Some(Self { pid, device, inode, first, last })
    }

    fn covers(&self, byte: u64) -> bool {
        (self.first..=self.last).contains(&byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exclusive_locks_that_are_held_count() {
        let held = HeldLock { pid: 4711, device: "fd:01", inode: 99, first: 120, last: 120 };
        assert_eq!(HeldLock::parse("1: POSIX  ADVISORY  WRITE 4711 fd:01:99 120 120"), Some(held));
        let whole = HeldLock::parse("2: POSIX  ADVISORY  WRITE 7 00:1a:5 0 EOF").unwrap();
        assert!(whole.covers(0) && whole.covers(u64::MAX));
        for line in [
            "3: POSIX  ADVISORY  READ 4711 fd:01:99 120 120",
            "4: FLOCK  ADVISORY  WRITE 4711 fd:01:99 0 EOF",
            "5: -> POSIX  ADVISORY  WRITE 4711 fd:01:99 120 120",
            "6: OFDLCK ADVISORY  WRITE -1 fd:01:99 120 120",
            "",
        ] {
            assert_eq!(HeldLock::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_device_reads_as_the_kernel_writes_it() {
        let device = |device| FileIdentity { device, inode: 0 }.device();
        assert_eq!(
            (device(0xfd01), device(0x1a), device(0x10_3402)),
            ("fd:01".into(), "00:1a".into(), "34:102".into())
        );
    }
}

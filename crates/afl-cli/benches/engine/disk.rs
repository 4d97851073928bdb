//! A disk like others have: the system lets this process and its children write only so often each second.
//!
//! A rate beside that of the raw store says something only where the disk limits both. On a fast disk it measures the
//! number of processors.

use std::fs;
use std::io;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process;

use rustix::fs::{major, minor};

const FIRST: &str = "/sys/fs/cgroup/blkio";
const SECOND: &str = "/sys/fs/cgroup";

/// Holds until it is dropped.
pub(crate) struct SlowDisk {
    group: PathBuf,
    root: PathBuf,
}

impl SlowDisk {
    /// Needs root, and the control groups of Linux in either version.
    pub(crate) fn new(directory: &Path, writes_per_second: u32) -> Self {
        let disk = disk_of(directory);
        let is_first = Path::new(FIRST).is_dir();
        let root = PathBuf::from(if is_first { FIRST } else { SECOND });
        let group = root.join(format!("afl-bench-{}", process::id()));
        let needs = "a disk is slowed down by root, with control groups";
        fs::create_dir(&group).expect(needs);
        let slow = Self { group, root };
        let (file, limit) = if is_first {
            ("blkio.throttle.write_iops_device", format!("{disk} {writes_per_second}"))
        } else {
            ("io.max", format!("{disk} wiops={writes_per_second}"))
        };
        fs::write(slow.group.join(file), limit).expect(needs);
        enter(&slow.group).expect(needs);
        slow
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        let left = enter(&self.root).and_then(|()| fs::remove_dir(&self.group));
        if let Err(error) = left {
            eprintln!("the control group {} is left: {error}", self.group.display());
        }
    }
}

fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), process::id().to_string())
}

/// The whole disk that a directory is on, by its numbers.
fn disk_of(directory: &Path) -> String {
    let device = fs::metadata(directory).expect("the directory is there").st_dev();
    let numbers = format!("{}:{}", major(device), minor(device));
    let known = Path::new("/sys/dev/block").join(&numbers);
    if !known.join("partition").exists() {
        return numbers;
    }
    let whole = known.canonicalize().ok().and_then(|part| Some(part.parent()?.join("dev")));
    whole.and_then(|dev| fs::read_to_string(dev).ok()).map_or(numbers, |dev| dev.trim().to_owned())
}

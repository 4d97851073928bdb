//! Small file systems of the tests' own, which run full or cannot be written, and are gone when they are dropped.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::site::folder;

/// In memory.
pub(crate) struct Small(TempDir);

impl Small {
    pub(crate) fn new(megabytes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m");
        mount(["-t", "tmpfs", "-o", &size, "tmpfs"].map(OsStr::new), folder.path());
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all space that is left.
    pub(crate) fn fill(&self) {
        fill(self.path());
    }

    pub(crate) fn free(&self) {
        fs::remove_file(self.path().join(BALLAST)).unwrap();
    }

    /// The system refuses it while a process has a file open for writing.
    pub(crate) fn forbid_writes(&self) {
        mount(["-o", "remount,ro"].map(OsStr::new), self.path());
    }

    pub(crate) fn let_all_write(&self) {
        mount(["-o", "remount,rw"].map(OsStr::new), self.path());
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        unmount(self.path());
    }
}

const BALLAST: &str = "ballast";

pub(crate) fn fill(folder: &Path) {
    let mut ballast = fs::File::create(folder.join(BALLAST)).unwrap();
    let some = vec![0; 64 << 10];
    // The last write takes the remaining space.
    while ballast.write(&some).is_ok() {}
}

/// A file system like that of a disk, which stops all writing when the disk has a fault, whatever is open.
pub(crate) struct Disk {
    image: TempDir,
    folder: TempDir,
}

impl Disk {
    const MEGABYTES: u64 = 16;

    pub(crate) fn new() -> Self {
        let disk = Self { image: folder(), folder: tempfile::tempdir().unwrap() };
        let image = disk.image.path().join("image");
        fs::File::create(&image).unwrap().set_len(Self::MEGABYTES << 20).unwrap();
        let made = Command::new("mkfs.ext4").arg("-q").arg(&image).output();
        succeeded(&made.expect("there is a program `mkfs.ext4`, of the package e2fsprogs"));
        disk.mount();
        disk
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// As the system does when it meets a fault of the disk.
    pub(crate) fn fail(&self) {
        mount(["-o", "remount,abort"].map(OsStr::new), self.path());
    }

    /// As an operator does. No process may have a file of it open.
    pub(crate) fn mend(&self) {
        succeeded(&Command::new("umount").arg(self.path()).output().unwrap());
        self.mount();
    }

    fn mount(&self) {
        mount(
            [OsStr::new("-o"), OsStr::new("loop"), self.image.path().join("image").as_os_str()],
            self.path(),
        );
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        unmount(self.path());
    }
}

fn mount<const N: usize>(arguments: [&OsStr; N], on: &Path) {
    let mounted = Command::new("mount").args(arguments).arg(on).output();
    succeeded(&mounted.expect("there is a program `mount`"));
}

fn unmount(folder: &Path) {
    drop(Command::new("umount").arg("--lazy").arg(folder).status());
}

#[track_caller]
fn succeeded(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "this test mounts small file systems, so run it as root: {said}");
}

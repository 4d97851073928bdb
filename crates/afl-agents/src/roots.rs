//! The folders that handlers may come from. A file is checked after it is open, so that no other process can swap it.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;

use crate::handler::{HandlerFailure, HandlerFailureKind};
use crate::registration::Checksum;

/// Real paths of folders, in the order in which modules are looked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Roots(Vec<PathBuf>);

/// A file under a root.
#[derive(Debug)]
pub(crate) struct RootedFile {
    /// Without links.
    pub(crate) path: PathBuf,
    file: File,
    metadata: Metadata,
}

/// Changes when a file does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot use {path} as a folder of handlers")]
    Root { path: PathBuf, source: io::Error },
    #[error("there is no {path}")]
    Missing { path: PathBuf },
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path} is no regular file")]
    NoFile { path: PathBuf },
    #[error(
        "{path} is at {real}, outside the folders of handlers ({roots}): move it there, or allow its folder"
    )]
    Outside { path: PathBuf, real: PathBuf, roots: String },
    #[error("{path} has {bytes} bytes, and {MAX_FILE_BYTES} is the limit")]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error(
        "{path} has the SHA-256 {found}, and {expected} is registered: register the new checksum if the change is meant"
    )]
    Changed { path: PathBuf, found: Checksum, expected: Checksum },
}

/// No source text is larger, and programs that are stay unverified.
pub(crate) const MAX_FILE_BYTES: u64 = 256 << 20;

impl Roots {
    pub fn new<P: AsRef<Path>>(folders: impl IntoIterator<Item = P>) -> Result<Self, FileError> {
        let real = |folder: P| {
            let path = folder.as_ref();
            let real = fs::canonicalize(path).and_then(|real| {
                if fs::metadata(&real)?.is_dir() {
                    Ok(real)
                } else {
                    Err(io::ErrorKind::NotADirectory.into())
                }
            });
            real.map_err(|source| FileError::Root { path: path.to_owned(), source })
        };
        folders.into_iter().map(real).collect::<Result<_, _>>().map(Self)
    }

    pub fn folders(&self) -> &[PathBuf] {
        &self.0
    }

    /// Whether the folder, its links resolved, is under a root.
    pub(crate) fn admit_folder(&self, folder: &Path) -> Result<PathBuf, FileError> {
        let real = fs::canonicalize(folder).map_err(|source| unreadable(folder, source))?;
        self.admit(folder, &real)?;
        Ok(real)
    }

    pub(crate) fn open(&self, path: &Path) -> Result<RootedFile, FileError> {
        let mut options = File::options();
        // A pipe in its place must not hold us up.
        options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let file = options.open(path).map_err(|source| unreadable(path, source))?;
        let real = real_path(&file, path).map_err(|source| unreadable(path, source))?;
        self.admit(path, &real)?;
        let metadata = file.metadata().map_err(|source| unreadable(path, source))?;
        if metadata.is_file() {
            Ok(RootedFile { path: real, file, metadata })
        } else {
            Err(FileError::NoFile { path: path.to_owned() })
        }
    }

    fn admit(&self, path: &Path, real: &Path) -> Result<(), FileError> {
        if self.0.iter().any(|root| real.starts_with(root)) {
            return Ok(());
        }
        let (path, real) = (path.to_owned(), real.to_owned());
        Err(FileError::Outside { path, real, roots: self.to_string() })
    }
}

impl std::fmt::Display for Roots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let folders: Vec<_> = self.0.iter().map(|folder| folder.display().to_string()).collect();
        f.write_str(if folders.is_empty() { "none is allowed" } else { "" })?;
        f.write_str(&folders.join(", "))
    }
}

/// Of the open file itself: a link that is swapped meanwhile changes nothing.
#[cfg(target_os = "linux")]
fn real_path(file: &File, _: &Path) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(not(target_os = "linux"))]
fn real_path(_: &File, path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

fn unreadable(path: &Path, source: io::Error) -> FileError {
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            FileError::Missing { path: path.to_owned() }
        }
        _ => FileError::Unreadable { path: path.to_owned(), source },
    }
}

impl RootedFile {
    pub(crate) fn stamp(&self) -> FileStamp {
        FileStamp {
            device: self.metadata.dev(),
            inode: self.metadata.ino(),
            bytes: self.metadata.len(),
            modified: (self.metadata.mtime(), self.metadata.mtime_nsec()),
        }
    }

    pub(crate) fn is_executable(&self) -> bool {
        self.metadata.mode() & 0o111 != 0
    }

    /// The bytes, which are what the checksum says if one is given.
    pub(crate) fn read(mut self, checksum: Option<Checksum>) -> Result<Vec<u8>, FileError> {
        let mut bytes = Vec::new();
        let read = (&mut self.file).take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|source| unreadable(&self.path, source))?;
        let path = self.path;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(FileError::TooLarge { path, bytes: bytes.len() as u64 });
        }
        let found = checksum.map(|expected| (expected, Checksum::of(&bytes)));
        match found {
            Some((expected, found)) if expected != found => Err(FileError::Changed { path, found, expected }),
            Some(_) | None => Ok(bytes),
        }
    }
}

/// A path that a URI names: no part of it leads elsewhere.
pub(crate) fn absolute(path: &str) -> Result<PathBuf, String> {
    let path = Path::new(path);
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    if path.is_absolute()
        && path.components().all(is_plain)
        && !path.as_os_str().as_encoded_bytes().contains(&0)
    {
        Ok(path.to_owned())
    } else {
        Err("must name an absolute path without `..`".to_owned())
    }
}

/// Where a person's path leads, written relative to a folder.
pub(crate) fn anchored(path: &str, folder: &Path) -> PathBuf {
    let path = folder.join(path);
    fs::canonicalize(&path).unwrap_or(path)
}

impl From<FileError> for HandlerFailure {
    fn from(error: FileError) -> Self {
        let kind = match error {
            FileError::Missing { .. } | FileError::NoFile { .. } => HandlerFailureKind::NotFound,
            FileError::Root { .. } | FileError::Unreadable { .. } => HandlerFailureKind::Unavailable,
            FileError::Outside { .. } | FileError::TooLarge { .. } | FileError::Changed { .. } => {
                HandlerFailureKind::Refused
            }
        };
        HandlerFailure::new(kind, error.to_string())
    }
}

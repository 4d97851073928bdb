//! Where the text of a Python handler is, and which version of it.

use std::path::PathBuf;

use crate::handler::{Failure, FailureKind};
use crate::registration::{Checksum, DottedName, ModuleUri};
use crate::roots::{FileError, Opened, Roots, Stamp};

/// A module's file under an allowed folder.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) file: Opened,
    pub(super) kind: ModuleKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ModuleKind {
    File,
    /// An `__init__.py`.
    Package,
}

/// Two calls may share a loaded module if these are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    Verified(Checksum),
    /// Without a checksum a changed file is a new version.
    AsOnDisk(Stamp),
}

/// What the module is called in `sys.modules`.
pub(super) fn name(uri: &ModuleUri) -> String {
    let path = match uri {
        ModuleUri::PythonModule(name) => return name.to_string(),
        ModuleUri::PythonFile(path) => path,
        ModuleUri::Exec(_) | ModuleUri::Http(_) | ModuleUri::Builtin(_) => {
            unreachable!("another host does these")
        }
    };
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let letters = stem.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' });
    let path_hash = Checksum::of(path.as_os_str().as_encoded_bytes()).to_string();
    format!("{}_{}", letters.collect::<String>(), &path_hash[..8])
}

/// Looks under the allowed folders, and in `packages` if those are allowed.
pub(super) fn locate(uri: &ModuleUri, packages: Vec<PathBuf>, roots: &Roots) -> Result<Located, Failure> {
    match uri {
        ModuleUri::PythonFile(path) => Ok(Located { file: roots.open(path)?, kind: ModuleKind::File }),
        ModuleUri::PythonModule(name) => {
            let folders: Vec<_> = roots.folders().iter().cloned().chain(packages).collect();
            module(name, &folders, roots)
        }
        ModuleUri::Exec(_) | ModuleUri::Http(_) | ModuleUri::Builtin(_) => {
            unreachable!("another host does these")
        }
    }
}

/// The first folder that has the module decides, a package before a file, as in Python itself.
fn module(name: &DottedName, folders: &[PathBuf], roots: &Roots) -> Result<Located, Failure> {
    let relative: PathBuf = name.segments().collect();
    for folder in folders {
        let package = folder.join(&relative).join("__init__.py");
        let plain = folder.join(&relative).with_added_extension("py");
        for (path, kind) in [(package, ModuleKind::Package), (plain, ModuleKind::File)] {
            match roots.open(&path) {
                Ok(file) => return Ok(Located { file, kind }),
                Err(FileError::Missing { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let message = format!(
        "there is no Python module `{name}` in the folders of handlers ({roots}): put it at {}.py in one of them",
        relative.display()
    );
    Err(Failure::new(FailureKind::NotFound, message))
}

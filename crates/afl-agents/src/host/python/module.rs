//! Where the text of a Python handler is, and which version of it.

use std::path::{Path, PathBuf};

use url::Url;

use crate::handler::HandlerFailure;
use crate::registration::{Checksum, DottedName};
use crate::roots::{FileError, FileStamp, RootedFile, Roots, absolute};

/// The module that a `module_uri` names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PythonModule {
    /// `my.handlers.cache`
    Dotted(DottedName),
    /// `file:///opt/handlers/cache.py`
    File(PathBuf),
}

pub(super) const EXTENSION: &str = "py";
const FILE_SCHEME: &str = "file:";

/// A module's file under an allowed folder.
#[derive(Debug)]
pub(super) struct ModuleFile {
    pub(super) file: RootedFile,
    /// Whether it is an `__init__.py`.
    pub(super) is_package: bool,
}

/// Two calls may share a loaded module if these are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ModuleVersion {
    Verified(Checksum),
    /// Without a checksum a changed file is a new version.
    AsOnDisk(FileStamp),
}

impl PythonModule {
    pub(super) fn parse(uri: &str) -> Result<Self, String> {
        if uri.starts_with(FILE_SCHEME) {
            return file_path(uri).map(Self::File);
        }
        let name = DottedName::parse(uri).map(Self::Dotted);
        name.ok_or_else(|| "is no name of a Python module".to_owned())
    }

    /// The name of the module in `sys.modules`.
    pub(super) fn name(&self) -> String {
        let path = match self {
            Self::Dotted(name) => return name.to_string(),
            Self::File(path) => path,
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let letters = stem.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' });
        let path_hash = Checksum::of(path.as_os_str().as_encoded_bytes()).to_string();
        format!("{}_{}", letters.collect::<String>(), &path_hash[..8])
    }

    /// Looks under the allowed folders, and in `packages` if those are allowed.
    pub(super) fn locate(&self, packages: Vec<PathBuf>, roots: &Roots) -> Result<ModuleFile, HandlerFailure> {
        match self {
            Self::File(path) => Ok(ModuleFile { file: roots.open(path)?, is_package: false }),
            Self::Dotted(name) => {
                let folders: Vec<_> = roots.folders().iter().cloned().chain(packages).collect();
                find_module(name, &folders, roots)
            }
        }
    }
}

fn file_path(uri: &str) -> Result<PathBuf, String> {
    let form = "must be `file:///` and an absolute path of this machine";
    if !uri.starts_with("file:///") {
        return Err(form.to_owned());
    }
    let url = Url::parse(uri).map_err(|error| format!("is no URI: {error}"))?;
    let path = url.to_file_path().map_err(|()| form.to_owned())?;
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(EXTENSION)) {
        absolute(&path.to_string_lossy())
    } else {
        Err("must name a file that ends with `.py`".to_owned())
    }
}

/// The path of a Python file that a person wrote where a URI is expected.
pub(super) fn written_file(written: &str) -> Option<&str> {
    let is_file = Path::new(written).extension().is_some_and(|extension| extension == EXTENSION);
    (is_file && !written.contains("://")).then_some(written)
}

pub(super) fn file_uri(path: &Path) -> Option<String> {
    Url::from_file_path(path).ok().map(String::from)
}

/// The first folder that has the module decides, a package before a file, as in Python itself.
fn find_module(name: &DottedName, folders: &[PathBuf], roots: &Roots) -> Result<ModuleFile, HandlerFailure> {
    let relative: PathBuf = name.segments().collect();
    for folder in folders {
        let package = folder.join(&relative).join("__init__.py");
        let plain = folder.join(&relative).with_added_extension("py");
        for (path, is_package) in [(package, true), (plain, false)] {
            match roots.open(&path) {
                Ok(file) => return Ok(ModuleFile { file, is_package }),
                Err(FileError::Missing { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let message = format!(
        "there is no Python module `{name}` in the folders of handlers ({roots}): put it at {}.py in one of them",
        relative.display()
    );
    Err(HandlerFailure::not_found(message))
}

//! From the names on the command line to source texts.

use std::collections::HashSet;
use std::env;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use afl_lang::source::{Source, Sources};

use crate::failure::{Failure, FileRole};

/// The texts of one program. A file that is given as both is primary.
pub(crate) fn program(primary: &[PathBuf], library: &[PathBuf]) -> Result<Sources, Failure> {
    let mut finder = Finder::default();
    let (primary, library) = (finder.find(primary)?, finder.find(library)?);
    let primary = primary.iter().map(|input| Ok(Source::new(input.name(), input.read()?)));
    let library = library.iter().map(|input| Ok(Source::library(input.name(), input.read()?)));
    Ok(Sources(primary.chain(library).collect::<Result<_, Failure>>()?))
}

/// Stands for standard input wherever a file is read, and for standard output where one is written.
pub(crate) const STANDARD: &str = "-";

const EXTENSION: &str = "afl";

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Input {
    Stdin,
    File(PathBuf),
}

impl Input {
    /// The name of the input in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "<stdin>".into(),
            Self::File(path) => path.display().to_string(),
        }
    }

    pub(crate) fn read(&self) -> Result<String, Failure> {
        self.read_as(FileRole::File)
    }

    pub(crate) fn read_as(&self, sought: FileRole) -> Result<String, Failure> {
        let bytes = match self {
            Self::Stdin => {
                let mut bytes = Vec::new();
                io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
            }
            Self::File(path) => fs::read(path),
        };
        let bytes = bytes.map_err(|source| Failure::Unreadable { name: self.name(), sought, source })?;
        String::from_utf8(bytes).map_err(|error| {
            let offset = error.utf8_error().valid_up_to();
            Failure::NotText { name: self.name(), byte: error.as_bytes()[offset], offset }
        })
    }
}

/// Finds the inputs that arguments stand for; one that is named twice, by whatever path, is given once.
#[derive(Default)]
pub(crate) struct Finder {
    seen: HashSet<PathBuf>,
}

impl Finder {
    /// In the order of the arguments; the files of a folder by name.
    pub(crate) fn find(&mut self, arguments: &[PathBuf]) -> Result<Vec<Input>, Failure> {
        let mut inputs = Vec::new();
        for argument in arguments {
            if argument.as_os_str() == STANDARD {
                inputs.extend(self.seen.insert(argument.clone()).then_some(Input::Stdin));
            } else if fs::metadata(argument).map_err(|source| unreadable(argument, source))?.is_dir() {
                for file in sources_in(argument)? {
                    inputs.extend(self.first_time(file)?);
                }
            } else {
                inputs.extend(self.first_time(argument.clone())?);
            }
        }
        Ok(inputs)
    }

    fn first_time(&mut self, path: PathBuf) -> Result<Option<Input>, Failure> {
        let identity = fs::canonicalize(&path).map_err(|source| unreadable(&path, source))?;
        Ok(self.seen.insert(identity).then_some(Input::File(path)))
    }
}

/// The folder that the command runs in.
pub(crate) fn here() -> Result<PathBuf, Failure> {
    env::current_dir().map_err(|source| Failure::Unreadable {
        name: ".".into(),
        sought: FileRole::File,
        source,
    })
}

fn sources_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    walk(folder, &mut files)?;
    if files.is_empty() {
        return Err(Failure::NoSources { folder: folder.display().to_string() });
    }
    Ok(files)
}

/// Hidden folders hold what tools keep for themselves, and a link to a folder may lead back here: both are
/// left out.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let read = |source| unreadable(folder, source);
    let mut entries = fs::read_dir(folder).map_err(read)?.collect::<Result<Vec<_>, _>>().map_err(read)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path().strip_prefix(".").map_or_else(|_| entry.path(), Path::to_owned);
        let is_folder = entry.file_type().map_err(read)?.is_dir();
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if is_folder && !is_hidden {
            walk(&path, files)?;
        } else if !is_folder
            && path.extension().is_some_and(|extension| extension == EXTENSION)
            && path.is_file()
        {
            files.push(path);
        }
    }
    Ok(())
}

fn unreadable(path: &Path, source: io::Error) -> Failure {
    Failure::Unreadable { name: path.display().to_string(), sought: FileRole::Sources, source }
}

//! The handlers that a command is given: from a `handlers.toml`, or from Python files with marked functions.

mod file;
mod trouble;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use afl_agents::registration::Registration;
use afl_agents::{Hosts, HostsConfig, PythonConfig, Roots, discover};

use crate::failure::{Failure, Sought};
pub(crate) use trouble::Trouble;

/// Beside a program, or in a folder of handlers.
pub(crate) const FILE: &str = "handlers.toml";
const PYTHON: &str = "py";

/// Registrations of one process, and the folders that they come from.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Given {
    pub(crate) registrations: Vec<Registration>,
    roots: Vec<PathBuf>,
}

impl Given {
    /// From files and folders; each facet may have one handler.
    pub(crate) async fn read(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut given = Self::default();
        for path in paths {
            let one = read(path).await?;
            for registration in one.registrations {
                let name = &registration.facet_name;
                if let Some(other) = given.registrations.iter().find(|other| other.facet_name == *name) {
                    let modules = [&other.module_uri, &registration.module_uri].map(Clone::clone);
                    return Err(Trouble::Twice { facet: name.clone(), modules }.into());
                }
                given.registrations.push(registration);
            }
            given.roots.extend(one.roots);
        }
        Ok(given)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.registrations.is_empty()
    }

    /// Hosts for these handlers. They may also come from the folders named, and from here.
    pub(crate) fn hosts(&self, folders: &[PathBuf]) -> Result<Arc<Hosts>, Failure> {
        let here = [PathBuf::from(".")];
        let roots = Roots::new(self.roots.iter().chain(folders).chain(&here)).map_err(Trouble::Root)?;
        let config = HostsConfig { roots, ..HostsConfig::default() };
        Ok(Arc::new(Hosts::new(config).map_err(Trouble::Hosts)?))
    }
}

/// A module as it is written on a command line, where paths begin here.
pub(crate) fn module_from_here(written: &str) -> Result<String, Failure> {
    let here = std::env::current_dir().map_err(|source| Failure::Unreadable {
        name: ".".into(),
        sought: Sought::File,
        source,
    })?;
    Ok(file::module(written, &here))
}

async fn read(path: &Path) -> Result<Given, Failure> {
    let unreadable = |source| Trouble::Unreadable { path: path.to_owned(), source };
    let real = std::fs::canonicalize(path).map_err(unreadable)?;
    if real.is_dir() {
        let file = path.join(FILE);
        return if file.is_file() { file::read(&file) } else { marked(path, python_files(&real)?).await };
    }
    if real.extension().is_some_and(|extension| extension == PYTHON) {
        marked(path, vec![real]).await
    } else {
        file::read(path)
    }
}

fn python_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |source| Trouble::Unreadable { path: folder.to_owned(), source };
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(unreadable)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == PYTHON));
    paths.sort();
    Ok(paths)
}

/// The functions that `@handler("ns.Facet")` marks.
async fn marked(path: &Path, files: Vec<PathBuf>) -> Result<Given, Failure> {
    let found = if files.is_empty() {
        Vec::new()
    } else {
        discover(&PythonConfig::default().python, &files).await.map_err(Trouble::Python)?
    };
    let mut given = Given::default();
    for file in found {
        if let Some(reason) = file.unreadable {
            return Err(Trouble::NoPython { file: file.path, reason }.into());
        }
        let module = file::file_uri(&file.path).ok_or_else(|| Trouble::NoUri { path: file.path.clone() })?;
        for marked in file.marked {
            let entrypoint = marked.function;
            given
                .registrations
                .push(Registration { entrypoint, ..Registration::new(marked.facet, module.clone()) });
        }
        given.roots.extend(file.path.parent().map(Path::to_owned));
    }
    given.roots.dedup();
    if given.is_empty() { Err(Trouble::Nothing { path: path.to_owned() }.into()) } else { Ok(given) }
}

//! The handlers that a command is given: from a `handlers.toml`, or from files that declare them.

mod file;
mod trouble;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use afl_agents::registration::Registration;
use afl_agents::{Hosts, HostsConfig, Roots};

use crate::failure::Failure;
use crate::input;
pub(crate) use trouble::Trouble;

/// Beside a program, or in a folder of handlers.
pub(crate) const FILE: &str = "handlers.toml";

/// Registrations of one process, and the folders that they come from.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct HandlerSet {
    pub(crate) registrations: Vec<Registration>,
    roots: Vec<PathBuf>,
}

impl HandlerSet {
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

/// The hosts that every agent has, for reading registrations.
pub(crate) fn readers() -> Hosts {
    Hosts::unstarted(HostsConfig::default())
}

/// Where handlers can be read from, for help and messages.
pub(crate) fn sources() -> String {
    format!("a {FILE}, a folder with one, or {}", readers().discoverable())
}

/// A registration with a module as it is written on a command line, where paths begin here.
pub(crate) fn registration_from_here(facet: &str, module: &str) -> Result<Registration, Failure> {
    let mut registration = Registration::new(facet, module);
    readers().anchor(&mut registration, &input::here()?);
    Ok(registration)
}

async fn read(path: &Path) -> Result<HandlerSet, Failure> {
    let unreadable = |source| Trouble::Unreadable { path: path.to_owned(), source };
    let real = std::fs::canonicalize(path).map_err(unreadable)?;
    let hosts = readers();
    if real.is_dir() {
        let file = path.join(FILE);
        return if file.is_file() {
            file::read(&file, &hosts)
        } else {
            declared(path, &files_in(&real, &hosts)?, &hosts).await
        };
    }
    if hosts.discovers_in(&real) { declared(path, &[real], &hosts).await } else { file::read(path, &hosts) }
}

fn files_in(folder: &Path, hosts: &Hosts) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |source| Trouble::Unreadable { path: folder.to_owned(), source };
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(unreadable)?;
    paths.retain(|path| hosts.discovers_in(path));
    paths.sort();
    Ok(paths)
}

/// The handlers that files declare themselves, such as the functions that `@handler("ns.Facet")` marks.
async fn declared(path: &Path, files: &[PathBuf], hosts: &Hosts) -> Result<HandlerSet, Failure> {
    let mut given = HandlerSet::default();
    for file in hosts.discover(files).await.map_err(Trouble::Discovery)? {
        match file.registrations {
            Ok(registrations) => given.registrations.extend(registrations),
            Err(reason) => return Err(Trouble::Undiscoverable { file: file.path, reason }.into()),
        }
        given.roots.extend(file.path.parent().map(Path::to_owned));
    }
    given.roots.dedup();
    if given.is_empty() { Err(Trouble::Nothing { path: path.to_owned() }.into()) } else { Ok(given) }
}

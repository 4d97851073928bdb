//! A host runs the handlers of one kind: Python modules, programs, HTTP services, built-in ones.
//!
//! The rest of the program knows hosts only through [`Host`]. A new host is one file or folder here and one line of the
//! list in `list.rs`; registrations, `handlers.toml`, the command line and the worker find it there.
//!
//! A host gives its handlers in two ways. [`Host::parse`] makes one from a registration whose `module_uri` has a scheme
//! of the host. [`Host::offers`] has those that need no registration, by the names of their tasks.

mod builtin;
mod exec;
mod http;
mod list;
mod python;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io, iter};

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::handler::{Handler, HandlerFailure};
use crate::registration::{Checksum, Registration};

pub use list::{Hosts, HostsConfig};
pub use python::{MAX_RESULT_BYTES, PythonConfig, SCRIPT_TASK};

#[async_trait]
pub trait Host: Send + Sync {
    /// The schemes of `module_uri` that are its own, each with how people write such a URI. The empty scheme is a URI
    /// without one.
    fn schemes(&self) -> &'static [(&'static str, &'static str)];

    /// The options that it reads from a registration's metadata.
    fn options(&self) -> &'static [HostOption] {
        &[]
    }

    /// Whether its URIs name files, so that a registration may state a checksum.
    fn names_files(&self) -> bool {
        false
    }

    /// The handler that a registration names, or the problem of its URI.
    fn parse(self: Arc<Self>, spec: HandlerSpec<'_>) -> Result<Box<dyn HostedHandler>, String>;

    /// Makes paths absolute that a person wrote relative to `folder`. Every host is asked about every registration.
    fn anchor(&self, _registration: &mut Registration, _folder: &Path) {}

    /// Which files declare handlers, where this host reads them.
    fn discovery(&self) -> Option<Discovery> {
        None
    }

    /// The handlers that files declare, one result for each file, in their order. Runs nothing of them.
    async fn discover(&self, _files: &[PathBuf]) -> Result<Vec<HandlerFile>, HandlerFailure> {
        Ok(Vec::new())
    }

    /// Handlers that need no registration, by the names of their tasks.
    fn offers(&self) -> Offers<'_> {
        Box::new(iter::empty())
    }

    /// Ends idle processes; each may clean up.
    async fn close(&self) {}
}

pub type Offers<'a> = Box<dyn Iterator<Item = (&'a str, &'a Arc<dyn Handler>)> + 'a>;

/// A handler that a registration names.
#[async_trait]
pub trait HostedHandler: Handler + fmt::Debug {
    /// Whether it is complete, before work arrives. Loads it, and calls nothing.
    async fn check(&self) -> Result<(), HandlerFailure>;

    /// The registrations that the handler's module asks for, as JSON; `None` where a module cannot ask.
    async fn records(&self) -> Result<Option<Vec<Value>>, HandlerFailure> {
        Ok(None)
    }
}

/// A registration, with the fields that mean the same for every host.
#[derive(Clone, Copy, Debug)]
pub struct HandlerSpec<'a> {
    pub registration: &'a Registration,
    pub checksum: Option<Checksum>,
}

impl HandlerSpec<'_> {
    /// An option of the metadata. [`Hosts`] has refused an unreadable one before.
    pub fn option<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        read_option(self.registration.metadata.get(name)?)
    }

    /// The URI without its scheme.
    pub fn rest_of_uri(&self) -> &str {
        let uri = &self.registration.module_uri;
        uri.split_once(':').map_or(uri, |(_, rest)| rest)
    }
}

/// A key of the metadata that a host reads. All hosts share one name space: each key is checked for every registration.
#[derive(Clone, Copy, Debug)]
pub struct HostOption {
    pub name: &'static str,
    /// The expected value, worded to follow "must be".
    pub expected: &'static str,
    pub fits: fn(&Value) -> bool,
}

impl HostOption {
    /// An option that is any value of a type.
    pub const fn of<T: DeserializeOwned>(name: &'static str, expected: &'static str) -> Self {
        Self { name, expected, fits: |value| read_option::<T>(value).is_some() }
    }
}

fn read_option<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

/// The files in which a host discovers handlers.
#[derive(Clone, Copy, Debug)]
pub struct Discovery {
    pub extension: &'static str,
    /// The kind of files, in the plural, for messages and help.
    pub form: &'static str,
}

/// The handlers that one file declares.
#[derive(Clone, PartialEq, Debug)]
pub struct HandlerFile {
    pub path: PathBuf,
    /// Or why it cannot be read.
    pub registrations: Result<Vec<Registration>, String>,
}

/// Why handlers cannot run on this machine.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("cannot start the shell that ends handlers when the agent is killed")]
    Guardian(#[source] io::Error),
    #[error("cannot set up HTTP")]
    Http(#[source] reqwest::Error),
}

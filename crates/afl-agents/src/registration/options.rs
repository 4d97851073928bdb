//! The parts of a registration's metadata that the hosts read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::DeserializeOwned;

use super::Problem;
use crate::handler::Object;

#[derive(Clone, PartialEq, Default, Debug)]
pub struct Options {
    /// `python`: the virtual environment (its directory) or the interpreter of a Python handler.
    pub python: Option<PathBuf>,
    /// `args`: the arguments of a program.
    pub args: Vec<String>,
    /// `headers`: what an HTTP handler gets in addition.
    pub headers: BTreeMap<String, String>,
    /// `secret`: the name of the agent's secret that HTTP calls are signed with.
    pub secret: Option<String>,
}

impl Options {
    pub(super) fn read(metadata: &Object) -> Result<Self, Problem> {
        Ok(Self {
            python: read::<String>(metadata, "python", "a path as text")?.map(PathBuf::from),
            args: read(metadata, "args", "a list of texts")?.unwrap_or_default(),
            headers: read(metadata, "headers", "an object of texts")?.unwrap_or_default(),
            secret: read(metadata, "secret", "the name of a secret of the agent")?,
        })
    }
}

fn read<T: DeserializeOwned>(
    metadata: &Object,
    name: &'static str,
    expected: &'static str,
) -> Result<Option<T>, Problem> {
    let value = metadata.get(name).map(|value| serde_json::from_value(value.clone()));
    value.transpose().map_err(|_| Problem::Metadata { name, expected })
}

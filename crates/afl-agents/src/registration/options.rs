//! The parts of a registration's metadata that the hosts read.

use std::collections::HashMap;
use std::path::PathBuf;

use reqwest::header::HeaderMap;
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
    pub headers: HeaderMap,
    /// `secret`: the name of the agent's secret that HTTP calls are signed with.
    pub secret: Option<String>,
}

impl Options {
    pub(super) fn read(metadata: &Object) -> Result<Self, Problem> {
        Ok(Self {
            python: read::<String>(metadata, "python", "a path as text")?.map(PathBuf::from),
            args: read(metadata, "args", "a list of texts")?.unwrap_or_default(),
            headers: headers(metadata)?,
            secret: read(metadata, "secret", "the name of a secret of the agent")?,
        })
    }
}

fn headers(metadata: &Object) -> Result<HeaderMap, Problem> {
    let expected = "an object of HTTP headers as texts";
    let texts: HashMap<String, String> = read(metadata, "headers", expected)?.unwrap_or_default();
    HeaderMap::try_from(&texts).map_err(|_| Problem::Metadata { name: "headers", expected })
}

fn read<T: DeserializeOwned>(
    metadata: &Object,
    name: &'static str,
    expected: &'static str,
) -> Result<Option<T>, Problem> {
    let value = metadata.get(name).map(|value| serde_json::from_value(value.clone()));
    value.transpose().map_err(|_| Problem::Metadata { name, expected })
}

//! Handler registrations (document 000 §8.5): which handler does the work of which event facet.

mod checksum;
mod lookup;

use std::fmt;
use std::time::Duration;

use afl_runtime::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use checksum::Checksum;
pub use lookup::{BadTopic, NoHandler, Topics, find};

use crate::handler::{HandlerFailure, Object};

/// The record under its documented names. [`Hosts::parse`](crate::Hosts::parse) lists the problems of one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Registration {
    /// The key: `ns.Facet`, or a short name, which stands for any namespace.
    pub facet_name: String,
    pub module_uri: String,
    #[serde(default = "default_entrypoint")]
    pub entrypoint: String,
    #[serde(default = "default_version")]
    pub version: String,
    /// The SHA-256 of the module or program, or nothing.
    #[serde(default)]
    pub checksum: String,
    /// From the last sign of life; see [`Registration::timeout_of`].
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: i64,
    /// Informational.
    #[serde(default)]
    pub requirements: Vec<String>,
    /// Given to the handler as `_handler_metadata`. Hosts read [options](crate::host::HostOption) from it.
    #[serde(default)]
    pub metadata: Object,
    #[serde(default)]
    pub created: i64,
    #[serde(default)]
    pub updated: i64,
}

/// One thing that is wrong with a registration, in the order in which they are reported.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum RegistrationProblem {
    #[error("facet_name `{name}` is no name of a facet: write `ns.Facet` or `Facet`")]
    FacetName { name: String },
    #[error("module_uri `{uri}` {reason}")]
    ModuleUri { uri: String, reason: String },
    #[error("entrypoint `{name}` is no name of a Python function")]
    Entrypoint { name: String },
    #[error(
        "checksum `{text}` is no SHA-256: write its 64 hexadecimal digits, as `sha256sum` prints them, or leave it empty"
    )]
    Checksum { text: String },
    #[error("checksum is given, but `{uri}` names no file to compare it with: leave it empty")]
    ChecksumOfNoFile { uri: String },
    #[error("timeout_ms is {timeout_ms}, and must be from 1 to {MAX_TIMEOUT_MS}, which is a week")]
    Timeout { timeout_ms: i64 },
    #[error("metadata.{name} must be {expected}")]
    Metadata { name: &'static str, expected: &'static str },
}

pub const DEFAULT_ENTRYPOINT: &str = "handle";
pub const DEFAULT_VERSION: &str = "1.0.0";
pub const DEFAULT_TIMEOUT_MS: i64 = 30_000;
/// A handler that is silent for longer is not alive.
pub const MAX_TIMEOUT_MS: i64 = 7 * 24 * 3_600_000;

fn default_entrypoint() -> String {
    DEFAULT_ENTRYPOINT.to_owned()
}

fn default_version() -> String {
    DEFAULT_VERSION.to_owned()
}

fn default_timeout_ms() -> i64 {
    DEFAULT_TIMEOUT_MS
}

impl Registration {
    /// How long an attempt may be silent, when its step may say so too. The default is for steps that say nothing: a
    /// step's own `Heartbeat` goes before it, be it longer or shorter. Any other time was chosen for this handler, and no
    /// step goes beyond it.
    pub fn timeout_of(&self, step: Option<Duration>) -> Duration {
        let ms = match step.map(|step| Millis::from(step).0.clamp(1, MAX_TIMEOUT_MS)) {
            None => self.timeout_ms,
            Some(step) if self.timeout_ms == DEFAULT_TIMEOUT_MS => step,
            Some(step) => self.timeout_ms.min(step),
        };
        Duration::from_millis(ms.unsigned_abs())
    }

    /// The handler's version and checksum, as far as the registration states them.
    pub fn words(&self) -> String {
        let version = Some(&*self.version).filter(|version| *version != DEFAULT_VERSION);
        let checksum = Some(&*self.checksum).filter(|checksum| !checksum.is_empty());
        let said = [("version", version), ("sha256", checksum)];
        let said = said.into_iter().filter_map(|(what, said)| Some(format!("{what} {}", said?)));
        said.collect::<Vec<_>>().join(", ")
    }

    /// With every default.
    pub fn new(facet_name: impl Into<String>, module_uri: impl Into<String>) -> Self {
        Self {
            facet_name: facet_name.into(),
            module_uri: module_uri.into(),
            entrypoint: default_entrypoint(),
            version: default_version(),
            checksum: String::new(),
            timeout_ms: DEFAULT_TIMEOUT_MS,
            requirements: Vec::new(),
            metadata: Object::new(),
            created: 0,
            updated: 0,
        }
    }

    /// The module's own registration, completed from this one.
    pub(crate) fn completed(&self, record: Value) -> Result<Self, HandlerFailure> {
        let mut fields = serde_json::to_value(self).expect("a registration has a JSON form");
        if let (Value::Object(fields), Value::Object(said)) = (&mut fields, record) {
            let is_said = |value: &Value| value.as_str() != Some("");
            fields.extend(said.into_iter().filter(|(_, value)| is_said(value)));
        }
        serde_json::from_value(fields).map_err(|error| {
            let message = format!("{} registers something that cannot be read: {error}", self.module_uri);
            HandlerFailure::invalid_result(message)
        })
    }

    /// The problems that need no host to find: names and a timeout that cannot be.
    pub(crate) fn problems(&self) -> impl Iterator<Item = RegistrationProblem> {
        let facet = DottedName::parse(&self.facet_name)
            .is_none()
            .then(|| RegistrationProblem::FacetName { name: self.facet_name.clone() });
        let entrypoint = (!is_identifier(&self.entrypoint))
            .then(|| RegistrationProblem::Entrypoint { name: self.entrypoint.clone() });
        let timeout = (!(1..=MAX_TIMEOUT_MS).contains(&self.timeout_ms))
            .then_some(RegistrationProblem::Timeout { timeout_ms: self.timeout_ms });
        [facet, entrypoint, timeout].into_iter().flatten()
    }

    pub(crate) fn parse_checksum(&self) -> Result<Option<Checksum>, RegistrationProblem> {
        if self.checksum.is_empty() {
            return Ok(None);
        }
        let checksum = Checksum::parse(&self.checksum);
        checksum.map(Some).ok_or_else(|| RegistrationProblem::Checksum { text: self.checksum.clone() })
    }
}

/// Identifiers joined by dots.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DottedName(String);

impl DottedName {
    pub fn parse(text: &str) -> Option<Self> {
        text.split('.').all(is_identifier).then(|| Self(text.to_owned()))
    }

    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('.')
    }
}

impl fmt::Display for DottedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_identifier(text: &str) -> bool {
    let mut letters = text.chars();
    let starts = letters.next().is_some_and(|first| first == '_' || first.is_alphanumeric());
    starts && letters.all(|letter| letter == '_' || letter.is_alphanumeric())
}

#[cfg(test)]
mod tests;

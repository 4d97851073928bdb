//! `afl handlers register` and `remove`.

use std::path::PathBuf;

use afl_agents::Registry;
use afl_agents::registration::{DEFAULT_ENTRYPOINT, DEFAULT_TIMEOUT_MS, DEFAULT_VERSION, Registration};
use afl_engine::value::{Map, Value};
use clap::Args;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::handlers::{self, Given, Trouble};
use crate::output;
use crate::store::{self, IfMissing};

#[derive(Args)]
pub(super) struct RegisterHandler {
    /// The event facet, such as `billing.Charge`
    #[arg(required_unless_present = "from", requires = "module")]
    facet: Option<String>,
    #[arg(help = module_help())]
    module: Option<String>,
    /// The function of a Python module
    #[arg(long, value_name = "NAME", default_value = DEFAULT_ENTRYPOINT)]
    entrypoint: String,
    /// How long the handler may be silent; a step's own `Timeout` replaces the default, and can only shorten a time given here
    #[arg(long, value_name = "MILLIS", default_value_t = DEFAULT_TIMEOUT_MS)]
    timeout_ms: i64,
    /// The SHA-256 that the file must have
    #[arg(long, value_name = "SHA256", default_value = "")]
    checksum: String,
    /// The version of the handler
    #[arg(long = "handler-version", value_name = "TEXT", default_value = DEFAULT_VERSION)]
    version: String,
    #[arg(long, value_name = "JSON", default_value = "{}", help = metadata_help())]
    metadata: String,
    #[arg(long, value_name = "FILE|DIR", conflicts_with = "facet")]
    #[arg(help = format!("Register all that these declare: {}", handlers::sources()))]
    from: Vec<PathBuf>,
    #[command(flatten)]
    store: store::Options,
}

fn module_help() -> String {
    format!("Where the handler is: {}; a file may also be given by its path", handlers::readers().forms())
}

fn metadata_help() -> String {
    format!("A JSON object for the handler; its host reads {}", handlers::readers().option_names())
}

pub(super) async fn register(options: &RegisterHandler) -> Result<Exit, Failure> {
    let registrations = match (&options.facet, &options.module) {
        (Some(facet), Some(module)) => vec![options.one(facet, module)?],
        (_, None) | (None, _) => Given::read(&options.from).await?.registrations,
    };
    let service = options.store.open(IfMissing::Create).await?;
    let registry = Registry::new(&service);
    for registration in registrations {
        let kept = registry.register(registration).await?;
        output::say(&format!("{} is done by {}\n", kept.facet_name, place(&kept)));
    }
    Ok(Exit::Fine)
}

impl RegisterHandler {
    fn one(&self, facet: &str, module: &str) -> Result<Registration, Failure> {
        let metadata: Map<String, Value> = serde_json::from_str(&self.metadata)
            .map_err(|error| Trouble::BadMetadata { reason: error.to_string() })?;
        Ok(Registration {
            entrypoint: self.entrypoint.clone(),
            version: self.version.clone(),
            checksum: self.checksum.clone(),
            timeout_ms: self.timeout_ms,
            metadata,
            ..handlers::registration_from_here(facet, module)?
        })
    }
}

/// Where the handler is, with its function.
pub(super) fn place(registration: &Registration) -> String {
    let Registration { module_uri, entrypoint, .. } = registration;
    if entrypoint == DEFAULT_ENTRYPOINT {
        module_uri.clone()
    } else {
        format!("{entrypoint} of {module_uri}")
    }
}

#[derive(Args)]
pub(super) struct RemoveHandler {
    /// The event facet, as it was registered
    facet: String,
    #[command(flatten)]
    store: store::Options,
}

pub(super) async fn remove(options: &RemoveHandler) -> Result<Exit, Failure> {
    let service = options.store.open(IfMissing::Refuse).await?;
    match Registry::new(&service).remove(&options.facet).await? {
        Some(removed) => {
            output::say(&format!("{} has no handler any more\n", removed.facet_name));
            Ok(Exit::Fine)
        }
        None => Err(Trouble::NotRegistered { facet: options.facet.clone() }.into()),
    }
}

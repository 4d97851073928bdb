//! From the address of a store to the service above it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afl_backends::{KINDS, StoreAddress, StoreKind, WaitObserver};
use afl_runtime::Service;
use afl_runtime::agent::Actor;
use afl_store::backend::Backend;
use afl_store::record::Tenant;
use clap::{ArgMatches, Args};

use crate::failure::Failure;
use crate::input;
use crate::output;
use crate::shell::word;

/// Beside the sources of a project, as `.git` is.
const FOLDER: &str = ".afl";
const FILE: &str = "store.db";

/// Keeps the store of a project out of its history.
const IGNORE_FILE: &str = ".gitignore";
const IGNORE_ALL: &str = "*\n";

const STORE: &str = "store";

#[derive(Args, Clone, Debug, Default)]
#[group(skip)]
pub(crate) struct Options {
    #[arg(
        id = STORE,
        help = help(),
        long = "store",
        value_name = "URL",
        env = "AFL_STORE",
        hide_env_values = true,
        display_order = 800
    )]
    url: Option<String>,
}

/// For a command that lists records of the store.
#[derive(Args)]
#[group(skip)]
pub(crate) struct ListOptions {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: Options,
}

/// For a command that shows one thing of the store.
#[derive(Args)]
#[group(skip)]
pub(crate) struct ObjectOptions {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: Options,
}

/// Reads how many records to list. A list of none would look like a store that holds nothing.
pub(crate) fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("write 1 or more".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}

fn help() -> String {
    let forms = forms(|kind| format!("`{}`", kind.form));
    format!("Where runs are kept: {forms}; without it, a file in the nearest `.afl` folder from here upwards")
}

/// The kinds of stores: `A, B or C`.
pub(crate) fn forms(form: impl Fn(&StoreKind) -> String) -> String {
    let mut forms: Vec<String> = KINDS.iter().map(|kind| form(kind)).collect();
    let last = forms.pop().expect("there are kinds");
    format!("{} or {last}", forms.join(", "))
}

/// Whether a command makes the store that is not there yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IfMissing {
    Create,
    Refuse,
}

impl Options {
    /// The store that a command was given, if it takes one.
    pub(crate) fn of(command: &ArgMatches) -> Self {
        Self { url: command.try_get_one(STORE).ok().flatten().cloned() }
    }

    pub(crate) async fn open(&self, missing: IfMissing) -> Result<Service, Failure> {
        let backend = backend(self.address()?, missing).await?;
        let tenant = Tenant::new(Tenant::LOCAL).expect("the local tenant has a proper name");
        Ok(Service::new(backend, tenant).acting_as(Actor::User(user())))
    }

    /// A command of `afl` to be copied, which finds the same store.
    pub(crate) fn command(&self, command: &str) -> String {
        format!("`afl {command}{}`", self.flag())
    }

    /// The flag that a suggested command needs to find the same store.
    pub(crate) fn flag(&self) -> String {
        let from_environment = env::var("AFL_STORE").ok();
        match &self.url {
            Some(url) if from_environment.as_ref() != Some(url) => {
                format!(" --store {}", word(&without_password(url)))
            }
            Some(_) | None => String::new(),
        }
    }

    /// Whether the store outlives this command.
    pub(crate) fn is_kept(&self) -> bool {
        self.address().map_or(true, |address| address.kind.is_kept)
    }

    fn address(&self) -> Result<StoreAddress, Failure> {
        let url = self.url.as_deref().filter(|url| !url.is_empty()).unwrap_or(PROJECT_STORE);
        StoreAddress::parse(url).ok_or_else(|| Failure::BadStoreUrl { url: without_password(url) })
    }
}

/// The file of the nearest `.afl` folder.
const PROJECT_STORE: &str = "sqlite:";

async fn backend(address: StoreAddress, missing: IfMissing) -> Result<Arc<dyn Backend>, Failure> {
    let address = match address.file() {
        Some("") => {
            let file = project_file(missing)?;
            StoreAddress::parse(&format!("{PROJECT_STORE}{}", file.display())).expect("a path is an address")
        }
        Some(_) | None => address,
    };
    if let Some(file) = address.file()
        && missing == IfMissing::Refuse
        && !Path::new(file).exists()
    {
        return Err(Failure::NoStore { path: file.to_owned() });
    }
    let on_wait = WaitObserver::new(|error| output::say(&format!("warning: {error}; waiting for it\n")));
    Ok(address.open(on_wait).await.map_err(afl_runtime::Error::from)?)
}

/// The user of this machine, for the history of decisions.
fn user() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| env::var(name).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

fn project_file(missing: IfMissing) -> Result<PathBuf, Failure> {
    let here = input::here()?;
    if let Some(folder) = here.ancestors().map(|folder| folder.join(FOLDER)).find(|folder| folder.is_dir()) {
        let file = folder.join(FILE);
        // Short when it is here, so that messages are.
        return Ok(file.strip_prefix(&here).map(Path::to_owned).unwrap_or(file));
    }
    let folder = Path::new(FOLDER);
    if missing == IfMissing::Create {
        let unmade = |source| Failure::NoFolder { folder: FOLDER, source };
        fs::create_dir(folder).map_err(unmade)?;
        fs::write(folder.join(IGNORE_FILE), IGNORE_ALL).map_err(unmade)?;
    }
    Ok(folder.join(FILE))
}

/// Addresses end up in messages, and messages in logs.
fn without_password(url: &str) -> String {
    let login_only = match url.split_once("://").map(|(scheme, rest)| (scheme, rest.rsplit_once('@'))) {
        Some((scheme, Some((login, host)))) => {
            let user = login.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{host}")
        }
        Some((_, None)) | None => url.to_owned(),
    };
    match login_only.split_once(PASSWORD) {
        Some((before, after)) => {
            let end = after.find(['&', ' ']).unwrap_or(after.len());
            format!("{before}{PASSWORD}…{}", &after[end..])
        }
        None => login_only,
    }
}

/// How a password is given among other settings.
const PASSWORD: &str = "password=";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_repeated() {
        assert_eq!(without_password("postgres://me:se@cret@host/db"), "postgres://me@host/db");
        assert_eq!(without_password("postgres://host/db"), "postgres://host/db");
        assert_eq!(without_password("sqlite:a.db"), "sqlite:a.db");
        assert_eq!(
            without_password("postgres://host/db?password=x&a=b"),
            "postgres://host/db?password=…&a=b"
        );
        assert_eq!(without_password("host=h password=secret"), "host=h password=…");
    }
}

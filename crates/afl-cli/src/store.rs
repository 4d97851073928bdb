//! From the address of a store to the service above it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afl_backends::postgres::{CONNECTIONS, Postgres};
use afl_backends::sqlite::{self, Sqlite, WaitObserver};
use afl_runtime::Service;
use afl_runtime::agent::Actor;
use afl_store::backend::Backend;
use afl_store::clock::Clock;
use afl_store::memory::Memory;
use afl_store::record::Tenant;
use clap::{ArgMatches, Args};

use crate::failure::{Failure, Sought};
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
    /// Where runs are kept: `sqlite:PATH`, `postgres://USER:PASSWORD@HOST/DATABASE` or `memory:`; without it, a file in
    /// the nearest `.afl` folder from here upwards
    #[arg(
        id = STORE,
        long = "store",
        value_name = "URL",
        env = "AFL_STORE",
        hide_env_values = true,
        display_order = 800
    )]
    url: Option<String>,
}

/// Whether a command makes the store that is not there yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Missing {
    Create,
    Refuse,
}

/// How long what is stored stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lifetime {
    Kept,
    ThisCommand,
}

impl Options {
    /// What a command was given, if it takes a store.
    pub(crate) fn of(command: &ArgMatches) -> Self {
        Self { url: command.try_get_one(STORE).ok().flatten().cloned() }
    }

    pub(crate) async fn open(&self, missing: Missing) -> Result<Service, Failure> {
        let backend = backend(&self.address()?, missing).await?;
        let tenant = Tenant::new(Tenant::LOCAL).expect("the local tenant has a proper name");
        Ok(Service::new(backend, tenant).acting_as(Actor::User(user())))
    }

    /// A command of `afl` to be copied, which finds the same store.
    pub(crate) fn command(&self, command: &str) -> String {
        format!("`afl {command}{}`", self.flag())
    }

    /// What a command that is suggested must carry to find the same store.
    pub(crate) fn flag(&self) -> String {
        let from_environment = env::var("AFL_STORE").ok();
        match &self.url {
            Some(url) if from_environment.as_ref() != Some(url) => {
                format!(" --store {}", word(&without_password(url)))
            }
            Some(_) | None => String::new(),
        }
    }

    pub(crate) fn lifetime(&self) -> Lifetime {
        match self.address() {
            Ok(Address::Memory) => Lifetime::ThisCommand,
            Ok(Address::Sqlite(_) | Address::Postgres(_)) | Err(_) => Lifetime::Kept,
        }
    }

    fn address(&self) -> Result<Address, Failure> {
        match self.url.as_deref() {
            Some(url) if !url.is_empty() => Address::parse(url),
            Some(_) | None => Ok(Address::Sqlite(Place::Project)),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Address {
    Memory,
    Sqlite(Place),
    Postgres(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    File(PathBuf),
    /// The file of the nearest `.afl` folder.
    Project,
}

impl Address {
    fn parse(url: &str) -> Result<Self, Failure> {
        let path = |path: &str| match path.trim_start_matches("//") {
            "" => Place::Project,
            _ => Place::File(path.strip_prefix("//").unwrap_or(path).into()),
        };
        match url.split_once(':') {
            Some(("memory", "" | "//")) => Ok(Self::Memory),
            Some(("sqlite", rest)) => Ok(Self::Sqlite(path(rest))),
            // The driver ends a login at its first `@`, and would take the rest of a password for the host.
            Some(("postgres" | "postgresql", rest))
                if rest.starts_with("//") && rest.matches('@').count() < 2 =>
            {
                Ok(Self::Postgres(url.to_owned()))
            }
            Some(_) | None => Err(Failure::BadStoreUrl { url: without_password(url) }),
        }
    }
}

async fn backend(address: &Address, missing: Missing) -> Result<Arc<dyn Backend>, Failure> {
    match address {
        Address::Memory => Ok(Arc::new(Memory::new(Clock::System))),
        Address::Postgres(url) => Ok(Arc::new(Postgres::connect(url, CONNECTIONS).await?)),
        Address::Sqlite(place) => {
            let file = match place {
                Place::File(file) => file.clone(),
                Place::Project => project_file(missing)?,
            };
            if missing == Missing::Refuse && !file.exists() {
                return Err(Failure::NoStore { path: file.display().to_string() });
            }
            let on_wait =
                WaitObserver::new(|error| output::say(&format!("warning: {error}; waiting for it\n")));
            Ok(Arc::new(Sqlite::open(&file, sqlite::Options { on_wait, ..sqlite::Options::default() })?))
        }
    }
}

/// Who sits at this machine, for the history of what they decide.
fn user() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| env::var(name).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

fn project_file(missing: Missing) -> Result<PathBuf, Failure> {
    let here = env::current_dir().map_err(|source| Failure::Unreadable {
        name: ".".into(),
        sought: Sought::File,
        source,
    })?;
    if let Some(folder) = here.ancestors().map(|folder| folder.join(FOLDER)).find(|folder| folder.is_dir()) {
        return Ok(shown_from(&here, folder.join(FILE)));
    }
    let folder = Path::new(FOLDER);
    if missing == Missing::Create {
        let unmade = |source| Failure::NoFolder { folder: FOLDER, source };
        fs::create_dir(folder).map_err(unmade)?;
        fs::write(folder.join(IGNORE_FILE), IGNORE_ALL).map_err(unmade)?;
    }
    Ok(folder.join(FILE))
}

/// Short when it is here, so that messages are.
fn shown_from(here: &Path, file: PathBuf) -> PathBuf {
    file.strip_prefix(here).map(Path::to_owned).unwrap_or(file)
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
    fn an_address_is_a_scheme_and_a_place() {
        let file = |path: &str| Address::Sqlite(Place::File(path.into()));
        assert_eq!(Address::parse("memory:").unwrap(), Address::Memory);
        assert_eq!(Address::parse("sqlite:").unwrap(), Address::Sqlite(Place::Project));
        assert_eq!(Address::parse("sqlite:a/b.db").unwrap(), file("a/b.db"));
        assert_eq!(Address::parse("sqlite:/a/b.db").unwrap(), file("/a/b.db"));
        assert_eq!(Address::parse("sqlite:///a/b.db").unwrap(), file("/a/b.db"));
        for wrong in ["a.db", "mysql://x", "memory:x", "postgres:x", "postgres://me:se@cret@host/db", ""] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }

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

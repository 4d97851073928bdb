//! The servers that tests need: installed when missing, started before the tests, stopped after them.

use std::any::Any;
use std::env;
use std::fs;
use std::process::Command;

use afl_testbed::{faketime, postgres};
use anyhow::{Context, Result, bail};

/// One kind of server. To add one, add its entry to [`KINDS`].
struct ServiceKind {
    name: &'static str,
    /// The environment variable with its address for the tests; one that is set already stays as it is.
    variable: &'static str,
    /// Of Debian and its children.
    package: &'static str,
    is_installed: fn() -> bool,
    start: fn() -> Result<RunningService>,
}

/// A started server; it stops when it is dropped.
struct RunningService {
    url: String,
    _server: Box<dyn Any>,
}

const KINDS: &[ServiceKind] = &[ServiceKind {
    name: "PostgreSQL",
    variable: postgres::URL_VARIABLE,
    package: postgres::PACKAGE,
    is_installed: postgres::is_installed,
    start: || {
        let server = postgres::PostgresServer::start()?;
        Ok(RunningService { url: server.url(), _server: Box::new(server) })
    },
}];

/// All servers of the tests; they stop when this is dropped, and also when this process is killed.
pub(crate) struct Services {
    running: Vec<(&'static ServiceKind, RunningService)>,
}

impl Services {
    pub(crate) fn start() -> Result<Self> {
        let wanted: Vec<&ServiceKind> =
            KINDS.iter().filter(|kind| env::var_os(kind.variable).is_none()).collect();
        let missing: Vec<&ServiceKind> =
            wanted.iter().copied().filter(|kind| !(kind.is_installed)()).collect();
        let mut packages: Vec<&str> = missing.iter().map(|kind| kind.package).collect();
        packages.extend((!faketime::is_installed()).then_some(faketime::PACKAGE));
        if !packages.is_empty() && can_install() {
            install(&packages)?;
        }
        let mut running = Vec::new();
        for kind in wanted {
            let server =
                (kind.start)().with_context(|| format!("cannot start {} for the tests", kind.name))?;
            running.push((kind, server));
        }
        Ok(Self { running })
    }

    /// For the environment of the tests.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.running.iter().map(|(kind, server)| (kind.variable, server.url.as_str()))
    }
}

/// Whether this is root on a system with apt. Other users get a message on what to install when a server cannot start.
fn can_install() -> bool {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    is_root && fs::exists("/usr/bin/apt-get").unwrap_or(false)
}

fn install(packages: &[&str]) -> Result<()> {
    eprintln!("installing {} for the tests", packages.join(", "));
    apt_get(&["update", "--quiet"])?;
    apt_get(&[&["install", "--quiet", "--yes", "--no-install-recommends"], packages].concat())
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let status = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .context("cannot start apt-get")?;
    if !status.success() {
        bail!("`apt-get {}` failed: {status}", arguments.join(" "));
    }
    Ok(())
}

//! A PostgreSQL server of one's own, on a free port of this machine, as durable as a real one.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::faketime;
use crate::keeper::{Keeper, StartError};

/// The environment variable in which `cargo xtask test` passes the URL of the shared server to the tests.
pub const URL_VARIABLE: &str = "AFL_TEST_POSTGRES";

/// Of Debian and its children.
pub const PACKAGE: &str = "postgresql";

pub(crate) const HOW_TO_INSTALL: &str = "install the PostgreSQL server (Debian, Ubuntu: `apt-get install postgresql`; \
     Fedora: `dnf install postgresql-server`; macOS: `brew install postgresql`) and run again";

/// Another process may take a port between our looking and the server's binding it.
const PORTS_TRIED: usize = 5;

const INITDB: &str = "initdb";
const PG_CTL: &str = "pg_ctl";

/// Answers go to descriptor 3, apart from what the programs say.
const SCRIPT: &str = r#"
exec 3>&1 >>log 2>&1
trap '' INT
while read -r order argument; do
    case $order in
        create)
            "$BIN/initdb" --no-sync -D data -U postgres -A scram-sha-256 --pwfile=password -E UTF8 --no-locale
            status=$?; rm -f password ;;
        copy)
            "$BIN/pg_basebackup" --no-sync -D data -U postgres -h 127.0.0.1 -p "$argument" -X stream -R -c fast
            status=$? ;;
        promote) "$BIN/pg_ctl" -D data -w -t 60 promote ; status=$? ;;
        start) "$BIN/pg_ctl" -D data -l log -w -t 60 -o "-p $argument" start ; status=$? ;;
        stop) "$BIN/pg_ctl" -D data -w -m fast stop ; status=$? ;;
        crash) "$BIN/pg_ctl" -D data -w -m immediate stop ; status=$? ;;
        *) status=1 ;;
    esac
    if [ $status = 0 ]; then echo ok >&3; else echo failed >&3; fi
done
"$BIN/pg_ctl" -D data -w -m immediate stop
rm -rf "$PWD"
"#;

/// Runs until it is dropped.
#[derive(Debug)]
pub struct PostgresServer {
    keeper: Keeper,
    port: u16,
    password: String,
}

/// The server that `cargo xtask test` started for all tests.
///
/// # Panics
/// When there is none: a test that skips itself proves nothing.
pub fn shared_url() -> String {
    env::var(URL_VARIABLE).unwrap_or_else(|_| {
        panic!(
            "{URL_VARIABLE} is not set: run `cargo xtask test`, which starts a PostgreSQL server for the tests, \
             or set it to the URL of a server where they may create databases"
        )
    })
}

/// Whether the programs are here that [`PostgresServer::start`] needs.
pub fn is_installed() -> bool {
    programs().is_ok()
}

impl PostgresServer {
    pub fn start() -> Result<Self, StartError> {
        Self::start_with("")
    }

    /// With these lines added to `postgresql.conf`.
    pub fn start_with(settings: &str) -> Result<Self, StartError> {
        Self::start_in(settings, &[])
    }

    /// With a wall clock that follows the offset in a file, which any user may read.
    pub fn start_with_clock(offset: &Path) -> Result<Self, StartError> {
        Self::start_in("", &faketime::variables(offset))
    }

    fn start_in(settings: &str, environment: &[(&str, String)]) -> Result<Self, StartError> {
        let programs = programs()?;
        let password = secret().map_err(|source| StartError::Io { what: "make a password", source })?;
        let bin = programs.to_string_lossy();
        let mut variables = vec![("BIN", &*bin)];
        variables.extend(environment.iter().map(|(name, value)| (*name, value.as_str())));
        let mut keeper = Keeper::start(SCRIPT, &variables)?;
        let data = keeper.directory().join("data");
        fs::write(keeper.directory().join("password"), &password)
            .map_err(|source| StartError::Io { what: "write the password", source })?;
        keeper.order("create")?;
        append(&data.join("postgresql.conf"), &format!("{SETTINGS}{settings}\n"))?;
        let port = start_on_free_port(&mut keeper)?;
        Ok(Self { keeper, port, password })
    }

    /// A standby that follows this server.
    pub fn standby(&self) -> Result<Self, StartError> {
        let programs = programs()?;
        let variables = [("BIN", &*programs.to_string_lossy()), ("PGPASSWORD", &self.password)];
        let mut keeper = Keeper::start(SCRIPT, &variables)?;
        keeper.order(&format!("copy {}", self.port))?;
        let port = start_on_free_port(&mut keeper)?;
        Ok(Self { keeper, port, password: self.password.clone() })
    }

    /// Makes a standby a server of its own, which can be written.
    pub fn promote(&mut self) -> Result<(), StartError> {
        self.keeper.order("promote")
    }

    /// Of its first database, as its superuser.
    pub fn url(&self) -> String {
        format!("postgres://postgres:{}@127.0.0.1:{}/postgres", self.password, self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it keeps everything.
    pub fn directory(&self) -> &Path {
        self.keeper.directory()
    }

    /// All that it has logged.
    pub fn log(&self) -> io::Result<String> {
        fs::read_to_string(self.keeper.directory().join(Keeper::LOG))
    }

    /// Ends all connections and stops in order.
    pub fn stop(&mut self) -> Result<(), StartError> {
        self.keeper.order("stop")
    }

    /// Stops as at a power cut: it recovers from its log when it starts again.
    pub fn crash(&mut self) -> Result<(), StartError> {
        self.keeper.order("crash")
    }

    /// Starts again after [`PostgresServer::stop`] or [`PostgresServer::crash`], under the same URL.
    pub fn resume(&mut self) -> Result<(), StartError> {
        self.keeper.order(&format!("start {}", self.port))
    }
}

/// Durability is left at the default, which is real. The tests of all crates share its connections.
const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 600
shared_buffers = 64MB
";

fn start_on_free_port(keeper: &mut Keeper) -> Result<u16, StartError> {
    let mut tried = 0;
    loop {
        let port = free_port().map_err(|source| StartError::Io { what: "find a free port", source })?;
        tried += 1;
        match keeper.order(&format!("start {port}")) {
            Ok(()) => return Ok(port),
            Err(_) if tried < PORTS_TRIED => {}
            Err(error) => return Err(error),
        }
    }
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn append(path: &Path, text: &str) -> Result<(), StartError> {
    let written = fs::OpenOptions::new().append(true).open(path);
    written
        .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
        .map_err(|source| StartError::Io { what: "write the settings", source })
}

fn secret() -> io::Result<String> {
    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let mut secret = String::new();
    for byte in bytes {
        write!(secret, "{byte:02x}").expect("a string takes everything");
    }
    Ok(secret)
}

/// The directory of the newest installed server's programs. Debian keeps them off the path.
fn programs() -> Result<PathBuf, StartError> {
    let has = |directory: &PathBuf, program: &str| directory.join(program).is_file();
    let path = env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = versions(Path::new("/usr/lib/postgresql"));
    directories.extend(env::split_paths(&path));
    directories
        .into_iter()
        .find(|directory| has(directory, INITDB) && has(directory, PG_CTL))
        .ok_or(StartError::Missing { program: INITDB })
}

/// `VERSION/bin` under `root`, the newest first.
fn versions(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let number = |name: &str| name.parse::<u32>().ok();
    let mut found: Vec<u32> = entries
        .filter_map(|entry| entry.ok().and_then(|entry| number(&entry.file_name().to_string_lossy())))
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.into_iter().map(|version| root.join(version.to_string()).join("bin")).collect()
}
